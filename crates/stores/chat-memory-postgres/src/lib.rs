//! Conversations of advisor chains in PostgreSQL: an append is one statement, a load is a range read.
//!
#![doc = include_str!("../README.md")]

mod failure;
mod opening;
mod rows;
mod store;

pub use advisor_postgres::SetupError;
/// The pool crate of [`PostgresStore::from_pool`], in the version that this crate uses.
pub use advisor_postgres::deadpool_postgres;
pub use store::PostgresStore;
