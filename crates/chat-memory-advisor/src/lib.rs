//! Conversation memory for advisor chains: an append-only store contract, windows as views, repair on load.
