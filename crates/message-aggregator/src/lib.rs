//! Assembles streamed model deltas into ordered blocks and one response; no async, no I/O.
