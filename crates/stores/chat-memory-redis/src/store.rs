//! `RedisStore`: opening a store, the store operations and the leases, each as a call of a script.

use std::fmt;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use conversation_store::{
    Batch, ConversationStore, Entry, EntryId, FencingToken, Leases, Page, ReadRange, Result, Snapshot,
    StoreError, TurnEffect, Version, WrittenEntry,
};
use redis::Value;

use crate::failure::{after_writing, from_reading, lasting};
use crate::replies::Reply;
use crate::scripts::{ACQUIRE, APPEND, BRANCHES, DELETE, LOAD, READ, RENEW};
use crate::{RedisServer, SetupError};

/// A store of conversations in Redis or Valkey. Clones share the connection.
///
/// Needs a tokio runtime with I/O and time.
///
/// # Durability
/// The server's configuration decides which failures an acknowledged append survives: see [the crate's
/// docs](crate#durability).
///
/// # Cancellation
/// An append that is dropped or times out after it was sent may still be applied by the server. It is applied as a
/// whole, and only if no later append came first.
///
/// # Errors
/// - [`StoreError::Unavailable`] if nothing was sent, or if the server refused the script.
/// - [`StoreError::OutcomeUnknown`] if the connection was lost or the timeout expired after a write was sent.
/// - [`StoreError::TooLarge`] for a batch beyond 64 MiB, or for a step in its key of more than 1,024 bytes.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) server: RedisServer,
}

/// The maximum length in bytes of the step in a batch's key, which is kept as long as the conversation.
const LONGEST_STEP: usize = 1_024;

/// The highest integer that the server's scripts represent exactly.
const EXACT: u64 = (1 << 53) - 1;

/// The maximum number of attempts to mark a conversation that others keep deleting and creating.
const ATTEMPTS: u32 = 32;

#[async_trait]
impl ConversationStore for RedisStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.load_to(key, None, range).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        self.load_to(key, Some(tip), range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let after = after.0.min(EXACT);
        let mut script = READ.key(self.server.prefix.conversation(key));
        let last = after.saturating_add(clipped(limit)).min(EXACT);
        let answer = self.server.run(script.arg(after).arg(last)).await;
        answer.and_then(Reply::from_value).and_then(|reply| reply.range(after)).map_err(from_reading)
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        let script = BRANCHES.key(self.server.prefix.conversation(key));
        self.server.run(&script).await.and_then(Reply::from_value).and_then(Reply::tips).map_err(from_reading)
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        if batch.key.step.len() > LONGEST_STEP {
            return Err(StoreError::TooLarge);
        }
        if batch.token.is_some_and(|token| token.0 > EXACT) {
            return Err(StoreError::Unsupported { what: "a fencing token above 2^53 - 1" });
        }
        let entries = batch.written(LARGEST_BATCH)?;
        for _ in 0..ATTEMPTS {
            // A conversation must be in the index before its first append creates it.
            let mark = if may_begin(expected, &batch) { self.server.mark(key).await? } else { 0 };
            let answer = self.append_once(key, expected, &batch, &entries, mark).await?;
            if let Some(version) = Reply::from_value(answer)?.outcome(expected, &batch, &entries)? {
                return Ok(version);
            }
        }
        Err(StoreError::unavailable("others delete and make the conversation all the time"))
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        let mark = self.server.marked(key).await?;
        let mut script = DELETE.key(self.server.prefix.conversation(key));
        self.server.run(script.arg(mark.map(|mark| mark.to_string()).unwrap_or_default())).await?;
        match mark {
            Some(mark) => self.server.unmark(key, mark).await.map_err(after_writing),
            None => Ok(()),
        }
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        self.server.listed(page).await
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }
}

impl RedisStore {
    /// Reads a range of the branch that ends with `tip`, or of the one that was written last.
    async fn load_to(
        &self,
        key: &ConversationKey,
        tip: Option<EntryId>,
        range: ReadRange,
    ) -> Result<Snapshot> {
        let (unit, count) = match range {
            ReadRange::All => ("entries", EXACT),
            ReadRange::LastEntries(count) => ("entries", clipped(count)),
            ReadRange::LastTurns(count) => ("turns", clipped(count)),
        };
        let to = tip.map(|tip| tip.0.min(EXACT).to_string()).unwrap_or_default();
        let mut script = LOAD.key(self.server.prefix.conversation(key));
        let answer = self.server.run(script.arg(unit).arg(count).arg(to)).await;
        answer.and_then(Reply::from_value).and_then(|reply| reply.snapshot(tip)).map_err(from_reading)
    }

