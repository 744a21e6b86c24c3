use std::pin::pin;
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
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// Serves connections until `ended`, then lets each answer its request.
///
/// A connection whose next head does not arrive within `head_timeout` is closed, also an idle one.
///
/// # Cancellation
/// Dropping the future closes all connections.
pub(crate) async fn accept(
    mut listener: TcpListener,
    router: Router,
    head_timeout: Duration,
    ended: impl Future<Output = ()>,
) {
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(head_timeout);
    let (graceful, mut connections) = (GracefulShutdown::new(), JoinSet::new());
    let mut ended = pin!(ended);
    loop {
        tokio::select! {
            // It waits a moment if the process has too many open files.
            (stream, _) = Listener::accept(&mut listener) => {
                let router = router.clone().map_request(|request: Request<Incoming>| request.map(Body::new));
                let service = TowerToHyperService::new(router);
                let connection = protocol.serve_connection(TokioIo::new(stream), service);
                connections.spawn(graceful.watch(connection));
            }
            Some(_) = connections.join_next() => {}
            () = &mut ended => break,
        }
    }
    drop(listener);
    graceful.shutdown().await;
}
