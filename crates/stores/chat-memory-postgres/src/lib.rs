//! Conversations of advisor chains in PostgreSQL: an append is one statement, a load is a range read.
//!
#![doc = include_str!("../README.md")]

mod failure;
mod migrations;
mod opening;
mod rows;
mod schema;
mod store;

/// The pool crate of [`PostgresStore::from_pool`], in the version that this crate uses.
pub use deadpool_postgres;
pub use schema::SetupError;
pub use store::PostgresStore;
