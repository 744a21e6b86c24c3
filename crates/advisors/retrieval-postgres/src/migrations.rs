//! The versions of the schema, and the migration of a database to the newest one.

use common_advisors::retrieval::VectorError;
use deadpool_postgres::{Client, Transaction};
use tokio_postgres::{Error, Row};

use crate::SetupError;
use crate::failure::{from_statement, reason};
use crate::schema::Names;

/// The n-th migration leads to version n. A released migration never changes; a new one follows it.
const MIGRATIONS: &[&str] = &[include_str!("migrations/1.sql")];

/// The key of the advisory lock that serialises migrations in a database, whose schemas share the extension.
const LOCK: i64 = 0x6164_7669_7665_6374;

/// The oldest version of the extension that can read an index on until enough documents pass a filter.
const OLDEST_EXTENSION: (u32, u32) = (0, 8);

/// Migrates the schema to the newest version in one transaction, while concurrent migrations wait. An up-to-date
/// schema is only read, so that a role without the right to create one can use it.
pub(crate) async fn migrate(
    client: &mut Client,
    schema: &str,
    dimensions: usize,
) -> Result<Names, SetupError> {
    let transaction = client.transaction().await.map_err(store)?;
    check_encoding(&transaction).await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(store)?;
    let names = Names { schema: schema.into(), extension: extension(&transaction).await? };
    let found = version(&transaction, &names).await?;
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    if found > known {
        return Err(SetupError::Newer { found, known });
    }
    for (version, sql) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        let sql = names.in_sql(sql).replace("{dimensions}", &dimensions.to_string());
        let note = names.in_sql("INSERT INTO {schema}.vector_migrations (version) VALUES ($1)");
        transaction.batch_execute(&sql).await.map_err(store)?;
        transaction.execute(&note, &[&version]).await.map_err(store)?;
    }
    check_dimensions(&transaction, &names, dimensions).await?;
    transaction.commit().await.map_err(store)?;
    Ok(names)
}

/// Returns the quoted schema of the extension `vector`, which is created if it is missing.
async fn extension(transaction: &Transaction<'_>) -> Result<String, SetupError> {
    let find = "SELECT extversion, quote_ident(nspname) FROM pg_extension \
        JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'";
    let mut row = transaction.query_opt(find, &[]).await.map_err(store)?;
    if row.is_none() {
        let created = transaction.batch_execute("CREATE EXTENSION vector").await;
        created.map_err(|error| SetupError::NoExtension { source: reason(error) })?;
        row = transaction.query_opt(find, &[]).await.map_err(store)?;
    }
    let row = row.ok_or_else(|| VectorError::unavailable("the extension was dropped meanwhile"))?;
    let found: String = column(&row, 0)?;
    let mut parts = found.split('.').map(|part| part.parse().unwrap_or(0));
    if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < OLDEST_EXTENSION {
        return Err(SetupError::OldExtension { found });
    }
    column(&row, 1)
}

/// Returns the version of the schema. Creates a missing schema at version 0.
async fn version(transaction: &Transaction<'_>, names: &Names) -> Result<i32, SetupError> {
    let table = names.in_sql("{schema}.vector_migrations");
    let there = "SELECT to_regclass($1::text) IS NOT NULL";
    let row = transaction.query_one(there, &[&table]).await.map_err(store)?;
    if !column::<bool>(&row, 0)? {
        let make = "CREATE SCHEMA IF NOT EXISTS {schema}; \
            CREATE TABLE {schema}.vector_migrations \
                (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(&names.in_sql(make)).await.map_err(store)?;
        return Ok(0);
    }
    let newest = format!("SELECT coalesce(max(version), 0) FROM {table}");
    column(&transaction.query_one(&newest, &[]).await.map_err(store)?, 0)
}

/// Checks that the embeddings in the schema have this number of dimensions, which is part of their type.
async fn check_dimensions(
    transaction: &Transaction<'_>,
    names: &Names,
    wanted: usize,
) -> Result<(), SetupError> {
    let find = "SELECT atttypmod FROM pg_attribute \
        WHERE attrelid = to_regclass($1::text) AND attname = 'embedding'";
    let table = names.in_sql("{schema}.documents");
    let row = transaction.query_one(find, &[&table]).await.map_err(store)?;
    let stored = usize::try_from(column::<i32>(&row, 0)?).unwrap_or(0);
    if stored == wanted { Ok(()) } else { Err(SetupError::Dimensions { stored, wanted }) }
}

async fn check_encoding(transaction: &Transaction<'_>) -> Result<(), SetupError> {
    let row = transaction.query_one("SHOW server_encoding", &[]).await.map_err(store)?;
    let found: String = column(&row, 0)?;
    if found == "UTF8" { Ok(()) } else { Err(SetupError::Encoding { found }) }
}

fn column<T: for<'a> tokio_postgres::types::FromSql<'a>>(row: &Row, at: usize) -> Result<T, SetupError> {
    row.try_get(at).map_err(store)
}

fn store(error: Error) -> SetupError {
    SetupError::Store(from_statement(error))
}
