//! Leases.

use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use conversation_store::{FencingToken, Leases, Result, StoreError};

use crate::PostgresStore;
use crate::failure::lasting;
use crate::rows::{column, number};

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
    ) -> Result<FencingToken> {
        self.lease(key, turn, ttl, takeover_from, false).await
    }

    async fn acquire_in_turn(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken> {
        self.lease(key, turn, ttl, takeover_from, true).await
    }

    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result {
        if self.hold(key, token, ttl).await? { Ok(()) } else { Err(StoreError::Fenced) }
    }

    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result {
        self.hold(key, token, Duration::ZERO).await.map(drop)
    }
}

impl PostgresStore {
    /// Requests the lease. If `waits` and it is refused, the turn takes or keeps a place in the queue.
    async fn lease(
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
                &self.statements.acquire,
                &[&key.tenant(), &conversation, &turn.as_str(), &micros(ttl), &takeover_from, &waits],
            )
            .await?;
        let answer = rows.first().ok_or_else(|| StoreError::outcome_unknown("the server answers nothing"))?;
        let token = FencingToken::new(number(answer, "at_fence")?);
        if column::<&str>(answer, "outcome")? == "given" {
            return Ok(token);
        }
        let turn = TurnId::new(column(answer, "by_turn")?).map_err(lasting)?;
        let remaining = Duration::from_micros(number(answer, "remaining")?);
        Err(StoreError::Locked { turn, token, remaining })
    }

    /// Sets the expiry of the lease if this token is the latest one, and returns whether it is.
    async fn hold(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result<bool> {
        let parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&key.tenant(), &key.conversation(), &known(token), &micros(ttl)];
        Ok(!self.run(&self.statements.hold, parameters).await?.is_empty())
    }
}

/// Converts a token for comparison in the server. A token beyond the server's range was never issued.
fn known(token: FencingToken) -> i64 {
    i64::try_from(token.as_u64()).unwrap_or(-1)
}

fn micros(ttl: Duration) -> i64 {
    i64::try_from(ttl.min(YEAR).as_micros()).unwrap_or(i64::MAX)
}
