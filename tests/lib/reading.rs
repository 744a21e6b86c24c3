//! Reads a turn to its end or to a place, and checks the laws of the stream on the way.

use std::task::Poll;

use crate::prelude::*;
use advisor_chain::messages::ToolEvent;
use advisor_testkit::StreamValidator;
use futures::{Stream, poll};
use tokio::task::unconstrained;
use tokio::time::timeout;

/// Longer than anything takes in these tests.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// On the paused clock, a wait without an end fails.
pub async fn in_time<T>(waiting: impl Future<Output = T>) -> T {
    timeout(LONGEST, waiting).await.expect("it waits for ever")
}

/// The result of a turn.
#[derive(Debug)]
pub struct Run {
    /// All chunks, `Completed` included.
    pub chunks: Vec<Chunk>,
    /// Its response, or its error.
    pub outcome: Result<ChatResponse>,
}

impl Run {
    /// The response of a turn that succeeded.
    pub fn response(&self) -> &ChatResponse {
        self.outcome.as_ref().unwrap()
    }

    /// The error of a turn that failed.
    pub fn error(&self) -> &Error {
        self.outcome.as_ref().unwrap_err()
    }

    /// All chunks, one line each; see [`lines`].
    pub fn lines(&self) -> Vec<String> {
        lines(&self.chunks)
    }

    /// The text for the user, joined over all rounds.
    pub fn text(&self) -> String {
        self.chunks.iter().filter_map(Chunk::text).collect()
    }

    /// The responses of the rounds, the last one included.
    pub fn rounds(&self) -> impl Iterator<Item = &ChatResponse> {
        self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::RoundCompleted(response) | Chunk::Completed(response) => Some(response),
            _ => None,
        })
    }

    /// Folds the shown content, from deltas only.
    pub fn fold(&self) -> ChunkFold {
        let mut fold = ChunkFold::default();
        self.chunks.iter().for_each(|chunk| fold.push(chunk));
        fold
    }
}

/// A turn that is read in parts.
pub struct Reader<S> {
    stream: S,
    chunks: Vec<Chunk>,
}

impl<S: Stream<Item = Result<Chunk>> + Unpin> Reader<S> {
    /// Nothing is read yet.
    pub fn new(stream: S) -> Self {
        Self { stream, chunks: Vec::new() }
    }

    /// Reads the ready chunks, as lines.
    pub async fn so_far(&mut self) -> Vec<String> {
        let before = self.chunks.len();
        // Unconstrained: nothing but the turn itself makes it wait.
        while let Poll::Ready(Some(item)) = poll!(unconstrained(self.stream.next())) {
            self.chunks.push(item.expect("the turn has failed"));
        }
        lines(&self.chunks[before..])
    }

    /// Reads until something has come about, such as a peer standing at its gate.
    pub async fn until<T>(&mut self, come_about: impl Future<Output = T>) {
        let mut come_about = std::pin::pin!(come_about);
        loop {
            tokio::select! {
                biased;
                _ = &mut come_about => return,
                item = self.stream.next() => match item {
                    Some(Ok(chunk)) => self.chunks.push(chunk),
                    other => panic!("the turn ended before that: {other:?}"),
                },
            }
        }
    }

    /// Reads the turn of a tool loop to its end, and checks the laws of every stream, S1, S3 and S4, and law T2.
    pub async fn finish(self) -> Run {
        let run = self.drained().await;
        assert_shown_calls_end(&run.chunks);
        run
    }

    async fn drained(mut self) -> Run {
        let outcome = loop {
            match in_time(self.stream.next()).await.expect("a stream ends with `Completed` or an error") {
                Ok(Chunk::Completed(response)) => {
                    self.chunks.push(Chunk::Completed(response.clone()));
                    break Ok(response);
                }
                Ok(chunk) => self.chunks.push(chunk),
                Err(error) => break Err(error),
            }
        };
        assert!(self.stream.next().await.is_none(), "something follows the end");
        assert_well_formed(&self.chunks);
        Run { chunks: self.chunks, outcome }
    }
}

/// Reads a stream of any chain to its end, and checks the laws of every stream: S1, S3 and S4.
pub async fn read_stream(stream: impl Stream<Item = Result<Chunk>> + Unpin) -> Run {
    Reader::new(stream).drained().await
}

