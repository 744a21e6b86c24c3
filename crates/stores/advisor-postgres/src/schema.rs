//! `Schema`: where the tables of a store are; `Preparation`: their migration to the newest version.

use deadpool_postgres::Pool;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::{Connection, ServerError, SetupError, TIMEOUT, connection, give_back};

/// The checked name of the PostgreSQL schema with the store's tables and functions.
#[derive(Debug, Clone)]
pub struct Schema(String);

/// The maximum length of a name in bytes; PostgreSQL would truncate a longer one.
const LONGEST: usize = 63;

impl Schema {
    /// Checks a name.
    ///
    /// # Errors
    /// [`SetupError::SchemaName`] unless the name has 1 to 63 characters of `a-z`, `0-9` and `_`, and begins neither with
    /// a digit nor with `pg_`, which the server reserves.
    pub fn new(name: &str) -> Result<Self, SetupError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins_well = !name.starts_with(|first: char| first.is_ascii_digit()) && !name.starts_with("pg_");
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(allowed) || !begins_well {
            return Err(SetupError::SchemaName);
        }
        Ok(Self(name.into()))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Replaces `{schema}` in a text by the schema's quoted name.
    #[must_use]
    pub fn name_in(&self, sql: &str) -> String {
        sql.replace("{schema}", &format!("\"{}\"", self.0))
    }
}

/// The first half of the key of the advisory lock that serialises migrations; the second half is a hash of the
/// schema's name.
const LOCK: i32 = 0x6164_7663;

/// A transaction in which a schema is prepared, while concurrent ones wait. If it is dropped, its connection closes, and
/// nothing has changed.
#[derive(Debug)]
pub struct Preparation {
    /// The connection, within the transaction.
    pub connection: Connection,
    schema: Schema,
}

impl Preparation {
    /// Begins the preparation. It may wait for another client for ever, so the caller has a timeout.
    ///
    /// # Errors
    /// [`SetupError::Encoding`] and [`SetupError::Server`].
    pub async fn begin(pool: &Pool, schema: &Schema) -> Result<Self, SetupError> {
        let begun = Self { connection: connection(pool, TIMEOUT).await?, schema: schema.clone() };
        let found = begun.lock().await.map_err(ServerError::from)?;
        if found == "UTF8" { Ok(begun) } else { Err(SetupError::Encoding { found }) }
    }

    /// Waits for the lock. Returns the encoding of the database.
    async fn lock(&self) -> Result<String, Error> {
        self.connection.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
        self.connection.execute(lock, &[&LOCK, &self.schema.name()]).await?;
        self.connection.query_one("SHOW server_encoding", &[]).await?.try_get(0)
    }

    /// Migrates the schema to the newest version, or creates it. An up-to-date schema is only read, so that a role without
    /// the right to create one can use it.
    ///
    /// The n-th migration leads to version n. `{schema}` stands for the schema's name in it. The table of this name keeps
    /// the versions.
    ///
    /// # Errors
    /// [`SetupError::Newer`], [`SetupError::Occupied`] and [`SetupError::Server`].
    pub async fn migrate(
        &self,
        table: &str,
        migrations: &[impl AsRef<str> + Sync],
    ) -> Result<(), SetupError> {
        let known = i32::try_from(migrations.len()).unwrap_or(i32::MAX);
        let table = self.schema.name_in(&format!("{{schema}}.{table}"));
        let found = self.version(&table).await.map_err(ServerError::from)?;
        if found > known {
            return Err(SetupError::Newer { found, known });
        }
        for (version, sql) in (1..).zip(migrations).filter(|(version, _)| *version > found) {
            let sql = self.schema.name_in(sql.as_ref());
            let step = format!("{sql}; INSERT INTO {table} (version) VALUES ({version})");
            self.connection.batch_execute(&step).await.map_err(not_migrated)?;
        }
        Ok(())
    }

    /// Returns the version of the schema. Creates a missing schema at version 0.
    async fn version(&self, table: &str) -> Result<i32, Error> {
        let there = "SELECT to_regclass($1::text) IS NOT NULL";
        if self.connection.query_one(there, &[&table]).await?.try_get(0)? {
            let newest = format!("SELECT coalesce(max(version), 0) FROM {table}");
            return self.connection.query_one(&newest, &[]).await?.try_get(0);
        }
        let make = format!(
            "CREATE SCHEMA IF NOT EXISTS {{schema}}; CREATE TABLE {table} \
                (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        );
        self.connection.batch_execute(&self.schema.name_in(&make)).await?;
        Ok(0)
    }

    /// Commits the transaction, and returns the connection to its pool.
    ///
    /// # Errors
    /// [`SetupError::Server`].
    pub async fn commit(self) -> Result<(), SetupError> {
        let committed = self.connection.batch_execute("COMMIT").await;
        give_back(self.connection, committed).map_err(|error| ServerError::from(error).into())
    }
}

fn not_migrated(error: Error) -> SetupError {
    match error.code() {
        Some(&SqlState::DUPLICATE_TABLE) => SetupError::Occupied,
        _ => ServerError::from(error).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_care_in_sql_are_refused() {
        let longest = "a".repeat(LONGEST);
        for name in ["advisor_memory", "_x", "a1", "select", longest.as_str()] {
            assert_eq!(Schema::new(name).unwrap().name(), name);
        }
        let longer = "a".repeat(LONGEST + 1);
        for name in ["", "1a", "pg_a", "A", "a-b", "a\"b", "a;b", "a b", "ä", "a\0", longer.as_str()] {
            assert!(matches!(Schema::new(name), Err(SetupError::SchemaName)), "{name}");
        }
        assert_eq!(
            Schema::new("select").unwrap().name_in("{schema}.x, {schema}.y"),
            "\"select\".x, \"select\".y"
        );
    }
}
