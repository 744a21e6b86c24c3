//! Tests of opening a store, and of refusals to open it.

use std::error::Error;
use std::time::Duration;

use common_advisors::retrieval::{Filter, VectorStore};
use retrieval_postgres::advisor_postgres::SetupError as Cause;
use retrieval_postgres::{PostgresVectors, SetupError};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{Place, document, found};

async fn opened(place: &Place, dimensions: usize) -> Result<PostgresVectors, SetupError> {
    PostgresVectors::from_pool(place.pool(1), &place.schema, dimensions).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_opens_prepare_new_schema_once() {
    let Some(place) = Place::new() else { return };
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        let (pool, schema) = (place.pool(1), place.schema.clone());
        opening.spawn(async move { PostgresVectors::from_pool(pool, &schema, 3).await });
    }
    for store in opening.join_all().await {
        store.unwrap();
    }
    assert_eq!(place.number("SELECT count(*) FROM {schema}.vector_migrations").await, 1);
    place.remove().await;
}

/// Stores of different schemas share the extension of a new database.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_opens_create_extension_once() {
    let (Some(place), Some(mut other)) = (Place::new(), Place::new()) else { return };
    let database = place.schema.clone();
    let admin = place.client().await;
    admin.batch_execute(&format!("CREATE DATABASE {database} TEMPLATE template0")).await.unwrap();
    let mut opening = JoinSet::new();
    for number in 0..4 {
        other.config.dbname(&database);
        let pool = other.pool(1);
        let schema = format!("schema_{number}");
        opening.spawn(async move { PostgresVectors::from_pool(pool, &schema, 3).await });
    }
    for store in opening.join_all().await {
        store.unwrap();
    }
    // The extension of the new database stands in a schema outside the search path.
    let moved = "CREATE SCHEMA \"Ext'ensions\"; ALTER EXTENSION vector SET SCHEMA \"Ext'ensions\"";
    other.execute(moved).await;
    let store = opened(&other, 3).await.unwrap();
    store.upsert("acme", vec![document("a", [1.0, 0.0, 0.0])]).await.unwrap();
    store.create_index().await.unwrap();
    assert_eq!(found(&store, 1, &Filter::in_tenant("acme")).await, ["a"]);
    drop(store);
    admin.batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)")).await.unwrap();
}

/// The opener waits for the lock of another one. Its pool has one connection.
#[tokio::test]
async fn dropped_opening_leaves_no_waiting_connection() {
    let Some(mut place) = Place::new() else { return };
    let database = place.schema.clone();
    let admin = place.client().await;
    admin.batch_execute(&format!("CREATE DATABASE {database} TEMPLATE template0")).await.unwrap();
    place.config.dbname(&database);
    let (holder, pool) = (place.client().await, place.pool(1));
    holder.query_one("SELECT pg_advisory_lock($1)", &[&0x6164_7669_7665_6374_i64]).await.unwrap();
    let waiting =
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
    let mut opening = Box::pin(PostgresVectors::from_pool(pool.clone(), &place.schema, 3));
    tokio::select! {
        opened = &mut opening => panic!("{opened:?}"),
        () = async { while holder.query_opt(waiting, &[]).await.unwrap().is_none() {} } => {}
    }
    drop(opening);
    // The pool makes another connection, which does not wait for the lock.
    let client = pool.get().await.unwrap();
    timeout(Duration::from_secs(20), client.query_one("SELECT 1", &[])).await.unwrap().unwrap();
    admin.batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)")).await.unwrap();
}

#[tokio::test]
async fn database_without_extension_tells_what_to_install() {
    let Some(mut place) = Place::new() else { return };
    let database = place.schema.clone();
    let role = database.replace("test_", "role_");
    let admin = place.client().await;
    admin.batch_execute(&format!("CREATE DATABASE {database} TEMPLATE template0")).await.unwrap();
    admin.batch_execute(&format!("CREATE ROLE {role}")).await.unwrap();
    place.config.dbname(&database).options(format!("-c role={role}"));
    let refused = opened(&place, 3).await.unwrap_err();
    assert!(matches!(refused, SetupError::NoExtension { .. }), "{refused:?}");
    assert!(refused.to_string().contains("install pgvector"));
    admin.batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)")).await.unwrap();
    admin.batch_execute(&format!("DROP ROLE {role}")).await.unwrap();
}

