//! `PostgresStore`: the store operations, and how a statement gets a connection, a timeout and a retry.

use std::fmt;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use advisor_postgres::{Schema, ServerError, connection, give_back, lost_a_race};
use conversation_store::{
    Batch, ConversationStore, Entry, EntryId, FencingToken, Leases, ListOrder, Page, ReadRange, Result,
    Snapshot, StoreError, Version,
};
use deadpool_postgres::Pool;
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::failure::{before_sending, from_reading, from_statement, lasting};
use crate::rows::{Columns, column, number, outcome, range, snapshot, tips};

/// A store of conversations in a PostgreSQL database. Clones share the connection pool.
///
/// Needs a tokio runtime with I/O and time.
///
/// # Durability
/// An acknowledged append survives a crash of the server as far as its settings `synchronous_commit` and `fsync`
/// guarantee it. Their defaults do.
///
/// The row of a lease, with the name of the conversation, the fencing token and the id of a turn, outlives a deletion.
///
/// # Cancellation
/// An append that is dropped or times out after it was sent may still be applied by the server. It is applied as a
/// whole, and only if no later append came first. An operation that is dropped before its answer arrives closes
/// its connection; the pool replaces it.
///
/// # Errors
/// - [`StoreError::Unavailable`] if nothing was sent, or if the server reports that it rolled the statement back.
/// - [`StoreError::OutcomeUnknown`] if the connection was lost or the timeout expired after a write was sent.
/// - [`StoreError::TooLarge`] for a batch beyond 64 MiB, or for a step in its key of more than 1,024 bytes.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) pool: Pool,
    pub(crate) schema: Schema,
    pub(crate) timeout: Duration,
}

/// The maximum size of a batch in bytes: its entries as JSON and the ids of their turns. Protocol messages and server
/// values end at 1 GiB, and this stays well below.
const LARGEST_BATCH: usize = 64 << 20;

/// The maximum length in bytes of the step in a batch's key. The step is part of an index, whose rows are small.
const LONGEST_STEP: usize = 1_024;

/// The maximum number of attempts at a statement that loses races. Races are lost only where the database's
/// isolation level is stricter than `read committed`, the server's default.
const ATTEMPTS: u32 = 32;

const APPEND: &str = "SELECT is_written, at_version, at_fence, at_turn, known_first, known_last, known_turns, \
    known_bodies, known_parent \
    FROM {schema}.append_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

/// Reads a range of a branch.
const LOAD: &str = "SELECT version, open, turn_from, view_from, firsts, lasts, parents, seq, turn, body \
    FROM {schema}.load_branch($1, $2, $3, $4, $5)";

/// Reads a range of the log: its entries, then the forks in it, or one row without either.
const READ: &str = "WITH log AS MATERIALIZED ( \
        SELECT c.id, c.version FROM {schema}.conversations AS c \
        WHERE c.tenant = $1 AND c.conversation = $2) \
    SELECT log.version, e.seq, e.turn, e.body, NULL::bigint AS first_seq, NULL::bigint AS parent \
    FROM log JOIN {schema}.entries AS e \
        ON e.conversation = log.id AND e.seq > $3::bigint AND e.seq <= $4::bigint \
    UNION ALL SELECT log.version, NULL, NULL, NULL, f.first_seq, f.parent \
    FROM log LEFT JOIN {schema}.forks AS f \
        ON f.conversation = log.id AND f.first_seq > $3::bigint AND f.first_seq <= $4::bigint \
    ORDER BY seq";

const BRANCHES: &str = "SELECT c.version, f.first_seq, f.parent \
    FROM {schema}.conversations AS c LEFT JOIN {schema}.forks AS f ON f.conversation = c.id \
    WHERE c.tenant = $1 AND c.conversation = $2";

const DELETE: &str = "SELECT {schema}.delete_conversation($1, $2)";

const ACQUIRE: &str = "SELECT outcome, at_fence, by_turn, remaining \
    FROM {schema}.acquire_lease($1, $2, $3, $4, $5, $6)";

/// Sets the expiry of a lease, counted from now.
const HOLD: &str = "UPDATE {schema}.leases \
    SET held_until = clock_timestamp() + $4::bigint * interval '1 microsecond' \
    WHERE tenant = $1 AND conversation = $2 AND fence = $3 RETURNING fence";

type Parameters<'a> = [&'a (dyn ToSql + Sync)];

