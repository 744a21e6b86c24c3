//! The versions of the schema, and the migration of a database to the newest one.

use advisor_postgres::{Connection, Preparation, Schema, ServerError};
use deadpool_postgres::Pool;
use tokio_postgres::Error;

use crate::SetupError;
use crate::schema::Names;
use crate::setup_error::refused;

/// The n-th migration leads to version n. A released migration never changes; a new one follows it.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/1.sql")];

/// The key of the advisory lock of those who create the extension in a database, whose schemas share it.
const LOCK: i64 = 0x6164_7669_7665_6374;

/// The oldest version of the extension that can read an index on until enough documents pass a filter.
const OLDEST_EXTENSION: (u32, u32) = (0, 8);

/// Prepares the extension and the schema in one transaction.
pub(crate) async fn prepare(pool: &Pool, schema: Schema, dimensions: usize) -> Result<Names, SetupError> {
    let preparation = Preparation::begin(pool, &schema).await?;
    let names = Names { schema, extension: extension(&preparation.connection).await? };
    let migrations = MIGRATIONS.map(|sql| names.in_sql(sql).replace("{dimensions}", &dimensions.to_string()));
    preparation.migrate("vector_migrations", &migrations).await?;
    let stored = stored_dimensions(&preparation.connection, &names).await.map_err(refused)?;
    if stored != dimensions {
        return Err(SetupError::Dimensions { stored, wanted: dimensions });
    }
    preparation.commit().await?;
    Ok(names)
}

/// Returns the quoted schema of the extension `vector`, which is created if it is missing.
async fn extension(connection: &Connection) -> Result<String, SetupError> {
    let find = "SELECT extversion, quote_ident(nspname) FROM pg_extension \
        JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'";
    let mut row = connection.query_opt(find, &[]).await.map_err(refused)?;
    if row.is_none() {
        connection.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(refused)?;
        let created = connection.batch_execute("CREATE EXTENSION IF NOT EXISTS vector").await;
        created.map_err(|error| SetupError::NoExtension { source: ServerError::from(error).source })?;
        row = connection.query_opt(find, &[]).await.map_err(refused)?;
    }
    let missing = || SetupError::NoExtension { source: "it was dropped meanwhile".into() };
    let row = row.ok_or_else(missing)?;
    let found: String = row.try_get(0).map_err(refused)?;
    let mut parts = found.split('.').map(|part| part.parse().unwrap_or(0));
    if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < OLDEST_EXTENSION {
        return Err(SetupError::OldExtension { found });
    }
    row.try_get(1).map_err(refused)
}

/// Returns the number of dimensions of the embeddings in the schema, which is part of their type.
async fn stored_dimensions(connection: &Connection, names: &Names) -> Result<usize, Error> {
    let find = "SELECT atttypmod FROM pg_attribute \
        WHERE attrelid = to_regclass($1::text) AND attname = 'embedding'";
    let row = connection.query_one(find, &[&names.in_sql("{schema}.documents")]).await?;
    Ok(usize::try_from(row.try_get::<_, i32>(0)?).unwrap_or(0))
}
