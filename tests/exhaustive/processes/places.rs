//! Places of conversations, which several processes can open.

use std::path::PathBuf;

use advisor_chain::postgres::PostgresStore;
use advisor_chain::postgres::deadpool_postgres::tokio_postgres::NoTls;
use advisor_chain::postgres::deadpool_postgres::{Manager, Pool};
use advisor_chain::redis::RedisServer;
use advisor_chain::redis::RedisStore;
use advisor_chain::redis::redis::{Client, cmd};
use advisor_tests::prelude::*;
use advisor_tests::stores::server;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// The data with which a child opens a place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Address {
    File(PathBuf),
    Postgres { url: String, schema: String },
    Redis { url: String, prefix: String },
}

/// A place of one test, removed with it, and a folder for the other files of the test.
pub(crate) struct Place {
    pub(crate) address: Address,
    pub(crate) folder: TempDir,
}

impl Address {
    /// A new store, as a process that has just begun opens it.
    pub(crate) async fn open(&self) -> Arc<dyn ConversationStore> {
        match self {
            Self::File(path) => Arc::new(SqliteStore::open(path).await.unwrap()),
            Self::Postgres { url, schema } => {
                Arc::new(PostgresStore::from_pool(pool(url), schema).await.unwrap())
            }
            Self::Redis { url, prefix } => {
                let client = Client::open(url.as_str()).unwrap();
                Arc::new(RedisStore::from_server(RedisServer::from_client(client, prefix).await.unwrap()))
            }
        }
    }
}

impl Place {
    pub(crate) fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { address: Address::File(folder.path().join("conversations.sqlite")), folder }
    }

    /// A schema, or nothing where there is no server.
    pub(crate) fn postgres() -> Option<Self> {
        let url = server("ADVISOR_POSTGRES_URL")?;
        let schema = format!("test_{}", name().replace('-', "_"));
        Some(Self { address: Address::Postgres { url, schema }, folder: tempfile::tempdir().unwrap() })
    }

    /// A prefix, or nothing where there is no server.
    pub(crate) fn redis() -> Option<Self> {
        let url = server("ADVISOR_REDIS_URL")?;
        let prefix = format!("test:{}", name());
        Some(Self { address: Address::Redis { url, prefix }, folder: tempfile::tempdir().unwrap() })
    }

    pub(crate) async fn remove(self) {
        match self.address {
            Address::File(_) => {}
            Address::Postgres { url, schema } => {
                let client = pool(&url).get().await.unwrap();
                client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
            }
            Address::Redis { url, prefix } => {
                let client = Client::open(url.as_str()).unwrap();
                let mut connection = client.get_multiplexed_async_connection().await.unwrap();
                // Half a second, if nothing is said, is little for a server that many tests write to.
                connection.set_response_timeout(Duration::from_secs(60));
                let keys: Vec<String> =
                    cmd("KEYS").arg(format!("{prefix}:*")).query_async(&mut connection).await.unwrap();
                for key in keys {
                    cmd("DEL").arg(key).exec_async(&mut connection).await.unwrap();
                }
            }
        }
    }
}

fn pool(url: &str) -> Pool {
    let manager = Manager::new(url.parse().unwrap(), NoTls);
    Pool::builder(manager).max_size(2).build().unwrap()
}

/// A name that no other test uses.
pub(crate) fn name() -> String {
    String::from(TurnId::random())
}