    async fn append_once(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: &Batch,
        entries: &[WrittenEntry<'_>],
        mark: u64,
    ) -> Result<Value> {
        let token = batch.token.map(|token| token.0.to_string()).unwrap_or_default();
        let mut script = APPEND.key(self.server.prefix.conversation(key));
        // No conversation reaches the highest version, so an expected version beyond it conflicts in any case.
        let script = script.arg(expected.0.min(EXACT)).arg(batch.key.to_string()).arg(token).arg(mark);
        let parent = batch.parent.map(|parent| parent.0.min(EXACT).to_string());
        script.arg(parent.unwrap_or_default());
        script.arg(batch.last_turn.as_ref().map_or("", |turn| turn.as_str()));
        for entry in entries {
            let open = match entry.effect {
                TurnEffect::Opens => "1",
                TurnEffect::Ends => "0",
                TurnEffect::Unchanged => "",
            };
            script.arg(entry.turn).arg(&entry.body).arg(open);
        }
        self.server.run(script).await
    }
}

/// Returns whether a batch can be the first of its conversation.
fn may_begin(expected: Version, batch: &Batch) -> bool {
    expected == Version::EMPTY
        && !batch.entries.is_empty()
        && batch.parent.is_none_or(|parent| parent == EntryId::BEGINNING)
        && batch.last_turn.is_none()
}

fn clipped(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(EXACT).min(EXACT)
}

/// The maximum size of a batch in bytes: its entries as JSON and the ids of their turns. The server closes a
/// connection that sends a value over 512 MiB or a command over 1 GiB; this stays well below.
const LARGEST_BATCH: usize = 64 << 20;

impl RedisStore {
    /// Connects to the server at this address, as [`RedisServer::connect`].
    ///
    /// # Errors
    /// [`SetupError`]; its text never contains the address.
    pub async fn connect(address: &str) -> Result<Self, SetupError> {
        RedisServer::connect(address).await.map(Self::from_server)
    }

    /// Creates a store on this server, whose connection others may use as well.
    ///
    /// Over [a connection of the caller](RedisServer::from_connection), which may resend commands, more errors leave
    /// the outcome of an append unknown.
    #[must_use]
    pub fn from_server(server: RedisServer) -> Self {
        Self { server }
    }
}

/// The maximum duration of a lease; longer ones are cut to it.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

#[async_trait]
impl Leases for RedisStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken> {
        let takeover_from = takeover_from.map(known).unwrap_or_default();
        let mut script = ACQUIRE.key(self.server.prefix.conversation(key));
        let script = script.arg(turn.as_str()).arg(micros(ttl)).arg(takeover_from).arg(u8::from(waits));
        let mut reply = self.server.run(script).await.and_then(Reply::from_value)?;
        if reply.word != "held" {
            return reply.next().map(FencingToken);
        }
        let turn = TurnId::new(&reply.next::<String>()?).map_err(lasting)?;
        let (token, remaining) = (FencingToken(reply.next()?), Duration::from_micros(reply.next()?));
        Err(StoreError::Locked { turn, token, remaining })
    }

    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result {
        let mut script = RENEW.key(self.server.prefix.conversation(key));
        let reply = self.server.run(script.arg(known(token)).arg(micros(ttl))).await;
        if reply.and_then(Reply::from_value)?.word == "fenced" { Err(StoreError::Fenced) } else { Ok(()) }
    }
}

/// Converts a token for comparison in the script. A token above `EXACT` was never issued.
fn known(token: FencingToken) -> String {
    if token.0 > EXACT { "-1".into() } else { token.0.to_string() }
}

fn micros(ttl: Duration) -> u64 {
    u64::try_from(ttl.min(YEAR).as_micros()).unwrap_or(EXACT)
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("prefix", &self.server.prefix.as_str()).finish_non_exhaustive()
    }
}
