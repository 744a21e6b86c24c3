//! Tests that a schema of the version before opens and continues.

use std::sync::Arc;

use advisor_conformance::crash::next_turns_are_valid;
use advisor_conformance::store::reads_data_of_earlier_version;
use advisor_core::ConversationKey;
use conversation_store::ConversationStore;

use crate::support::Place;

const EXPORTED: &str = include_str!("../../../conversation-store/tests/fixtures/conversation-2.jsonl");

#[tokio::test]
async fn schema_of_earlier_version_opens_and_continues() {
    let Some(place) = Place::new() else { return };
    place.execute(include_str!("../fixtures/conversation-2.sql")).await;
    let store: Arc<dyn ConversationStore> = Arc::new(place.store(2).await);
    let key = ConversationKey::in_tenant("acme", "c1").unwrap();
    reads_data_of_earlier_version(Arc::clone(&store), &key, EXPORTED).await;
    next_turns_are_valid(store, &key).await;
}
