//! `within`: a timeout that starts again if the stream was not polled at its end.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use advisor_core::{AWAY_AFTER, Error, ErrorKind, Result};
use tokio::time::{Instant, timeout_at};

/// Awaits a future for at most this time. `what` is the text of the error.
///
/// The future makes progress only while it is polled. If the first poll after the end of the time is later than
/// [`AWAY_AFTER`], the time starts again. So there is no limit for a stream that is polled less often than `time`.
pub(crate) async fn within<F: Future>(time: Duration, what: &'static str, future: F) -> Result<F::Output> {
    let mut future = pin!(future);
    loop {
        let Some(due) = Instant::now().checked_add(time) else { return Ok(future.await) };
        match timeout_at(due, &mut future).await {
            Ok(output) => return Ok(output),
            Err(_) if due.elapsed() > AWAY_AFTER => {}
            Err(_) => return Err(Error::new(ErrorKind::Timeout, what)),
        }
    }
}
