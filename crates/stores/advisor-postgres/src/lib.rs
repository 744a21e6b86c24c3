//! What stores in PostgreSQL share: the pool, a schema with migrations, and errors without content.
//!
#![doc = include_str!("../README.md")]

mod failure;
mod pool;
mod schema;

/// The pool crate, in the version that this crate uses.
pub use deadpool_postgres;
pub use failure::{ServerError, SetupError, lost_a_race};
pub use pool::{Connection, TIMEOUT, connection, give_back, pool};
pub use schema::{Preparation, Schema};
