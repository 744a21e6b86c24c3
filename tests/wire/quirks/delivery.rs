//! Ways to deliver the bytes of a body.

use std::collections::VecDeque;

use advisor_chain::openai::transport::{ByteStream, Transport, TransportError};
use advisor_testkit::split;
use advisor_tests::prelude::*;
use bytes::Bytes;
use futures::stream;

use crate::quirks::transcript::{After, Transcript};

/// How the network cuts a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Delivery {
    Whole,
    Bytes,
    /// At random, with this seed.
    Random(u64),
}

impl Delivery {
    fn pieces(self, body: &[u8]) -> Vec<Bytes> {
        let pieces: Vec<&[u8]> = match self {
            Self::Whole => vec![body],
            Self::Bytes => body.chunks(1).collect(),
            Self::Random(seed) => {
                split::random_splits(body, seed, 1).flat_map(|split| split.pieces).collect()
            }
        };
        pieces.into_iter().map(Bytes::copy_from_slice).collect()
    }

    /// Returns a transport that answers with the bodies of a transcript.
    pub(crate) fn transport(self, transcript: &Transcript) -> Canned {
        Canned {
            status: transcript.status(),
            content_type: transcript.content_type().to_owned(),
            after: transcript.after(),
            bodies: Mutex::new(transcript.bodies.iter().map(|body| self.pieces(body)).collect()),
        }
    }
}

/// A transport without a network: one body per request.
pub(crate) struct Canned {
    status: u16,
    content_type: String,
    after: After,
    bodies: Mutex<VecDeque<Vec<Bytes>>>,
}

#[async_trait]
impl Transport for Canned {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
        let pieces = self.bodies.lock().unwrap().pop_front().expect("a body is left");
        let pieces = stream::iter(pieces.into_iter().map(Ok));
        let body: ByteStream = match self.after {
            After::End => pieces.boxed(),
            After::Break => {
                pieces.chain(stream::iter([Err(TransportError::Broken { source: "reset".into() })])).boxed()
            }
            After::Silence => pieces.chain(stream::pending()).boxed(),
        };
        let response =
            http::Response::builder().status(self.status).header("content-type", &self.content_type);
        Ok(response.body(body).unwrap())
    }
}
