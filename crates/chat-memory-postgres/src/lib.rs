//! Conversations of advisor chains in PostgreSQL.
//!
//! [`PostgresStore`] is a [`ConversationStore`](conversation_store::ConversationStore): give it to a
//! `ChatMemoryAdvisor`. An append is one statement, under the lock
//! of the conversation's row; a view is a range read, however long the conversation is; what a store was told
//! of, every other one sees at once. It hands out [leases](conversation_store::Leases), too.
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
//! This crate logs nothing. The driver logs each statement with its parameters, which are what was said, at
//! the level `debug` of the crate `log`: leave that level off for `tokio_postgres` where logs are kept.
//!
//! # Words
//! | word | type |
//! | --- | --- |
//! | the store | [`PostgresStore`] |
//! | the PostgreSQL schema that holds its tables | [`Schema`] |
//! | why it could not be opened | [`SetupError`] |

mod failure;
mod leases;
mod migrations;
mod opening;
mod rows;
mod schema;
mod setup_error;
mod statements;
mod store;

/// The pool that [`PostgresStore::from_pool`] takes, of the version that this crate uses.
pub use deadpool_postgres;
pub use schema::Schema;
pub use setup_error::SetupError;
pub use store::PostgresStore;

/// The README's examples are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
