//! The replay server.

mod connection;

use super::{ReceivedRequest, Reply};
use serde_json::json;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::TcpListenerStream;

/// The counters of a [`ReplayServer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Connections accepted.
    pub connections: usize,
    /// Connections that are open now.
    pub open: usize,
    /// Requests read to their end.
    pub requests: usize,
    /// Replies played to their end, including a cut or a reset.
    pub replies: usize,
    /// Replies that the client interrupted: it closed the connection while the server was writing, waiting or
    /// stalling.
    pub disconnects: usize,
}

/// A loopback HTTP/1.1 server that answers as a test specifies. See [the module](super).
///
/// It listens on a free port of 127.0.0.1 and runs on the tokio runtime on which it was started. Connections
/// are kept alive as HTTP specifies. Requests on several connections are answered at the same time.
///
/// # Ordering
///
/// A request is visible in [`requests`](Self::requests) and in [`counts`](Self::counts) before the first byte
/// of its answer is written.
///
/// # Cancellation
///
/// Dropping the server stops all its tasks and closes its sockets. A client that disconnects in the middle of a
/// reply ends that reply and its connection, and counts as a disconnect. Closing only its writing half counts,
/// too. A reply that fits into the socket's buffer is written before a client can disconnect. To observe a
/// disconnect, put a gate or a stall into the reply.
#[derive(Debug)]
pub struct ReplayServer {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    accepting: JoinHandle<()>,
}

impl ReplayServer {
    /// Starts a server that answers the first request with the first reply, and so on.
    ///
    /// Requests beyond the script get status 410, which no client retries, and a message with the reason.
    ///
    /// # Errors
    ///
    /// If no port of 127.0.0.1 can be bound.
    pub async fn start(script: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let script: Vec<Reply> = script.into_iter().collect();
        Self::start_with(move |request| {
            let reply = script.get(request.number).cloned();
            reply.unwrap_or_else(|| beyond_the_script(request, script.len()))
        })
        .await
    }

    /// Starts a server that answers each request with the result of `answer`. An invalid request gets status 400.
    ///
    /// The function runs on the task of the connection. It must not block, and a panic in it closes the
    /// connection.
    ///
    /// ```
    /// # use advisor_testkit::{Journal, Reply, ReplayServer};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let journal = Journal::new();
    /// let in_the_server = journal.clone();
    /// let server = ReplayServer::start_with(move |request| {
    ///     in_the_server.record(format!("model.request {}", request.number + 1));
    ///     match request.path.as_str() {
    ///         "/v1/chat/completions" => Reply::sse("data: [DONE]\n\n"),
    ///         _ => Reply::status(404),
    ///     }
    /// })
    /// .await?;
    /// # drop(server);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If no port of 127.0.0.1 can be bound.
    pub async fn start_with(
        answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let ledger = Arc::new(Ledger {
            answer: Box::new(answer),
            requests: Mutex::new(Vec::new()),
            counts: watch::Sender::new(Counts::default()),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&ledger)));
        Ok(Self { address, ledger, accepting })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far, in the order in which they were read.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.ledger.requests().clone()
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        *self.ledger.counts.borrow()
    }

    /// Waits until the counters satisfy `condition`, and returns them. The future can be dropped at any time.
    ///
    /// ```
    /// # use advisor_testkit::{Reply, ReplayServer};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let server = ReplayServer::start([Reply::hang()]).await?;
    /// let client = tokio::net::TcpStream::connect(server.address()).await?;
    /// server.until(|counts| counts.open == 1).await;
    /// drop(client);
    /// let counts = server.until(|counts| counts.open == 0).await;
    /// assert_eq!(counts.connections, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn until(&self, condition: impl FnMut(&Counts) -> bool + Send) -> Counts {
        let mut changes = self.ledger.counts.subscribe();
        // The sender lives in `self`, so the channel cannot close while we wait.
        match changes.wait_for(condition).await {
            Ok(counts) => *counts,
            Err(_) => self.counts(),
        }
    }

    /// Waits until a client has disconnected in the middle of a reply; returns at once if one has.
    pub async fn disconnected(&self) {
        self.until(|counts| counts.disconnects > 0).await;
    }
}

impl Drop for ReplayServer {
    fn drop(&mut self) {
        // The connections belong to the accepting task and end with it.
        self.accepting.abort();
    }
}

/// The state that the tasks of a server share.
pub(super) struct Ledger {
    answer: Box<dyn Fn(&ReceivedRequest) -> Reply + Send + Sync>,
    requests: Mutex<Vec<ReceivedRequest>>,
    counts: watch::Sender<Counts>,
}

impl Ledger {
    /// Stores the request, numbers it, and returns its reply.
    pub(super) fn reply_to(&self, mut request: ReceivedRequest) -> Reply {
        {
            let mut requests = self.requests();
            request.number = requests.len();
            requests.push(request.clone());
        }
        self.count(|counts| counts.requests += 1);
        (self.answer)(&request)
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_modify(change);
    }

    fn requests(&self) -> MutexGuard<'_, Vec<ReceivedRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("requests", &self.requests)
            .field("counts", &*self.counts.borrow())
            .finish_non_exhaustive()
    }
}

/// Accepts connections until it is aborted; owns their tasks.
async fn accept(listener: TcpListener, ledger: Arc<Ledger>) {
    let mut incoming = TcpListenerStream::new(listener);
    let mut connections = JoinSet::new();
    let mut accepted = 0;
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            next = incoming.next() => {
                // An error here means that the process can open no more files: stop rather than spin.
                let Some(Ok(stream)) = next else { return };
                connections.spawn(connection::serve(stream, accepted, Arc::clone(&ledger)));
                accepted += 1;
            }
        }
    }
}

fn beyond_the_script(request: &ReceivedRequest, length: usize) -> Reply {
    let message =
        format!("the replay script has {length} replies, and this is request {}", request.number + 1);
    Reply::json(410, json!({ "error": { "message": message, "type": "replay_script_ended" } }))
}
