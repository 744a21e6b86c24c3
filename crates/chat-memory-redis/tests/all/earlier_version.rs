//! Tests that keys of the version before are read and continue.

use std::sync::Arc;

use advisor_conformance::crash::next_turns_are_valid;
use advisor_conformance::store::reads_data_of_earlier_version;
use advisor_core::ConversationKey;
use chat_memory_redis::redis::cmd;
use conversation_store::ConversationStore;

use crate::support::Place;

const EXPORTED: &str = include_str!("../../../conversation-store/tests/fixtures/conversation-2.jsonl");

#[tokio::test]
async fn keys_of_earlier_version_are_read_and_continued() {
    let Some(place) = Place::new() else { return };
    let mut connection = place.connection().await;
    for line in include_str!("../fixtures/conversation-2.jsonl").lines() {
        let words: Vec<String> = serde_json::from_str(line).unwrap();
        let mut command = cmd(&words[0]);
        command.arg(words[1].replace("{prefix}", &place.prefix)).arg(&words[2..]);
        command.exec_async(&mut connection).await.unwrap();
    }
    let store: Arc<dyn ConversationStore> = Arc::new(place.store().await);
    let key = ConversationKey::in_tenant("acme", "c1").unwrap();
    reads_data_of_earlier_version(Arc::clone(&store), &key, EXPORTED).await;
    next_turns_are_valid(store, &key).await;
}
