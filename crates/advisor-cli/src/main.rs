//! The `advisor` binary.

fn main() {}
