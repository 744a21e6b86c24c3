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
        time: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken> {
        let (conversation, takeover_from) = (key.conversation(), takeover_from.map(known));
        let rows = self
            .run(
                &self.statements.acquire,
                &[&key.tenant(), &conversation, &turn.as_str(), &micros(time), &takeover_from],
            )
            .await?;
        let answer = rows.first().ok_or_else(|| StoreError::outcome_unknown("the server answers nothing"))?;
        let fence = FencingToken::new(number(answer, "at_fence")?);
        if column::<&str>(answer, "outcome")? == "given" {
            return Ok(fence);
        }
        let turn = TurnId::new(column(answer, "by_turn")?).map_err(lasting)?;
        let remaining = Duration::from_micros(number(answer, "remaining")?);
        Err(StoreError::Locked { turn, fence, remaining })
    }

    async fn renew(&self, key: &ConversationKey, fence: FencingToken, time: Duration) -> Result {
        if self.hold(key, fence, time).await? { Ok(()) } else { Err(StoreError::Fenced) }
    }

    async fn release(&self, key: &ConversationKey, fence: FencingToken) -> Result {
        self.hold(key, fence, Duration::ZERO).await.map(drop)
    }
}

impl PostgresStore {
    /// Sets the expiry of the lease if this token is the latest one, and returns whether it is.
    async fn hold(&self, key: &ConversationKey, fence: FencingToken, time: Duration) -> Result<bool> {
        let parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)] =
            &[&key.tenant(), &key.conversation(), &known(fence), &micros(time)];
        Ok(!self.run(&self.statements.hold, parameters).await?.is_empty())
    }
}

/// Converts a token for comparison in the server. A token beyond the server's range was never issued.
fn known(fence: FencingToken) -> i64 {
    i64::try_from(fence.as_u64()).unwrap_or(-1)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.min(YEAR).as_micros()).unwrap_or(i64::MAX)
}