/// Reads the turn of a tool loop to its end; see [`Reader::finish`].
pub async fn read(stream: impl Stream<Item = Result<Chunk>> + Unpin) -> Run {
    Reader::new(stream).finish().await
}

/// Checks S1, S3 and S4 over the shown chunks.
fn assert_well_formed(chunks: &[Chunk]) {
    let mut validator = StreamValidator::new();
    for (at, chunk) in chunks.iter().enumerate() {
        if let Err(violation) = validator.push(chunk) {
            panic!("{violation}:\n{}", lines(&chunks[..=at]).join("\n"));
        }
        if let Chunk::RoundCompleted(response) | Chunk::Completed(response) = chunk {
            let ids = response.blocks().map(|(id, _)| id);
            assert!(ids.is_sorted(), "ids in another order: {response:?}");
        }
    }
}

/// Checks law T2: each shown call has exactly one event that ends it, unless its round is void or the caller answers
/// it.
fn assert_shown_calls_end(chunks: &[Chunk]) {
    let mut shown: BTreeMap<BlockId, u32> = BTreeMap::new();
    for chunk in chunks {
        match chunk {
            Chunk::Opened { block, head } if head.call.is_some() => {
                shown.insert(*block, 0);
            }
            Chunk::Tool(event) if event.result().is_some() => {
                shown.entry(event.block).and_modify(|ends| *ends += 1);
            }
            Chunk::AttemptRestarted { round } => shown.retain(|block, _| block.round != *round),
            Chunk::Completed(response) => {
                for (block, _) in response.tool_calls() {
                    shown.remove(&block);
                }
            }
            _ => {}
        }
    }
    assert!(shown.values().all(|ends| *ends == 1), "{shown:?}:\n{}", lines(chunks).join("\n"));
}

/// The chunks, one line each: `1.0 + text`, `1.0 "Let me"`, `1.0 -`, `tool c1 started {}`, `round 1 completed`,
/// `usage 1 10/5`, `completed 2 Stop`.
pub fn lines(chunks: &[Chunk]) -> Vec<String> {
    chunks.iter().map(line).collect()
}

fn line(chunk: &Chunk) -> String {
    match chunk {
        Chunk::Opened { block, head } => match (&head.call, head.kind) {
            (Some(call), _) => format!("{block} + call {} {}", call.call_id, call.name),
            (None, kind) => format!("{block} + {}", format!("{kind:?}").to_lowercase()),
        },
        Chunk::Delta { block, delta } => match delta {
            BlockDelta::Text(text) | BlockDelta::Reasoning(text) | BlockDelta::Refusal(text) => {
                format!("{block} {:?}", text.as_str())
            }
            BlockDelta::Arguments(text) => format!("{block} {text}"),
            _ => format!("{block} whole"),
        },
        Chunk::Closed { block, .. } => format!("{block} -"),
        Chunk::Tool(event) => tool_line(event),
        Chunk::RoundCompleted(response) => format!("round {} completed", response.round()),
        Chunk::Usage { round, usage } => {
            format!(
                "usage {round} {}/{}",
                usage.input_tokens.unwrap_or_default(),
                usage.output_tokens.unwrap_or_default()
            )
        }
        Chunk::AttemptRestarted { round } => format!("round {round} restarted"),
        Chunk::Completed(response) => {
            format!("completed {} {:?}", response.round(), response.finish.reason)
        }
        other => panic!("a chunk that these tests do not know: {other:?}"),
    }
}

fn tool_line(event: &ToolEvent) -> String {
    let id = &event.call_id;
    match &event.kind {
        ToolEventKind::Started { arguments } => format!("tool {id} started {arguments}"),
        ToolEventKind::Progress { part } => format!("tool {id} progress {}", part.as_text().unwrap_or("?")),
        ToolEventKind::Finished { result } if result.is_error => {
            format!("tool {id} failed: {}", result.text())
        }
        ToolEventKind::Finished { result } => format!("tool {id} finished: {}", result.text()),
        ToolEventKind::NotStarted { reason, result } => {
            format!("tool {id} {}: {}", reason.as_str(), result.text())
        }
        other => panic!("a tool event that these tests do not know: {other:?}"),
    }
}
