//! Tests that a file of the version before the crates were reorganised opens and continues.

use std::sync::Arc;

use advisor_conformance::crash::next_turns_are_valid;
use advisor_conformance::store::reads_data_of_earlier_version;
use advisor_core::ConversationKey;
use chat_memory_sqlite::SqliteStore;
use conversation_store::ConversationStore;

const EXPORTED: &str = include_str!("../../../conversation-store/tests/fixtures/conversation-2.jsonl");

#[tokio::test]
async fn file_of_earlier_version_opens_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.sqlite");
    std::fs::write(&path, include_bytes!("../fixtures/conversation-2.sqlite")).unwrap();
    let store: Arc<dyn ConversationStore> = Arc::new(SqliteStore::open(&path).await.unwrap());
    let key = ConversationKey::in_tenant("acme", "c1").unwrap();
    reads_data_of_earlier_version(Arc::clone(&store), &key, EXPORTED).await;
    next_turns_are_valid(store, &key).await;
}
