//! Runs statements, each in a transaction with a timeout.

use std::time::Duration;

use advisor_postgres::{ServerError, connection, give_back, lost_a_race};
use deadpool_postgres::{Client, Pool};
use futures::future::join3;
use tokio::time::timeout;
use tokio_postgres::{Error, Row};

use crate::statement::Statement;

/// The maximum number of attempts at a statement that loses races, such as a deadlock of a deletion and an update.
const ATTEMPTS: u32 = 8;

/// Runs a statement in a transaction with these settings, and returns its rows.
pub(crate) async fn run(
    pool: &Pool,
    limit: Duration,
    settings: &str,
    statement: &Statement,
) -> Result<Vec<Row>, ServerError> {
    let client = connection(pool, limit).await?;
    // The server's timeout stops a statement that nobody waits for any more. Zero would mean none.
    let milliseconds = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).max(1);
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = {milliseconds}; {settings}"
    );
    let mut again = 1..ATTEMPTS;
    let answer = loop {
        match timeout(limit, transaction(&client, &begin, statement)).await {
            Err(_) => return Err(ServerError::silent()),
            Ok(Err(error)) if lost_a_race(&error) && again.next().is_some() => {}
            Ok(answer) => break answer,
        }
    };
    Ok(give_back(client, answer)?)
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
