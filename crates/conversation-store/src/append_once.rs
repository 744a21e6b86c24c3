//! `append_once`: repeats an append with unknown outcome under the same key.

use advisor_core::ConversationKey;

use crate::{Batch, ConversationStore, Result, StoreError, Version};

/// Appends a batch, and retries once if the outcome is unknown. The batch's key makes the retry safe.
///
/// # Errors
/// Those of [`append`](ConversationStore::append). [`OutcomeUnknown`](StoreError::OutcomeUnknown) if the retry
/// does not resolve the outcome either.
pub async fn append_once(
    store: &dyn ConversationStore,
    key: &ConversationKey,
    expected: Version,
    batch: Batch,
) -> Result<Version> {
    let unknown = match store.append(key, expected, batch.clone()).await {
        Err(unknown @ StoreError::OutcomeUnknown { .. }) => unknown,
        outcome => return outcome,
    };
    match store.append(key, expected, batch).await {
        // The retry wrote nothing, but the first attempt may have.
        Err(StoreError::Unavailable { .. }) => Err(unknown),
        outcome => outcome,
    }
}
