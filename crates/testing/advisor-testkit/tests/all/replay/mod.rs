//! The replay server over real sockets.

mod answers;
mod client;
mod faults;

use std::time::Duration;

/// Two events with characters of several bytes.
const BODY: &str = "data: {\"text\":\"Grüße 🌍\"}\r\n\r\ndata: [DONE]\r\n\r\n";

/// Turns a wait that would never end into a failure.
#[track_caller]
#[allow(clippy::panic, reason = "part of the tests")]
fn soon<F: Future>(wait: F) -> impl Future<Output = F::Output> {
    let place = std::panic::Location::caller();
    async move {
        let outcome = tokio::time::timeout(Duration::from_secs(20), wait).await;
        outcome.unwrap_or_else(|_| panic!("still waiting at {place}"))
    }
}
