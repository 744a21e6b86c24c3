//! The memory's `PendingCalls`, for decisions about calls.

use advisor_core::{ClientSideCall, ConversationKey, PendingCalls, Result, async_trait};

use crate::ChatMemoryAdvisor;

/// The calls that approvals are about.
#[async_trait]
impl PendingCalls for ChatMemoryAdvisor {
    async fn list(&self, conversation: &ConversationKey) -> Result<Vec<ClientSideCall>> {
        self.client_side_calls(conversation).await
    }
}
