//! Runs statements, each in a transaction with a timeout.

use std::time::Duration;

use common_advisors::retrieval::VectorError;
use deadpool_postgres::{Client, Pool};
use futures::future::join3;
use scopeguard::{ScopeGuard, guard};
use tokio::time::timeout;
use tokio_postgres::{Error, Row};

use crate::failure::{ends_connection, from_pool, from_statement, lost_a_race};
use crate::statement::Statement;

/// The maximum number of attempts at a statement that loses races, such as a deadlock of a deletion and an update.
const ATTEMPTS: u32 = 8;

/// Returns a connection of the pool.
pub(crate) async fn client(pool: &Pool, limit: Duration) -> Result<Client, VectorError> {
    match timeout(limit, pool.get()).await {
        Ok(client) => client.map_err(from_pool),
        Err(_) => Err(VectorError::unavailable("no connection came free or was made in time")),
    }
}

/// Runs a statement in a transaction with these settings, and returns its rows.
pub(crate) async fn run(
    pool: &Pool,
    limit: Duration,
    settings: &str,
    statement: &Statement,
) -> Result<Vec<Row>, VectorError> {
    // Until its answer arrives, a connection cannot be reused. The guard closes it if it is lost, if the timeout
    // expires, or if this future is dropped.
    let client = guard(client(pool, limit).await?, |client| drop(Client::take(client)));
    // The server's timeout stops a statement that nobody waits for any more. Zero would mean none.
    let milliseconds = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).max(1);
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = {milliseconds}; {settings}"
    );
    let mut again = 1..ATTEMPTS;
    let answer = loop {
        match timeout(limit, transaction(&client, &begin, statement)).await {
            Err(_) => return Err(VectorError::unavailable("the server did not answer in time")),
            Ok(Err(error)) if lost_a_race(&error) && again.next().is_some() => {}
            Ok(answer) => break answer,
        }
    };
    if !answer.as_ref().is_err_and(ends_connection) {
        drop(ScopeGuard::into_inner(client));
    }
    answer.map_err(from_statement)
}

/// Sends the parts of a transaction at once, so that it costs one round trip.
///
/// After an error, the server ignores the rest of the transaction up to its end.
async fn transaction(client: &Client, begin: &str, statement: &Statement) -> Result<Vec<Row>, Error> {
    let parameters = statement.parameters();
    // The futures send when they are polled first, which happens in this order.
    let (begun, answer, ended) = join3(
        client.batch_execute(begin),
        client.query_typed(&statement.sql, &parameters),
        client.batch_execute("COMMIT"),
    )
    .await;
    begun?;
    let rows = answer?;
    ended?;
    Ok(rows)
}