#[async_trait]
impl ConversationStore for PostgresStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        self.load_to(key, None, range).await
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        self.load_to(key, Some(tip), range).await
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let after = i64::try_from(after.0).unwrap_or(i64::MAX);
        let last = after.saturating_add(clipped(limit));
        let parameters: &Parameters<'_> = &[&key.tenant(), &key.conversation(), &after, &last];
        let rows = self.run(READ, parameters).await;
        rows.and_then(|rows| range(&rows, after.cast_unsigned(), last.cast_unsigned())).map_err(from_reading)
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        let rows = self.run(BRANCHES, &[&key.tenant(), &key.conversation()]).await;
        rows.and_then(|rows| tips(&rows)).map_err(from_reading)
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        let step = batch.key.step.as_bytes();
        if step.len() > LONGEST_STEP {
            return Err(StoreError::TooLarge);
        }
        let token = batch.token.map(|token| i64::try_from(token.0)).transpose();
        let token = token.map_err(|_| StoreError::Unsupported { what: "a fencing token above 2^63 - 1" })?;
        let entries = batch.written(LARGEST_BATCH)?;
        let columns = Columns::from_entries(&entries);
        // No conversation reaches `i64::MAX`, so an expected version beyond the column's range conflicts in any
        // case.
        let at = i64::try_from(expected.0).unwrap_or(i64::MAX);
        let parameters: &Parameters<'_> = &[
            &key.tenant(),
            &key.conversation(),
            &at,
            &batch.key.turn.as_str(),
            &i64::from(batch.key.round),
            &step,
            &token,
            &columns.turns,
            &columns.bodies,
            &columns.opens,
            &columns.begins,
            &batch.parent.map(|parent| i64::try_from(parent.0).unwrap_or(i64::MAX)),
            &batch.last_turn.as_ref().map(TurnId::as_str),
        ];
        let rows = self.run(APPEND, parameters).await?;
        let answer = rows.first().ok_or_else(|| StoreError::outcome_unknown("the server answers nothing"))?;
        outcome(answer, expected, &batch, &entries)
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.run(DELETE, &[&key.tenant(), &key.conversation()]).await.map(drop)
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        let Some(after) = page.start() else { return Ok(Vec::new()) };
        // Each statement is a range of the index. No id is empty, so all are above the empty one.
        let (beyond, order) = match page.order {
            ListOrder::Ascending => (">", ""),
            ListOrder::Descending if after.is_empty() => (">", "DESC"),
            ListOrder::Descending => ("<", "DESC"),
        };
        let statement = format!(
            "SELECT conversation FROM {{schema}}.conversations \
             WHERE tenant = $1 AND conversation {beyond} $2 ORDER BY conversation {order} LIMIT $3"
        );
        let tenant = &*page.tenant;
        let rows = self.run(&statement, &[&tenant, &after, &clipped(page.limit)]).await;
        let key =
            |row: &Row| ConversationKey::in_tenant(tenant, column(row, "conversation")?).map_err(lasting);
        rows.and_then(|rows| rows.iter().map(key).collect()).map_err(from_reading)
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }
}

/// The maximum duration of a lease; longer ones are cut to it.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

#[async_trait]
impl Leases for PostgresStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken> {
        let (conversation, takeover_from) = (key.conversation(), takeover_from.map(known));
        let rows = self
            .run(
                ACQUIRE,
                &[&key.tenant(), &conversation, &turn.as_str(), &micros(ttl), &takeover_from, &waits],
            )
            .await?;
        let answer = rows.first().ok_or_else(|| StoreError::outcome_unknown("the server answers nothing"))?;
        let token = FencingToken(number(answer, "at_fence")?);
        if column::<&str>(answer, "outcome")? == "given" {
            return Ok(token);
        }
        let turn = TurnId::new(column(answer, "by_turn")?).map_err(lasting)?;
        let remaining = Duration::from_micros(number(answer, "remaining")?);
        Err(StoreError::Locked { turn, token, remaining })
    }

    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result {
        let parameters: &Parameters<'_> = &[&key.tenant(), &key.conversation(), &known(token), &micros(ttl)];
        let held = self.run(HOLD, parameters).await?;
        if held.is_empty() { Err(StoreError::Fenced) } else { Ok(()) }
    }
}

/// Converts a token for comparison in the server. A token beyond the server's range was never issued.
fn known(token: FencingToken) -> i64 {
    i64::try_from(token.0).unwrap_or(-1)
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.min(YEAR).as_micros()).unwrap_or(i64::MAX)
}

impl PostgresStore {
    /// Reads a range of the branch that ends with `tip`, or of the one that was written last.
    async fn load_to(
        &self,
        key: &ConversationKey,
        tip: Option<EntryId>,
        range: ReadRange,
    ) -> Result<Snapshot> {
        let (entries, turns) = match range {
            ReadRange::All => (Some(i64::MAX), None),
            ReadRange::LastEntries(count) => (Some(clipped(count)), None),
            ReadRange::LastTurns(count) => (None, Some(clipped(count))),
        };
        let to = tip.map(|tip| i64::try_from(tip.0).unwrap_or(i64::MAX));
        let parameters: &Parameters<'_> = &[&key.tenant(), &key.conversation(), &to, &entries, &turns];
        let rows = self.run(LOAD, parameters).await;
        rows.and_then(|rows| snapshot(&rows, tip)).map_err(from_reading)
    }

    /// Runs a statement, in which `{schema}` stands for the schema's name, and returns its rows.
    pub(crate) async fn run(&self, statement: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>> {
        let client = connection(&self.pool, self.timeout).await.map_err(before_sending)?;
        let statement = self.schema.name_in(statement);
        let prepared = timeout(self.timeout, client.prepare_cached(&statement)).await;
        let prepared = match prepared.map_err(|_| before_sending(ServerError::silent()))? {
            Err(error) => return give_back(client, Err(error)).map_err(before_sending),
            Ok(prepared) => prepared,
        };
        let mut again = 1..ATTEMPTS;
        loop {
            let answer = timeout(self.timeout, client.query(&prepared, parameters)).await;
            match answer.map_err(|_| StoreError::outcome_unknown(ServerError::silent().source))? {
                Err(error) if lost_a_race(&error) && again.next().is_some() => {}
                answer => return give_back(client, answer).map_err(from_statement),
            }
        }
    }
}

fn clipped(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = self.pool.status().size;
        f.debug_struct("PostgresStore")
            .field("schema", &self.schema.name())
            .field("connections", &connections)
            .finish_non_exhaustive()
    }
}
