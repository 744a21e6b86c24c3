//! Conversations of advisor chains in Redis or Valkey.
//!
//! [`RedisStore`] is a [`ConversationStore`](conversation_store::ConversationStore): give it to a
//! `ChatMemoryAdvisor`. An append is one script, which the server
//! runs as a whole and alone; a view is a range read, however long the conversation is; what a store was told
//! of, every other one sees at once. It hands out [leases](conversation_store::Leases), too.
//!
//! # Example
//! ```no_run
//! use advisor_core::ConversationKey;
//! use chat_memory_advisor::ChatMemoryAdvisor;
//! use chat_memory_redis::RedisStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = RedisStore::connect("redis://127.0.0.1/").await?;
//! let memory = ChatMemoryAdvisor::new(store);
//! let transcript = memory.transcript(&ConversationKey::new("c1")?).await?;
//! # drop(transcript);
//! # Ok(()) }
//! ```
//!
//! # Durability
//! The server decides what an acknowledged append survives, by its configuration:
//!
//! | setting | what is lost |
//! | --- | --- |
//! | `appendonly yes`, `appendfsync always` | nothing that was acknowledged, when the server or its machine stops |
//! | `appendonly yes`, `appendfsync everysec` (the default with `appendonly yes`) | about the last second when the machine stops; as much, seldom, when only the server is killed, since it puts off writing while the disk is busy |
//! | `appendonly yes`, `appendfsync no` | nothing when the server stops; what the operating system had not written when the machine does |
//! | `appendonly no` (the default) | everything since the last snapshot, or everything without snapshots |
//! | a failover to a replica | what the replica had not got: replication is asynchronous, whatever the settings above |
//! | `maxmemory-policy allkeys-…` | any part of any conversation, when memory runs out |
//!
//! An append that is lost is lost whole. After a failover a conversation is as it was a moment ago, and the
//! version tells those who write on. Fences are taken from the server's clock, so they grow even if the lease
//! before was lost; but until the next one is handed out, an older writer is not refused.
//!
//! Use `maxmemory-policy noeviction`, or one of `volatile-…`, under which nothing is evicted but what expires
//! in a day anyway. A conversation of which a key was evicted is refused as damaged, not misread.
//!
//! # Keys
//! `advisor` is the [`Prefix`]. All keys of a conversation share one hash tag, so that a cluster keeps them in
//! one slot. Tenant and conversation are percent-encoded in it, all but `A-Z`, `a-z`, `0-9`, `-` and `_`, so that it has
//! no braces and no `/` of theirs and no two conversations share a key.
//!
//! | key | type | what it holds |
//! | --- | --- | --- |
//! | `advisor:{tenant/conversation}:meta` | hash | version, number of turns, the last turn and whether it is open |
//! | `…:log` | stream | the entries; the number of an entry is the first part of its id |
//! | `…:turns` | list | where each turn begins |
//! | `…:forks` | list | where branches part, if there are any |
//! | `…:batches` | hash | which entries were written under which key |
//! | `…:lease` | hash | the highest fence, the turn that holds the conversation, and until when |
//! | `…:void` | string | the mark of a deleted conversation; expires after a day |
//! | `advisor:{tenant}:conversations` | sorted set | the ids that a list looks at |
//! | `advisor:{tenant}:marks` | hash | a mark for each of them |
//!
//! After a deletion nothing is left but, for a day, `void`, and, for a day after its time, a lease that was held.
//! A lease of a conversation that does not exist goes after the same time.
//!
//! # Lists
//! In a cluster the index of a tenant is in another slot than its conversations, so no script reaches both. A
//! conversation is put into the index before its first append, and taken out after its deletion; each that a
//! list finds there is asked for before it is listed. Whoever crashes in between, or is refused as
//! fenced, leaves an id that is not listed, until the conversation is made or deleted again. A deletion voids the mark that its conversation
//! had in the index, so that nobody makes it again under a mark that is about to be removed. An append that
//! reaches the server more than a day after its mark, with a deletion in between, can make a conversation that
//! is not listed; so can a failover or a restore that loses the index and keeps the conversation.
//!
//! # Words
//! | word | type |
//! | --- | --- |
//! | the store | [`RedisStore`] |
//! | what the names of its keys begin with | [`Prefix`] |
//! | why it could not be opened | [`SetupError`] |

mod failure;
mod index;
mod leases;
mod link;
mod opening;
mod prefix;
mod replies;
mod scripts;
mod setup_error;
mod store;

pub use prefix::Prefix;
/// The driver, of the version that this crate uses.
pub use redis;
pub use setup_error::SetupError;
pub use store::RedisStore;

/// The README's examples are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
