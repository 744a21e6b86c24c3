//! The suite that every store must pass.

use std::sync::Arc;

use advisor_conformance::store::{law_m3, what_was_acknowledged_is_found_when_reopened};
use conversation_store::ConversationStore;

use crate::support::{File, on_file};

mod on_file {
    advisor_conformance::store_conformance!(crate::support::on_file().await);
}

mod in_memory {
    advisor_conformance::store_conformance!(chat_memory_sqlite::SqliteStore::in_memory().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_m3_file_append_is_atomic_ordered_idempotent_versioned() {
    law_m3(Arc::new(on_file().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn law_m3_what_was_acknowledged_is_in_the_reopened_file() {
    let file = File::new();
    let open = async || Arc::new(file.open().await) as Arc<dyn ConversationStore>;
    what_was_acknowledged_is_found_when_reopened(open).await;
}
