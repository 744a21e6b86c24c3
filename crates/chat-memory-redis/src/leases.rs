//! Leases.

use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use conversation_store::{FencingToken, Leases, Result, StoreError};
use redis::Value;

use crate::RedisStore;
use crate::failure::lasting;
use crate::replies::Reply;
use crate::store::EXACT;

/// The maximum duration of a lease; longer ones are cut to it.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

#[async_trait]
impl Leases for RedisStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        time: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken> {
        let takeover_from = takeover_from.map(known).unwrap_or_default();
        let mut script = self.scripts.acquire.key(self.prefix.conversation(key));
        let script = script.arg(turn.as_str()).arg(micros(time)).arg(takeover_from);
        let mut reply = self.run(script).await.and_then(Reply::of)?;
        if reply.word != "held" {
            return reply.number().map(FencingToken::new);
        }
        let turn = TurnId::new(&reply.text()?).map_err(lasting)?;
        let (fence, remaining) = (FencingToken::new(reply.number()?), Duration::from_micros(reply.number()?));
        Err(StoreError::Locked { turn, fence, remaining })
    }

    async fn renew(&self, key: &ConversationKey, fence: FencingToken, time: Duration) -> Result {
        let reply = self.hold(key, fence, time).await.and_then(Reply::of)?;
        if reply.word == "fenced" { Err(StoreError::Fenced) } else { Ok(()) }
    }

    async fn release(&self, key: &ConversationKey, fence: FencingToken) -> Result {
        self.hold(key, fence, Duration::ZERO).await.map(drop)
    }
}

impl RedisStore {
    async fn hold(&self, key: &ConversationKey, fence: FencingToken, time: Duration) -> Result<Value> {
        let mut script = self.scripts.renew.key(self.prefix.conversation(key));
        self.run(script.arg(known(fence)).arg(micros(time))).await
    }
}

/// Converts a token for comparison in the script. A token above `EXACT` was never issued.
fn known(fence: FencingToken) -> String {
    if fence.as_u64() > EXACT { "-1".into() } else { fence.as_u64().to_string() }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.min(YEAR).as_micros()).unwrap_or(EXACT)
}
