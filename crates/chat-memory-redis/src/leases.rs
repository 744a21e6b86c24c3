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
        let reply = self.hold(key, token, ttl).await.and_then(Reply::from_value)?;
        if reply.word == "fenced" { Err(StoreError::Fenced) } else { Ok(()) }
    }

    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result {
        self.hold(key, token, Duration::ZERO).await.map(drop)
    }
}

impl RedisStore {
    /// Requests the lease. If `waits` and it is refused, the turn takes or keeps a place in the queue.
    async fn lease(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken> {
        let takeover_from = takeover_from.map(known).unwrap_or_default();
        let mut script = self.server.scripts.acquire.key(self.server.prefix.conversation(key));
        let script = script.arg(turn.as_str()).arg(micros(ttl)).arg(takeover_from).arg(u8::from(waits));
        let mut reply = self.server.run(script).await.and_then(Reply::from_value)?;
        if reply.word != "held" {
            return reply.number().map(FencingToken::new);
        }
        let turn = TurnId::new(&reply.text()?).map_err(lasting)?;
        let (token, remaining) = (FencingToken::new(reply.number()?), Duration::from_micros(reply.number()?));
        Err(StoreError::Locked { turn, token, remaining })
    }

    async fn hold(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result<Value> {
        let mut script = self.server.scripts.renew.key(self.server.prefix.conversation(key));
        self.server.run(script.arg(known(token)).arg(micros(ttl))).await
    }
}

/// Converts a token for comparison in the script. A token above `EXACT` was never issued.
fn known(token: FencingToken) -> String {
    if token.as_u64() > EXACT { "-1".into() } else { token.as_u64().to_string() }
}

fn micros(ttl: Duration) -> u64 {
    u64::try_from(ttl.min(YEAR).as_micros()).unwrap_or(EXACT)
}
