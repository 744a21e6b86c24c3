//! The versions of the schema, and the migration of a database to the newest one.

use deadpool_postgres::{Client, Transaction};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::failure::before_sending;
use crate::schema::{Schema, SetupError};

/// The n-th migration leads to version n. A released migration never changes; a new one follows it.
const MIGRATIONS: &[&str] = &[concat!(
    include_str!("migrations/1/tables.sql"),
    include_str!("migrations/1/leases.sql"),
    include_str!("migrations/1/loads.sql"),
    include_str!("migrations/1/appends.sql"),
)];

/// The first half of the key of the advisory lock that serialises migrations; the second half is a hash of the
/// schema's name.
const LOCK: i32 = 0x6164_7663;

/// Migrates the schema to the newest version in one transaction, while concurrent migrations wait. An up-to-date
/// schema is only read, so that a role without the right to create one can use it.
pub(crate) async fn migrate(client: &mut Client, schema: &Schema) -> Result<(), SetupError> {
    let transaction = client.transaction().await.map_err(before_sending)?;
    check_encoding(&transaction).await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", &[&LOCK, &schema.name()])
        .await
        .map_err(before_sending)?;
    let found = version(&transaction, schema).await?;
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    if found > known {
        return Err(SetupError::Newer { found, known });
    }
    let missing = (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found);
    for (version, sql) in missing {
        let note = "INSERT INTO {schema}.memory_migrations (version) VALUES ($1)";
        transaction.batch_execute(&schema.name_in(sql)).await.map_err(not_migrated)?;
        transaction.execute(&schema.name_in(note), &[&version]).await.map_err(before_sending)?;
    }
    Ok(transaction.commit().await.map_err(before_sending)?)
}

/// Returns the version of the schema. Creates a missing schema at version 0.
async fn version(transaction: &Transaction<'_>, schema: &Schema) -> Result<i32, SetupError> {
    let there: bool = transaction
        .query_one(
            "SELECT to_regclass($1::text) IS NOT NULL",
            &[&schema.name_in("{schema}.memory_migrations")],
        )
        .await
        .and_then(|row| row.try_get(0))
        .map_err(before_sending)?;
    if !there {
        let make = "CREATE SCHEMA IF NOT EXISTS {schema}; \
            CREATE TABLE {schema}.memory_migrations \
                (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(&schema.name_in(make)).await.map_err(before_sending)?;
        return Ok(0);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM {schema}.memory_migrations";
    let row = transaction.query_one(&schema.name_in(newest), &[]).await.map_err(before_sending)?;
    Ok(row.try_get(0).map_err(before_sending)?)
}

fn not_migrated(error: Error) -> SetupError {
    match error.code() {
        Some(&SqlState::DUPLICATE_TABLE) => SetupError::Occupied,
        _ => before_sending(error).into(),
    }
}

async fn check_encoding(transaction: &Transaction<'_>) -> Result<(), SetupError> {
    let row = transaction.query_one("SHOW server_encoding", &[]).await.map_err(before_sending)?;
    let found: String = row.try_get(0).map_err(before_sending)?;
    if found == "UTF8" { Ok(()) } else { Err(SetupError::Encoding { found }) }
}
