//! Policies, guards and replacements over streams, without a tool loop.

mod blocks;
mod guard;
mod pieces;
mod replace;
