//! Conversation memory for advisor chains in one SQLite file. Acknowledged writes are on the disk.
//!
//! [`SqliteStore`] is a [`ConversationStore`](conversation_store::ConversationStore). SQLite is built in; no
//! server or library has to be installed.
//!
//! # Example
//! ```
//! use advisor_core::{ChatClient, ConversationKey};
//! use advisor_testkit::{Answer, ScriptedModel};
//! use chat_memory_advisor::ChatMemoryAdvisor;
//! use chat_memory_sqlite::SqliteStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("conversations.sqlite");
//! let memory = ChatMemoryAdvisor::new(SqliteStore::open(&path).await?);
//! let model = ScriptedModel::new([Answer::from_text("Hello, Ada.")]);
//! let client = ChatClient::builder(model).advisor(memory).build()?;
//! client.prompt().user("I am Ada.").conversation("c1").call().await?;
//! drop(client);
//!
//! // The conversation is in the file when it is opened again.
//! let memory = ChatMemoryAdvisor::new(SqliteStore::open(&path).await?);
//! assert_eq!(memory.transcript(&ConversationKey::new("c1")?).await?.len(), 2);
//! # Ok(()) }
//! ```
//!
//! # Words
//! | word | type |
//! | --- | --- |
//! | store: conversations in one file | [`SqliteStore`] |
//! | error of opening a file, with the remedy | [`OpenError`] |
//! | error of writing to a file that was deleted or replaced | [`FileReplaced`] |

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

/// Runs the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
