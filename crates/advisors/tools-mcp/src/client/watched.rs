//! `Watched`: the transport that reads progress and announced lists, in their order, and errors without an id.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, JsonRpcMessage,
    ProgressNotificationParam, ProgressToken, RequestId, RequestMetaObject, ServerJsonRpcMessage,
    ServerNotification,
};
use rmcp::transport::Transport;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::http_client::is_same;

/// The receiver of a call's progress. It travels to the transport in the extensions of the request.
#[derive(Debug, Clone)]
pub(super) struct ProgressOf(pub(super) mpsc::Sender<ProgressNotificationParam>);

/// The notifications of a server that this crate reads, and the requests that it has not answered.
#[derive(Default)]
pub(super) struct Notifications {
    list_changes: AtomicU64,
    progress: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
    /// The requests that were not answered yet.
    open: Mutex<HashSet<RequestId>>,
    /// The request of the changes, until the server accepts it. It is not answered, but stays open.
    subscription: Mutex<Option<RequestId>>,
}

impl Notifications {
    /// Returns how often the server has announced another list of tools.
    pub(super) fn list_changes(&self) -> u64 {
        self.list_changes.load(Ordering::Acquire)
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request and the receiver of its progress, before the server can see the request. Forgets ended calls.
    fn note_sent(&self, message: &ClientJsonRpcMessage) {
        if let JsonRpcMessage::Notification(notification) = message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
        {
            cancelled.params.request_id.iter().for_each(|id| self.forget(id));
        }
        let JsonRpcMessage::Request(request) = message else { return };
        self.open().insert(request.id.clone());
        if matches!(request.request, ClientRequest::SubscriptionsListenRequest(_)) {
            self.subscription.lock().unwrap_or_else(PoisonError::into_inner).replace(request.id.clone());
        }
        let ClientRequest::CallToolRequest(call) = &request.request else { return };
        let token = call.extensions.get().and_then(RequestMetaObject::get_progress_token);
        if let (Some(token), Some(ProgressOf(receiver))) = (token, call.extensions.get()) {
            let mut progress = self.progress();
            progress.retain(|_, receiver| !receiver.is_closed());
            progress.insert(token, receiver.clone());
        }
    }

    fn forget(&self, request: &RequestId) {
        self.open().retain(|open| !is_same(request, open));
    }

    /// Notes an answer.
    fn note_answer(&self, message: &ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Response(response) => self.forget(&response.id),
            JsonRpcMessage::Error(error) => error.id.iter().for_each(|id| self.forget(id)),
            _ => {}
        }
    }

    /// Returns a message for each request that the server answers with one. An error without an id is the answer to all
    /// requests that wait: it may be that of any of them, which would wait for its whole time otherwise.
    fn named(&self, message: ServerJsonRpcMessage) -> Vec<ServerJsonRpcMessage> {
        let JsonRpcMessage::Error(error) = &message else { return vec![message] };
        if error.id.is_some() {
            return vec![message];
        }
        let open: Vec<_> = self.open().drain().collect();
        let is_of_one = open.len() == 1;
        let named = |id| {
            let mut error = error.clone();
            error.id = Some(id);
            if !is_of_one {
                // The others may run: this is the code of an error whose outcome is unknown.
                error.error.code = ErrorCode::INTERNAL_ERROR;
            }
            JsonRpcMessage::Error(error)
        };
        open.into_iter().map(named).collect()
    }

    /// Reads a message of the server. Returns the others, which the service of rmcp reads.
    fn read(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        self.note_answer(&message);
        let JsonRpcMessage::Notification(notification) = &message else { return Some(message) };
        match &notification.notification {
            ServerNotification::ToolListChangedNotification(_) => {
                self.list_changes.fetch_add(1, Ordering::AcqRel);
            }
            ServerNotification::ProgressNotification(report) => self.report(report.params.clone()),
            ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                let accepted = self.subscription.lock().unwrap_or_else(PoisonError::into_inner).take();
                accepted.iter().for_each(|id| self.forget(id));
                return Some(message);
            }
            _ => return Some(message),
        }
        None
    }

    /// Passes progress to its call. What a slow reader does not take is lost, as progress may be.
    fn report(&self, report: ProgressNotificationParam) {
        let mut progress = self.progress();
        let token = report.progress_token.clone();
        let sent = progress.get(&token).map(|receiver| receiver.try_send(report));
        if let Some(Err(TrySendError::Closed(_))) = sent {
            progress.remove(&token);
        }
    }
}

/// A transport that reads some notifications before the service of rmcp sees them: in their order, and before the
/// answers that follow them. The service would run a task for each.
pub(super) struct Watched<T> {
    inner: T,
    notifications: Arc<Notifications>,
    /// Further messages that one of the server stands for.
    waiting: Vec<ServerJsonRpcMessage>,
}

impl<T> Watched<T> {
    pub(super) fn new(inner: T, notifications: Arc<Notifications>) -> Self {
        Self { inner, notifications, waiting: Vec::new() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.notifications.note_sent(&message);
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let (sending, notifications) = (self.inner.send(message), Arc::clone(&self.notifications));
        async move {
            let sent = sending.await;
            if sent.is_err() {
                request.iter().for_each(|id| notifications.forget(id));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let Some(message) = self.waiting.pop() else {
                let message = self.inner.receive().await?;
                self.waiting = self.notifications.named(message);
                continue;
            };
            if let Some(other) = self.notifications.read(message) {
                return Some(other);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
