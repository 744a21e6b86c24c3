//! Conversations of advisor chains in Redis or Valkey: an append is one script, a view is a range read.
//!
#![doc = include_str!("../README.md")]
//!
//! # Durability
//! The server's configuration decides which failures an acknowledged append survives:
//!
//! | setting | possible loss |
//! | --- | --- |
//! | `appendonly yes`, `appendfsync always` | none when the server or its machine stops |
//! | `appendonly yes`, `appendfsync everysec` | about the last second when the machine stops |
//! | `appendonly yes`, `appendfsync no` | data not yet written by the operating system when the machine stops |
//! | `appendonly no` (the default) | everything since the last snapshot, or everything without snapshots |
//! | a failover to a replica | data the replica had not received, with any setting above |
//! | `maxmemory-policy allkeys-…` | any part of any conversation when memory runs out |
//!
//! `appendfsync everysec` is the default with `appendonly yes`. With it, a server that is
//! killed can lose as much, though seldom, because it delays writes while the disk is busy. A failover loses data
//! because replication is asynchronous.
//!
//! An append is lost whole or not at all. After a failover a conversation has an earlier state, which writers
//! notice by its version. Fencing tokens come from the server's clock, so they increase even if the previous lease
//! was lost. But until the next token is issued, an older writer is not refused.
//!
//! Use `maxmemory-policy noeviction`, or one of `volatile-…`. The latter evict only keys that have an expiry:
//! marks of deleted conversations. A conversation with an evicted key is
//! refused as damaged, not misread.
//!
//! # Keys
//! `advisor` is the prefix. All keys of a conversation share one hash tag, so that a cluster keeps them in one
//! slot. Tenant and conversation are percent-encoded in it, except `A-Z`, `a-z`, `0-9`, `-` and `_`. So neither
//! contains braces or `/`, and no two conversations share a key.
//!
//! | key | type | content |
//! | --- | --- | --- |
//! | `advisor:{tenant/conversation}:meta` | hash | version, number of turns, the last turn and whether it is open |
//! | `…:log` | stream | the entries; the number of an entry is the first part of its id |
//! | `…:turns` | list | the first entry of each turn |
//! | `…:forks` | list | the forks, if there are branches |
//! | `…:batches` | hash | the range of entries written under each batch key |
//! | `…:lease` | hash | the highest fencing token, the turn that holds the conversation, and the expiry |
//! | `…:void` | string | the mark of a deleted conversation; expires after a day |
//! | `advisor:{tenant}:conversations` | sorted set | the ids that a list checks |
//! | `advisor:{tenant}:marks` | hash | a mark for each of them |
//!
//! After a deletion two keys remain: `void` for a day, and `lease` for ever if the conversation was leased, since an
//! issued fencing token counts for ever. It has the name of the conversation, the token and the id of a turn.
//!
//! # Lists
//! In a cluster a tenant's index is in another slot than its conversations, so no script can access both. A
//! conversation is added to the index before its first append, and removed after its deletion. A list checks that
//! each id in the index exists. A crash in between, or an append refused as fenced, leaves an id that is not
//! listed. It stays until the conversation is created or deleted again.
//!
//! A deletion voids the conversation's mark in the index, so that no writer recreates the conversation under a
//! mark that is about to be removed. Two cases can create a conversation that is not listed:
//! - An append reaches the server more than a day after its mark, with a deletion in between.
//! - A failover or a restore loses the index and keeps the conversation.
//!
//! # Rights
//! A user with an access list needs the keys of the prefix, and these commands: `eval`, `evalsha`, `script|load`, `time`,
//! `exists`, `get`, `set`, `unlink`, `hget`, `hmget`, `hset`, `hdel`, `hlen`, `llen`, `lindex`,
//! `rpush`, `xlen`, `xrange`, `xadd`, `zadd`, `zrem`, `zrangebylex`, `zrevrangebylex`.
//!
//! The server checks the right to each command when a script calls it. If some rights are missing, an append stops in the
//! middle, and the store then refuses the conversation as damaged.

mod failure;
mod index;
mod prefix;
mod replies;
mod scripts;
mod server;
mod store;

pub use failure::SetupError;
/// The driver, in the version that this crate uses.
pub use redis;
pub use server::RedisServer;
pub use store::RedisStore;
