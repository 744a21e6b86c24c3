//! `serve`: runs the service until a signal, and then ends its turns in good order.

use std::future::{Future, IntoFuture, pending};
use std::io;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::Service;

/// The time for clients to read that their turns were stopped.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves until `signal`. Then no new connection is taken; turns that run may end within `patience`, and are stopped
/// after it. At last everything that turns left is written.
///
/// A client that does not read or does not send keeps its connection for a second more. Of its turn nothing is written
/// here; the next turn of the conversation closes it, as after a crash.
///
/// # Errors
/// If the listener fails, or the store refuses the ends of stopped turns.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    signal: impl Future<Output = ()> + Send + 'static,
    patience: Duration,
) -> io::Result<()> {
    let (ending, ends) = oneshot::channel();
    let signal = async {
        signal.await;
        let _ = ending.send(());
    };
    let stop = async {
        if ends.await.is_err() {
            return pending().await;
        }
        sleep(patience).await;
        service.stop.send_replace(true);
        sleep(LAST_WORDS).await;
    };
    let server = axum::serve(listener, service.clone().router()).with_graceful_shutdown(signal);
    tokio::select! {
        ended = server.into_future() => ended?,
        () = stop => {}
    }
    service.memory.close_unfinished().await.map_err(io::Error::other)
}
