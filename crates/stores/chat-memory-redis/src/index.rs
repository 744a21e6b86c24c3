//! The index of a tenant's conversations. The crate's docs describe its guarantees.

use advisor_core::ConversationKey;
use conversation_store::{ListOrder, Page, Result};
use futures::{StreamExt, TryStreamExt, stream};

use crate::RedisServer;
use crate::failure::lasting;
use crate::scripts::{EXISTS, LIST, MARK, MARKED, UNMARK};

/// The maximum number of candidates that are read at once, and of concurrent checks of them.
const CANDIDATES: usize = 256;

impl RedisServer {
    /// Adds a conversation to the index and returns its mark. It is not listed before it exists.
    pub(crate) async fn mark(&self, key: &ConversationKey) -> Result<u64> {
        let mut script = MARK.key(self.prefix.index(key.tenant()));
        // A mark without a conversation only costs lists some work, so a failure here counts as nothing written.
        self.ask(script.arg(key.conversation())).await
    }

    /// Returns the mark of a conversation, if it has one.
    pub(crate) async fn marked(&self, key: &ConversationKey) -> Result<Option<u64>> {
        let mut script = MARKED.key(self.prefix.index(key.tenant()));
        let mark = self.ask(script.arg(key.conversation())).await?;
        Ok((mark > 0).then_some(mark))
    }

    /// Removes a conversation from the index, unless it got another mark since.
    pub(crate) async fn unmark(&self, key: &ConversationKey, mark: u64) -> Result {
        let mut script = UNMARK.key(self.prefix.index(key.tenant()));
        self.run(script.arg(key.conversation()).arg(mark)).await.map(drop)
    }

    /// Lists the conversations of a page that exist.
    pub(crate) async fn listed(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        let mut listed = Vec::new();
        let Some(after) = page.start() else { return Ok(listed) };
        let mut after = after.to_owned();
        while listed.len() < page.limit {
            let wanted = CANDIDATES.min(page.limit - listed.len());
            let candidates = self.candidates(page, &after, wanted).await?;
            let more = candidates.len() == wanted;
            after = candidates.last().map(|last| last.conversation().into()).unwrap_or_default();
            let existing = stream::iter(candidates).map(|key| self.if_present(key)).buffered(CANDIDATES);
            listed.extend(existing.try_collect::<Vec<_>>().await?.into_iter().flatten());
            if !more {
                break;
            }
        }
        Ok(listed)
    }

    /// Returns up to `wanted` candidates after an id, or from the beginning of the list if it is empty.
    async fn candidates(&self, page: &Page, after: &str, wanted: usize) -> Result<Vec<ConversationKey>> {
        let tenant = &*page.tenant;
        let order = match page.order {
            ListOrder::Ascending => "up",
            ListOrder::Descending => "down",
        };
        let mut script = LIST.key(self.prefix.index(tenant));
        let script = script.arg(after).arg(wanted).arg(order);
        let found: Vec<String> = self.ask(script).await?;
        let key = |conversation: String| ConversationKey::in_tenant(tenant, &conversation).map_err(lasting);
        found.into_iter().map(key).collect()
    }

    async fn if_present(&self, key: ConversationKey) -> Result<Option<ConversationKey>> {
        let script = EXISTS.key(self.prefix.conversation(&key));
        let there: bool = self.ask(&script).await?;
        Ok(there.then_some(key))
    }
}
