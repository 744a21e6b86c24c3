use std::future::{Future, IntoFuture, pending};
use std::io;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::Service;

/// Serves until `signal`. Then no new connection is taken; turns that run may end within `patience`, and are stopped
/// after it. At last everything that turns left is written.
///
/// # Errors
/// If the listener fails, or the store cannot take what is to be written.
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
        if ends.await.is_ok() {
            sleep(patience).await;
            service.stop.send_replace(true);
        }
        pending::<()>().await;
    };
    let server = axum::serve(listener, service.clone().router()).with_graceful_shutdown(signal);
    tokio::select! {
        ended = server.into_future() => ended?,
        () = stop => {}
    }
    service.memory.close_unfinished().await.map_err(io::Error::other)
}
