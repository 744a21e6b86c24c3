//! `serve`: a whole server, and its end.

mod accept;
mod write_timeout;

use std::io;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use self::accept::accept;
use crate::ChatServer;

/// The time for clients to read that their turns were stopped.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Serves until `signal`, then ends.
///
/// From then on no turn begins. Turns that run may end within `timeout`, and are stopped after it. Memory then closes
/// the stopped ones.
///
/// # Errors
/// If the listener is not on the loopback interface and the server has neither tokens nor authentication. If the
/// listener fails. If the store refuses the ends of stopped turns.
pub async fn serve(
    listener: TcpListener,
    server: ChatServer,
    signal: impl Future<Output = ()> + Send + 'static,
    timeout: Duration,
) -> io::Result<()> {
    if !server.has_users() && !listener.local_addr()?.ip().is_loopback() {
        let message = "a server without tokens or authentication serves loopback addresses only; set tokens, or listen on \
             127.0.0.1";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let (ending, ended) = oneshot::channel::<()>();
    let draining = server.clone();
    let drain = async move {
        signal.await;
        draining.end_turns(timeout).await;
        let _ = ending.send(());
    };
    let shutdown = async move { drop(ended.await) };
    let serving = accept(listener, server.router(), server.limits(), shutdown);
    tokio::select! {
        () = serving => {}
        // Idle connections do not delay the end.
        () = async { drain.await; tokio::time::sleep(LAST_EVENTS).await } => {}
    }
    server.memory().close_unfinished().await.map_err(io::Error::other)
}

impl ChatServer {
    /// Ends the turns, for an application that serves the [router](Self::router) by itself. Await it before the
    /// application exits; [`serve`] does so.
    ///
    /// From then on no turn begins: requests for one are answered with 503. Turns that run may end within `timeout`, and
    /// are stopped after it. Memory then writes their ends, with the text that they had shown.
    ///
    /// # Errors
    /// If the store refuses the end of a stopped turn.
    pub async fn stop(&self, timeout: Duration) -> advisor_core::Result<()> {
        self.end_turns(timeout).await;
        self.memory().close_unfinished().await
    }

    async fn end_turns(&self, timeout: Duration) {
        self.turns().close();
        if tokio::time::timeout(timeout, self.turns().ended()).await.is_err() {
            self.turns().stop_all();
            drop(tokio::time::timeout(LAST_EVENTS, self.turns().ended()).await);
        }
        drop(tokio::time::timeout(LAST_EVENTS, self.turns().relayed()).await);
    }
}
