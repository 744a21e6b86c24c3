//! Conversations of advisor chains in PostgreSQL.
//!
//! [`PostgresStore`] is a [`ConversationStore`](conversation_store::ConversationStore) for a `ChatMemoryAdvisor`.
//! An append is one statement under the lock of the conversation's row. A load is a range read, however long the
//! conversation is. A write acknowledged by one store is visible to all others at once. It also issues
//! [leases](conversation_store::Leases).
//!
//! # Example
//! ```no_run
//! use advisor_core::ConversationKey;
//! use chat_memory_advisor::ChatMemoryAdvisor;
//! use chat_memory_postgres::PostgresStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = PostgresStore::connect("postgres://app@127.0.0.1/app").await?;
//! let memory = ChatMemoryAdvisor::new(store);
//! let transcript = memory.transcript(&ConversationKey::new("c1")?).await?;
//! # drop(transcript);
//! # Ok(()) }
//! ```
//!
//! # Logs
//! This crate logs nothing. The driver logs each statement at the level `debug` of the crate `log`, with its
//! parameters, which contain the messages. Disable that level for `tokio_postgres` where logs are kept.
//!
//! # Words
//! | word | type |
//! | --- | --- |
//! | the store | [`PostgresStore`] |
//! | the PostgreSQL schema with its tables | [`Schema`] |
//! | error of opening a store | [`SetupError`] |

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

/// Runs the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
