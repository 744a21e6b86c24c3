#![doc = include_str!("../README.md")]

mod failure;
mod leases;
mod migrations;
mod opening;
mod rows;
mod schema;
mod setup_error;
mod statements;
mod store;

/// The pool crate of [`PostgresStore::from_pool`], in the version that this crate uses.
pub use deadpool_postgres;
pub use schema::Schema;
pub use setup_error::SetupError;
pub use store::PostgresStore;
