//! Turns that are stopped at each of their await points, or whose store fails there, on a file and in memory.

mod on_file {
    advisor_conformance::crash_points_of_store!(crate::support::on_file().await);
}

mod in_memory {
    advisor_conformance::crash_points_of_store!(chat_memory_sqlite::SqliteStore::in_memory().unwrap());
}
