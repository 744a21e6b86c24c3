#![doc = include_str!("../README.md")]

mod append;
mod connection_queue;
mod conversations;
mod failure;
mod load;
mod log;
mod open_error;
mod open_files;
mod schema;
mod store;

pub use open_error::OpenError;
pub use open_files::FileReplaced;
pub use store::SqliteStore;
