//! Shared parts of the fuzz targets: scripts, and logs that are written as scripts.

mod comments;
mod logs;
mod script;
mod segments;
mod waiting;

pub use comments::with_comments;
pub use logs::{log, turns};
pub use script::Script;
pub use segments::Segments;
pub use waiting::wait_for;
