//! Recorded answers, replayed in two parts: the first quarter, in which a decoder learns, is not counted.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use advisor_chain::async_trait;
use advisor_chain::openai::transport::{ByteStream, Transport, TransportError};
use advisor_chain::{ChatClient, ChatRequest, ChunkStream, Message, OpenAiModel};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use tokio::runtime::Runtime;

use crate::cases::runtime;

/// The highest number of bytes in one read of the network.
const READ: usize = 16 << 10;

/// A recorded answer of Chat Completions, split after its first quarter of events.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The name of its file.
    pub name: String,
    /// The number of events.
    pub events: usize,
    /// The number of events in the first part.
    pub learned: usize,
    parts: [Bytes; 2],
}

impl Recording {
    /// Reads the recordings of Chat Completions in a folder: event streams (`.sse`), and payloads one a line (`.jsonl`).
    ///
    /// # Errors
    /// If the folder or a file in it cannot be read.
    pub fn all_in(folder: &Path) -> io::Result<Vec<Self>> {
        let mut recordings = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            let events = match extension {
                "sse" => events(&fs::read_to_string(&path)?),
                "jsonl" => {
                    fs::read_to_string(&path)?.lines().map(|line| format!("data: {line}\n\n")).collect()
                }
                _ => continue,
            };
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            recordings.extend(Self::new(name, &events));
        }
        recordings.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(recordings)
    }

    /// `None` if it is no answer of Chat Completions.
    fn new(name: String, events: &[String]) -> Option<Self> {
        let is_chat = events.iter().any(|event| event.starts_with("data:") && event.contains("\"choices\""));
        let learned = events.len() / 4;
        let (first, rest) = events.split_at(learned);
        let parts = [first, rest].map(|events| Bytes::from(events.concat()));
        is_chat.then(|| Self { name, events: events.len(), learned, parts })
    }

    /// Reads the first quarter.
    #[must_use]
    pub fn replay(&self) -> Replay {
        let is_open = Arc::new(AtomicBool::new(false));
        let transport = TwoParts { parts: self.parts.clone(), is_open: Arc::clone(&is_open) };
        let model = OpenAiModel::new("m").with_base_url("http://127.0.0.1:1/v1").with_transport(transport);
        let chain = ChatClient::builder(model).build().unwrap().chain().clone();
        let runtime = runtime();
        let stream = runtime.block_on(async {
            let mut stream = chain.next_stream(ChatRequest::new(Message::user("?"))).await.ok()?;
            while let Poll::Ready(Some(_)) = futures::poll!(stream.next()) {}
            Some(stream)
        });
        Replay { runtime, stream, is_open }
    }
}

/// A recording whose first quarter was read.
pub struct Replay {
    runtime: Runtime,
    /// `None` if the model refused the answer at once.
    stream: Option<ChunkStream>,
    is_open: Arc<AtomicBool>,
}

impl Replay {
    /// Reads the rest, up to the answer's end or its error.
    pub fn finish(self) {
        self.is_open.store(true, Ordering::Relaxed);
        let Some(mut stream) = self.stream else { return };
        self.runtime.block_on(async { while stream.next().await.is_some() {} });
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

/// Answers with the first part, and with the second one as soon as it may.
#[derive(Debug)]
struct TwoParts {
    parts: [Bytes; 2],
    is_open: Arc<AtomicBool>,
}

#[async_trait]
impl Transport for TwoParts {
    async fn send(&self, _: Request<Bytes>) -> Result<Response<ByteStream>, TransportError> {
        let [first, second] = self.parts.clone().map(|part| stream::iter(reads(part)));
        let is_open = Arc::clone(&self.is_open);
        let opening = stream::poll_fn(move |_| match is_open.load(Ordering::Relaxed) {
            true => Poll::Ready(None),
            false => Poll::Pending,
        });
        let body = first.chain(opening).chain(second).map(Ok);
        let response = Response::builder().header("content-type", "text/event-stream");
        Ok(response.body(body.boxed()).unwrap())
    }
}

fn reads(mut bytes: Bytes) -> Vec<Bytes> {
    let mut reads = Vec::new();
    while !bytes.is_empty() {
        reads.push(bytes.split_to(bytes.len().min(READ)));
    }
    reads
}

/// The events of a stream, each with the comments before it and the blank line behind it.
fn events(body: &str) -> Vec<String> {
    let mut events = vec![String::new()];
    let mut has_data = false;
    for line in body.split_inclusive('\n') {
        let is_blank = line.trim_end_matches(['\r', '\n']).is_empty();
        has_data |= line.starts_with("data:");
        events.last_mut().unwrap().push_str(line);
        if is_blank && std::mem::take(&mut has_data) {
            events.push(String::new());
        }
    }
    events.retain(|event| !event.is_empty());
    events
}
