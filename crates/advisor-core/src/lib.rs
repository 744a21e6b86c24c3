//! Streaming advisor chain for language-model calls: what an inner advisor does after an answer completes before anyone outside learns of it.
