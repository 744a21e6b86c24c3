//! `Connection`: begins the protocol, sends requests, cancels dropped ones, closes.
//!
//! Lists, schemas, reports and results are bounded. Requests that a server sends without reading their answers are not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use advisor_core::{Error, ErrorKind, Result};
use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotificationParam, ClientConfig, ClientRequest, Implementation, ProtocolVersion, RequestId,
    ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RequestHandle,
    RunningService, ServiceError, Subscription,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, Transport};
use secrecy::ExposeSecret;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::failure;
use super::http_client::{HttpClient, http_client};
use super::server::{Address, HttpAddress, McpServer};
use super::watched::{Notifications, Watched};

/// The time in which a connection must begin.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The time for an orderly end. A process that has not ended by then is killed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a server. Dropping it closes it.
pub(super) struct Connection {
    /// The number of the connection in this process.
    number: u64,
    peer: Peer<RoleClient>,
    pub(super) notifications: Arc<Notifications>,
    lost: AtomicBool,
    service: Mutex<Option<Service>>,
    /// Keeps the announcements of other lists of tools coming.
    _subscription: Option<Subscription>,
}

impl Connection {
    /// Connects to a server. A task of the runtime does it: the transport of a process must be dropped there.
    ///
    /// # Errors
    /// Outside a tokio runtime, too.
    pub(super) async fn open(server: Arc<McpServer>) -> Result<Arc<Self>> {
        let runtime = Handle::try_current()
            .map_err(|_| Error::configuration("an MCP server is reached within a tokio runtime"))?;
        // Dropping the set stops the task.
        let mut opening = JoinSet::new();
        opening.spawn_on(async move { Self::open_in_time(&server).await }.in_current_span(), &runtime);
        match opening.join_next().await {
            Some(Ok(opened)) => opened,
            // The text may be that of a panic.
            Some(Err(_)) | None => Err(Error::new(ErrorKind::Tool, "the connection to an MCP server failed")),
        }
    }

    async fn open_in_time(server: &McpServer) -> Result<Arc<Self>> {
        let opening = async {
            match Self::attempt(server, newest_version()).await? {
                // Some older servers end when a connection begins in the newer way.
                Err(error) if begins_otherwise(&error) => {
                    Self::attempt(server, ClientLifecycleMode::Initialize).await?
                }
                attempt => attempt,
            }
            .map_err(|error| failure::not_connected(server, &error))
        };
        tokio::time::timeout(CONNECT_TIMEOUT, opening).await.unwrap_or_else(|_| {
            let name = &server.settings.name;
            Err(Error::new(
                ErrorKind::Timeout,
                format!("no connection to the MCP server `{name}` within {} s", CONNECT_TIMEOUT.as_secs()),
            ))
        })
    }

    async fn attempt(
        server: &McpServer,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Result<Arc<Self>, ClientInitializeError>> {
        Ok(match &server.address {
            Address::Command(command) => {
                let process = TokioChildProcess::new(command());
                let process = process.map_err(|error| failure::not_opened(server, &error))?;
                Self::begin(process, lifecycle, server).await
            }
            Address::Http(address) => Self::begin(http(address)?, lifecycle, server).await,
            Address::Stream(open) => {
                let stream = open().await.map_err(|error| failure::not_opened(server, &error))?;
                let (read, write) = tokio::io::split(stream);
                Self::begin(AsyncRwTransport::new_client(read, write), lifecycle, server).await
            }
        })
    }

    async fn begin<T: Transport<RoleClient> + 'static>(
        inner: T,
        lifecycle: ClientLifecycleMode,
        server: &McpServer,
    ) -> Result<Arc<Self>, ClientInitializeError> {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let notifications = Arc::new(Notifications::default());
        let service = serve(Watched::new(inner, Arc::clone(&notifications)), lifecycle).await?;
        let peer = service.peer().clone();
        let subscription = subscribe(&peer, server).await;
        Ok(Arc::new(Self {
            number: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
            peer,
            notifications,
            lost: AtomicBool::new(false),
            service: Mutex::new(Some(service)),
            _subscription: subscription,
        }))
    }

    /// Returns the number of the connection and of the list that the server has announced.
    pub(super) fn list(&self) -> (u64, u64) {
        (self.number, self.notifications.list_changes())
    }

