//! `InMemory`: a transport that answers with prepared bodies, without a network.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use advisor_chain::async_trait;
use advisor_chain::openai::transport::{ByteStream, Transport, TransportError};
use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};

/// Answers with bodies that are already here, one after the other.
#[derive(Debug)]
pub struct InMemory(Mutex<VecDeque<Vec<Bytes>>>);

impl InMemory {
    /// Bodies in the order of the requests.
    pub fn new(bodies: impl IntoIterator<Item = Vec<Bytes>>) -> Self {
        Self(Mutex::new(bodies.into_iter().collect()))
    }
}

#[async_trait]
impl Transport for InMemory {
    async fn send(&self, _: Request<Bytes>) -> Result<Response<ByteStream>, TransportError> {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_default();
        let response = Response::builder().header("content-type", "text/event-stream");
        Ok(response.body(futures::stream::iter(body).map(Ok).boxed()).unwrap())
    }
}
