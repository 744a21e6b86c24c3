//! A transport for any provider: it answers from a script, without a network, and keeps the requests.

use std::collections::VecDeque;
use std::sync::MutexGuard;

use advisor_chain::openai::transport::{ByteStream, Transport, TransportError};
use advisor_tests::prelude::*;
use bytes::Bytes;
use futures::stream;
use http::{Request, Response, StatusCode};

/// Answers each request with the next body, and requests beyond the script with status 400, which no client
/// retries. Clones share the script.
#[derive(Clone, Default)]
pub(crate) struct ScriptedTransport(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    bodies: VecDeque<Bytes>,
    requests: Vec<Value>,
}

impl ScriptedTransport {
    pub(crate) fn new(bodies: impl IntoIterator<Item = impl Into<Bytes>>) -> Self {
        let bodies = bodies.into_iter().map(Into::into).collect();
        Self(Arc::new(Mutex::new(State { bodies, requests: Vec::new() })))
    }

    /// Returns the bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic under the lock")
    }
}

#[async_trait]
impl Transport for ScriptedTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<ByteStream>, TransportError> {
        let sent = serde_json::from_slice(&request.into_body()).expect("a request is JSON");
        let mut state = self.state();
        state.requests.push(sent);
        let next = state.bodies.pop_front();
        let status = if next.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        let mut response = Response::new(stream::iter(next.map(Ok)).boxed());
        *response.status_mut() = status;
        Ok(response)
    }
}
