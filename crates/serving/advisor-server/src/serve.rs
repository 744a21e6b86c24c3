//! `serve`: a whole server, and its end.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};
use tower::ServiceExt;

use crate::ChatServer;
use crate::access::limits::ServerLimits;

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
    let serving = accept(listener, server.router(), server.limits, shutdown);
    tokio::select! {
        () = serving => {}
        // Idle connections do not delay the end.
        () = async { drain.await; sleep(LAST_EVENTS).await } => {}
    }
    server.memory.close_unfinished().await.map_err(io::Error::other)
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
        self.memory.close_unfinished().await
    }

    async fn end_turns(&self, timeout: Duration) {
        self.turns.close();
        if tokio::time::timeout(timeout, self.turns.ended()).await.is_err() {
            self.turns.stop_all();
            drop(tokio::time::timeout(LAST_EVENTS, self.turns.ended()).await);
        }
        drop(tokio::time::timeout(LAST_EVENTS, self.turns.relayed()).await);
    }
}

/// Serves connections until `ended`, then lets each answer its request.
///
/// While as many are open as allowed, no further one is accepted. A connection is closed if its next head does not
/// arrive in time, also an idle one. It is closed, too, if its client takes no bytes of an answer.
///
/// # Cancellation
/// Dropping the future closes all connections.
pub(crate) async fn accept(
    mut listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    ended: impl Future<Output = ()>,
) {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    let (graceful, mut connections) = (GracefulShutdown::new(), JoinSet::new());
    let mut ended = pin!(ended);
    loop {
        tokio::select! {
            // It waits a moment if the process has too many open files.
            (stream, _) = Listener::accept(&mut listener), if connections.len() < limits.open_connections => {
                // Otherwise a small chunk waits until the client has acknowledged the one before it. A connection
                // that refuses this still works.
                drop(stream.set_nodelay(true));
                let router = router.clone().map_request(|request: Request<Incoming>| request.map(Body::new));
                let service = TowerToHyperService::new(router);
                let stream = TokioIo::new(WriteTimeout::new(stream, limits.write_timeout));
                let connection = protocol.serve_connection(stream, service);
                connections.spawn(graceful.watch(connection));
            }
            Some(_) = connections.join_next() => {}
            () = &mut ended => break,
        }
    }
    drop(listener);
    graceful.shutdown().await;
}

/// A connection whose peer has to take some of the bytes within a time. A write without progress fails.
///
/// Each byte that the peer takes resets the timeout, so a slow peer keeps its connection. Only writes wait on a
/// socket, which has no flush.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    /// The end of the time, while a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, timeout: Duration) -> Self {
        Self { stream, timeout, deadline: None }
    }

    /// Returns the progress of a write, or fails when it has made none within the time.
    fn limited(
        &mut self,
        progress: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if progress.is_ready() {
            self.deadline = None;
            return progress;
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no bytes")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(progress, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.limited(progress, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn slow_reader_with_progress_gets_everything() {
        let (ours, mut theirs) = duplex(8);
        let mut writer = WriteTimeout::new(ours, TIMEOUT);
        let writing = async {
            writer.write_all(&[7; 108]).await.unwrap();
            drop(writer);
        };
        let reading = async {
            for _ in 0..108 {
                sleep(TIMEOUT - Duration::from_secs(1)).await;
                assert_eq!(theirs.read_u8().await.unwrap(), 7);
            }
        };
        let since = Instant::now();
        tokio::join!(writing, reading);
        assert!(since.elapsed() > 80 * TIMEOUT, "the whole took longer than one time");
    }

    /// The time in which nothing has to be written does not count.
    #[tokio::test(start_paused = true)]
    async fn idle_connection_has_no_deadline() {
        let (ours, mut theirs) = duplex(8);
        let mut writer = WriteTimeout::new(ours, TIMEOUT);
        for _ in 0..3 {
            writer.write_all(&[0; 8]).await.unwrap();
            sleep(3 * TIMEOUT).await;
            theirs.read_exact(&mut [0; 8]).await.unwrap();
        }
    }
}
