use advisor_core::ConversationKey;

use crate::{Batch, ConversationStore, StoreError, Version};

/// Appends a batch, and again if the store does not know whether it was written: its key makes that safe.
///
/// # Errors
/// Those of [`append`](ConversationStore::append). [`OutcomeUnknown`](StoreError::OutcomeUnknown) if the second attempt
/// does not tell either.
pub async fn append_once(
    store: &dyn ConversationStore,
    key: &ConversationKey,
    expected: Version,
    batch: Batch,
) -> Result<Version, StoreError> {
    let unknown = match store.append(key, expected, batch.clone()).await {
        Err(unknown @ StoreError::OutcomeUnknown { .. }) => unknown,
        outcome => return outcome,
    };
    match store.append(key, expected, batch).await {
        // That the second try wrote nothing says nothing of the first.
        Err(StoreError::Unavailable { .. }) => Err(unknown),
        outcome => outcome,
    }
}
