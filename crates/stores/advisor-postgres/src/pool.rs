//! The pool: how it is made, and how a connection leaves it.

use std::time::Duration;

use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use scopeguard::{ScopeGuard, guard};
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, Error, NoTls};

use crate::failure::ends_connection;
use crate::{ServerError, SetupError};

/// The maximum size of the pool that [`pool`] creates.
const CONNECTIONS: usize = 16;

/// The default timeout of getting a connection and of getting an answer, each.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Creates a pool of up to 16 connections, without TLS, to the database at this address, such as
/// `postgres://user:password@host:5432/database`.
///
/// # Errors
/// [`SetupError::Address`], and [`SetupError::NeedsTls`] for an address with `sslmode=require`.
pub fn pool(address: &str) -> Result<Pool, SetupError> {
    // The parser's error may quote the address, so it is dropped.
    let mut config: Config = address.parse().map_err(|_| SetupError::Address)?;
    if config.get_ssl_mode() == SslMode::Require {
        return Err(SetupError::NeedsTls);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(TIMEOUT);
    }
    let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let pool = Pool::builder(Manager::from_config(config, NoTls, fast));
    let pool = pool.max_size(CONNECTIONS).runtime(Runtime::Tokio1).build();
    pool.map_err(|error| ServerError::lasting(error).into())
}

/// A connection that closes when it is dropped, unless it is [given back](give_back).
pub type Connection = ScopeGuard<Client, fn(Client)>;

/// Takes a connection from the pool.
///
/// Until its answer arrives, a connection cannot be reused. So this one closes if it is lost, if a timeout expires, or if
/// the future that waits for the answer is dropped.
///
/// # Errors
/// [`ServerError`] if no connection came free or was made within `limit`.
pub async fn connection(pool: &Pool, limit: Duration) -> Result<Connection, ServerError> {
    let client = timeout(limit, pool.get()).await.map_err(|_| ServerError::none_free())??;
    Ok(guard(client, |client| drop(Client::take(client))))
}

/// Returns the connection to its pool when it has answered, unless the answer is an error after which it is unusable.
///
/// # Errors
/// That of the answer.
pub fn give_back<T>(connection: Connection, answer: Result<T, Error>) -> Result<T, Error> {
    if !answer.as_ref().is_err_and(ends_connection) {
        drop(ScopeGuard::into_inner(connection));
    }
    answer
}
