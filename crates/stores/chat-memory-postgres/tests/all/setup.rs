//! Tests of opening a store, and of refusals to open it.

use std::error::Error;
use std::time::Duration;

use advisor_core::TurnId;
use chat_memory_postgres::{PostgresStore, SetupError};
use conversation_store::{ConversationStore, ReadRange, Version};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{Place, key, said};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_opens_prepare_new_schema_once() {
    let Some(place) = Place::new() else { return };
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        let (pool, schema) = (place.pool(1), place.schema.clone());
        opening.spawn(async move { PostgresStore::from_pool(pool, &schema).await });
    }
    for store in opening.join_all().await {
        store.unwrap();
    }
    let once = place.sql("SELECT count(*) = max(version) FROM {schema}.memory_migrations");
    assert!(place.client().await.query_one(&once, &[]).await.unwrap().get::<_, bool>(0));
    place.remove().await;
}

/// The opener waits for the lock of another one. Its pool has one connection.
#[tokio::test]
async fn dropped_opening_leaves_no_waiting_connection() {
    let Some(place) = Place::new() else { return };
    let (holder, pool, schema) = (place.client().await, place.pool(1), place.schema.as_str());
    let hold = "SELECT pg_advisory_lock(1633973859, hashtext($1))";
    holder.query_one(hold, &[&schema]).await.unwrap();
    // The view has the second half of the key as a number without sign.
    let waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = 1633973859 AND NOT granted \
        AND (objid::bigint - hashtext($1)) % 4294967296 = 0";
    let mut opening = Box::pin(PostgresStore::from_pool(pool.clone(), &place.schema));
    tokio::select! {
        opened = &mut opening => panic!("{opened:?}"),
        () = async { while holder.query_opt(waiting, &[&schema]).await.unwrap().is_none() {} } => {}
    }
    drop(opening);
    // The pool makes another connection, which does not wait for the lock.
    let client = pool.get().await.unwrap();
    timeout(Duration::from_secs(20), client.query_one("SELECT 1", &[])).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_schema_of_a_newer_version_is_refused() {
    let Some(place) = Place::new() else { return };
    drop(place.store(1).await);
    place.execute("INSERT INTO {schema}.memory_migrations (version) VALUES (99)").await;
    let refused = PostgresStore::from_pool(place.pool(1), &place.schema).await;
    assert!(matches!(refused, Err(SetupError::Newer { found: 99, .. })), "{refused:?}");
    place.execute("DELETE FROM {schema}.memory_migrations WHERE version = 99").await;
    drop(place.store(1).await);
    place.remove().await;
}

/// The tables of such a schema changed before the first release, without another version.
#[tokio::test]
async fn a_schema_with_other_tables_is_refused_unchanged() {
    let Some(place) = Place::new() else { return };
    place
        .execute(
            "CREATE SCHEMA {schema}; CREATE TABLE {schema}.conversations (id bigint); \
             CREATE TABLE {schema}.migrations (version integer PRIMARY KEY); \
             INSERT INTO {schema}.migrations VALUES (1)",
        )
        .await;
    let refused = PostgresStore::from_pool(place.pool(1), &place.schema).await;
    let error = refused.expect_err("its first use would fail");
    assert!(
        matches!(error, SetupError::Occupied) && error.to_string().contains("another schema"),
        "{error:?}"
    );
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'";
    let left = place.client().await.query_one(&place.sql(tables), &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 2);
    place.remove().await;
}

#[tokio::test]
async fn schemas_of_one_database_share_nothing() {
    let (Some(place), Some(other)) = (Place::new(), Place::new()) else { return };
    let (one, two) = (place.store(1).await, other.store(1).await);
    one.append(&key("c"), Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    assert_eq!(two.load(&key("c"), ReadRange::All).await.unwrap().version, Version::EMPTY);
    place.remove().await;
    other.remove().await;
}

#[tokio::test]
async fn role_with_table_rights_only_opens_prepared_schema() {
    let Some(mut place) = Place::new() else { return };
    drop(place.store(1).await);
    let role = place.schema.as_str().replace("test_", "role_");
    let rights = "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}; \
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
        REVOKE INSERT, UPDATE, DELETE ON {schema}.memory_migrations FROM {role}";
    place.execute(&rights.replace("{role}", &role)).await;
    let owner = place.config.clone();
    place.config.options(format!("-c role={role}"));
    let store = place.store(1).await;
    let version = store.append(&key("c"), Version::EMPTY, said("t", 0, &["x"])).await.unwrap();
    assert_eq!(store.load(&key("c"), ReadRange::All).await.unwrap().version, version);
    let (leases, turn) = (store.leases().unwrap(), TurnId::new("t").unwrap());
    let token = leases.acquire(&key("c"), &turn, Duration::from_secs(60), None, false).await.unwrap();
    leases.release(&key("c"), token).await.unwrap();
    store.delete(&key("c")).await.unwrap();
    place.config = owner;
    place.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    place.remove().await;
}

#[tokio::test]
async fn unusable_addresses_are_refused_without_being_quoted() {
    let address = PostgresStore::connect("postgres://u@localhost/d?hunter2=1").await.unwrap_err();
    assert!(matches!(address, SetupError::Address), "{address:?}");
    let tls = PostgresStore::connect("postgres://u:hunter2@localhost/d?sslmode=require").await.unwrap_err();
    assert!(matches!(tls, SetupError::NeedsTls), "{tls:?}");
    // Nobody listens on port 1.
    let nobody = PostgresStore::connect("postgres://u:hunter2@127.0.0.1:1/d").await.unwrap_err();
    assert!(matches!(nobody, SetupError::Server(_)), "{nobody:?}");
    for error in [address, tls, nobody] {
        assert_quiet(&error);
    }
}

#[tokio::test]
async fn store_and_its_errors_hide_password() {
    let Some(mut place) = Place::new() else { return };
    let config = place.config.clone();
    place.config.password("hunter2");
    let store = place.store(1).await;
    assert!(!format!("{store:?}").contains("hunter"), "{store:?}");
    place.config.dbname("no_such_database");
    let error = PostgresStore::from_pool(place.pool(1), &place.schema).await.unwrap_err();
    assert!(format!("{error:?}").contains("3D000"), "{error:?}");
    assert_quiet(&error);
    place.config = config;
    place.remove().await;
}

fn assert_quiet(error: &SetupError) {
    let mut shown = format!("{error:?}");
    let mut source: Option<&dyn Error> = Some(error);
    while let Some(error) = source {
        shown += &format!("{error} {error:?}");
        source = error.source();
    }
    assert!(!shown.contains("hun") && !shown.contains("ter2"), "{shown}");
}
