//! `accept`: the connections of a server, their number, their time limits and their end.

use std::pin::pin;

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

use super::write_timeout::WriteTimeout;
use crate::access::limits::ServerLimits;

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
