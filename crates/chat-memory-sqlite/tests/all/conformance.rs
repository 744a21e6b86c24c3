//! The suite that every store must pass.

mod on_file {
    chat_memory_advisor::conformance!(crate::support::OnFile::new().await);
}

mod in_memory {
    chat_memory_advisor::conformance!(chat_memory_sqlite::SqliteStore::in_memory().unwrap());
}
