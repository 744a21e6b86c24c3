//! A vector store for retrieval in PostgreSQL, by its extension pgvector: tenants, filters, cosine, an index
//! on request.
//!
#![doc = include_str!("../README.md")]
//!
//! # Logs
//! This crate logs nothing. The driver logs statements at the level `debug` of the crate `log`, without their
//! parameters: the text of a statement has no value.

mod condition;
mod connection;
mod migrations;
mod rows;
mod schema;
mod setup_error;
mod statement;
mod store;

/// The crate of [`SetupError::Database`].
pub use advisor_postgres;
/// The pool crate of [`PostgresVectors::from_pool`], in the version that this crate uses.
pub use advisor_postgres::deadpool_postgres;
pub use setup_error::SetupError;
pub use store::PostgresVectors;
