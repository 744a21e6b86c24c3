use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use advisor_core::{Error, ErrorKind, Result};
use tokio::time::{Instant, timeout_at};

/// The stream was away if its first poll after the end of the time comes later than this: the timer woke nobody.
const AWAY: Duration = Duration::from_secs(1);

/// Awaits a future for at most this time. `what` is the text of the error.
///
/// If the stream was away at the end of the time, the time starts again: the future made no progress either. So there
/// is no bound for a stream that is always away then, such as one that is polled less often than `time`.
pub(crate) async fn within<F: Future>(time: Duration, what: &'static str, future: F) -> Result<F::Output> {
    let mut future = pin!(future);
    loop {
        let Some(due) = Instant::now().checked_add(time) else { return Ok(future.await) };
        match timeout_at(due, &mut future).await {
            Ok(output) => return Ok(output),
            Err(_) if due.elapsed() > AWAY => {}
            Err(_) => return Err(Error::new(ErrorKind::Timeout, what)),
        }
    }
}