    /// Checks whether the server offers tools.
    pub(super) fn has_tools(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some())
    }

    /// Checks whether the next use needs another connection.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire) || self.peer.is_transport_closed()
    }

    /// Sends a request. Dropping it before its answer tells the server to stop.
    pub(super) async fn send(&self, request: ClientRequest) -> Result<Request, ServiceError> {
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = sent.inspect_err(|error| self.note(error))?;
        let stop = StopOnDrop { peer: self.peer.clone(), id: Some(handle.id.clone()) };
        Ok(Request { handle, stop })
    }

    /// Notes whether the connection is lost after an error.
    pub(super) fn note(&self, error: &ServiceError) {
        let is_lost = match error {
            ServiceError::TransportSend(error) => !failure::keeps_connection(error),
            ServiceError::TransportClosed => true,
            _ => false,
        };
        if is_lost {
            self.lost.store(true, Ordering::Release);
        }
    }

    /// Closes the connection and waits until it is closed.
    pub(super) async fn close(&self) {
        let service = self.service.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut service) = service
            && let Err(error) = service.close_with_timeout(CLOSE_TIMEOUT).await
        {
            // Its text may be that of a panic.
            let panicked = error.is_panic();
            tracing::warn!(panicked, "the connection to an MCP server did not end in order");
        }
    }
}

fn this_client() -> ClientConfig {
    let client = Implementation::new("advisor-chain", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(Default::default(), client)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

fn http(address: &HttpAddress) -> Result<impl Transport<RoleClient> + use<>> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&address.url));
    config = config.custom_headers(address.headers()?);
    // By default the wait for a stream of notifications doubles without a bound.
    let mut waits = ExponentialBackoff::default();
    waits.max_delay = Some(Duration::from_secs(30));
    config.retry_config = Arc::new(waits);
    if let Some(bearer) = &address.bearer {
        config = config.auth_header(bearer.expose_secret());
    }
    Ok(StreamableHttpClientTransport::with_client(HttpClient::new(http_client(&address.url)?), config))
}

/// Asks a server of a newer protocol to announce other lists of tools. Older ones do so unasked.
async fn subscribe(peer: &Peer<RoleClient>, server: &McpServer) -> Option<Subscription> {
    let info = peer.peer_info()?;
    let announces = info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
    if !announces || info.protocol_version.has_initialize() {
        return None;
    }
    match listen(peer).await {
        Ok(subscription) => Some(subscription),
        Err(_) => {
            tracing::warn!(
                server = server.settings.name,
                "an MCP server does not announce changes of its tools"
            );
            None
        }
    }
}

type Service = RunningService<RoleClient, ClientConfig>;

/// Returns the way to begin with the newest version, and with an older one if the server says that it has no other.
fn newest_version() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// Checks whether an older version may begin where the newest did not.
fn begins_otherwise(error: &ClientInitializeError) -> bool {
    matches!(
        error,
        ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::NoCompatibleProtocolVersion { .. }
    )
}

/// Begins the protocol. Boxed like [`listen`].
fn serve<T: Transport<RoleClient> + 'static>(
    transport: T,
    lifecycle: ClientLifecycleMode,
) -> BoxFuture<'static, Result<Service, ClientInitializeError>> {
    Box::pin(this_client().serve_with_lifecycle(transport, lifecycle))
}

/// Begins a subscription. Boxed, since the compiler cannot prove otherwise that the future can move between threads.
fn listen(peer: &Peer<RoleClient>) -> BoxFuture<'_, Result<Subscription, ServiceError>> {
    Box::pin(peer.listen(SubscriptionFilter::builder().tools_list_changed().build()))
}

/// A request that was sent.
pub(super) struct Request {
    handle: RequestHandle<RoleClient>,
    stop: StopOnDrop,
}

impl Request {
    /// Waits for the answer.
    pub(super) async fn answer(self) -> Result<ServerResult, ServiceError> {
        let Self { handle, mut stop } = self;
        let answer = handle.rx.await;
        stop.id = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

/// Tells the server to stop a request without an answer. The library of the protocol does so for its own calls only.
struct StopOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let params = CancelledNotificationParam::new(Some(id), Some(String::from("the caller stopped")));
        // The first poll puts the notification into the queue of the connection, unless the queue is full. The task
        // that sends it needs no other poll, and this drop may be the last that its own task does.
        let queued = tokio::task::unconstrained(self.peer.notify_cancelled(params));
        let _ = futures::FutureExt::now_or_never(queued);
    }
}
