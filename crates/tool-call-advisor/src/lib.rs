//! The tool loop as an advisor: runs the calls of a streamed answer, in order, bounded, and never before the answer is remembered.