#[tokio::test]
async fn old_extension_is_refused() {
    let Some(mut place) = Place::new() else { return };
    let database = place.schema.clone();
    let admin = place.client().await;
    admin.batch_execute(&format!("CREATE DATABASE {database} TEMPLATE template0")).await.unwrap();
    place.config.dbname(&database);
    place.execute("CREATE EXTENSION vector").await;
    place.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'").await;
    let refused = opened(&place, 3).await;
    assert!(matches!(&refused, Err(SetupError::OldExtension { found }) if found == "0.7.4"), "{refused:?}");
    admin.batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)")).await.unwrap();
}

#[tokio::test]
async fn schema_of_newer_version_is_refused() {
    let Some(place) = Place::new() else { return };
    drop(place.store(1).await);
    place.execute("INSERT INTO {schema}.vector_migrations (version) VALUES (99)").await;
    let refused = opened(&place, 3).await;
    assert!(
        matches!(refused, Err(SetupError::Database(Cause::Newer { found: 99, known: 1 }))),
        "{refused:?}"
    );
    place.remove().await;
}

#[tokio::test]
async fn schema_of_other_dimensions_is_refused() {
    let Some(place) = Place::new() else { return };
    drop(place.store(1).await);
    let refused = opened(&place, 4).await;
    assert!(matches!(refused, Err(SetupError::Dimensions { stored: 3, wanted: 4 })), "{refused:?}");
    for dimensions in [0, 16_001] {
        let refused = opened(&place, dimensions).await;
        assert!(
            matches!(refused, Err(SetupError::Unstorable { found }) if found == dimensions),
            "{refused:?}"
        );
    }
    place.remove().await;
}

#[tokio::test]
async fn role_with_table_rights_only_opens_prepared_schema() {
    let Some(mut place) = Place::new() else { return };
    drop(place.store(1).await);
    let role = place.schema.replace("test_", "role_");
    let rights = "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}; \
        GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.documents TO {role}; \
        GRANT SELECT ON {schema}.vector_migrations TO {role}";
    place.execute(&rights.replace("{role}", &role)).await;
    let owner = place.config.clone();
    place.config.options(format!("-c role={role}"));
    let (store, filter) = (place.store(1).await, Filter::in_tenant("acme"));
    store.upsert("acme", vec![document("a", [1.0, 0.0, 0.0])]).await.unwrap();
    assert_eq!(found(&store, 1, &filter).await, ["a"]);
    assert_eq!(store.delete(&filter).await.unwrap(), 1);
    assert!(store.create_index().await.is_err());
    place.config = owner;
    place.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    place.remove().await;
}

#[tokio::test]
async fn unusable_addresses_are_refused_without_being_quoted() {
    let address = PostgresVectors::connect("postgres://u@localhost/d?hunter2=1", 3).await.unwrap_err();
    assert!(matches!(address, SetupError::Database(Cause::Address)), "{address:?}");
    let tls = PostgresVectors::connect("postgres://u:hunter2@localhost/d?sslmode=require", 3).await;
    let tls = tls.unwrap_err();
    assert!(matches!(tls, SetupError::Database(Cause::NeedsTls)), "{tls:?}");
    // Nobody listens on port 1.
    let nobody = PostgresVectors::connect("postgres://u:hunter2@127.0.0.1:1/d", 3).await.unwrap_err();
    assert!(matches!(nobody, SetupError::Database(Cause::Server(_))), "{nobody:?}");
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
    let error = opened(&place, 3).await.unwrap_err();
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
