//! Shared parts of the fuzz targets: scripts, and logs that are written as scripts.

mod logs;
mod script;
mod segments;
mod waiting;

pub use logs::{log, turns};
pub use script::Script;
pub use segments::Segments;
pub use waiting::wait_for;
