//! The model inside the advisor under test, which records its chunks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use advisor_core::{
    ChatModel, ChatRequest, ChatResponse, Chunk, ChunkStream, Error, ErrorKind, Result, Usage, async_trait,
};
use tokio::task::yield_now;

use super::reading::{Items, Reader, read, request};
use super::script::LAST;
use super::subject::Subject;
use crate::run::Run;
use advisor_testkit::{Answer, Gate, Journal, ReceivedPrompt, ScriptedModel};

/// The usage with which the inner work completes an answer.
pub(super) const COUNTED: (u64, u64) = (11, 5);

/// A scripted model that records its chunks. Its answers have completion work, as those of an inner advisor.
#[derive(Clone)]
pub(super) struct Inside {
    model: ScriptedModel,
    /// Where a request waits for the beginning of its answer.
    opening: Option<Gate>,
    work: Work,
    shared: Arc<Shared>,
}

/// The completion work.
#[derive(Clone)]
pub(super) enum Work {
    /// It takes a moment, and counts the tokens.
    Slow,
    Waits(Gate),
    Fails(ErrorKind),
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Chunk>>,
    /// The number of streams that are neither complete nor dropped.
    live: AtomicUsize,
    journal: Journal,
}

impl Inside {
    /// Creates a model with this first answer. Further calls get the subject's text, then short texts.
    pub(super) fn new(subject: &Subject, first: Answer) -> Self {
        let texts = [subject.answer.clone()].into_iter().chain(std::iter::repeat(LAST.to_owned()));
        let mut answers = [first].into_iter().chain(texts.map(Answer::from_text));
        Self::from_fn(move |_| answers.next().unwrap_or_default())
    }

    /// Creates a model that computes its answers.
    pub(super) fn from_fn(answer: impl FnMut(&ReceivedPrompt) -> Answer + Send + 'static) -> Self {
        Self {
            model: ScriptedModel::from_fn(answer),
            opening: None,
            work: Work::Slow,
            shared: Arc::default(),
        }
    }

    /// Begins to read the answer of a turn through the advisor.
    pub(super) fn open(&self, subject: &Subject, reader: Reader) -> Items {
        reader.open(&subject.chain(self.clone()), request(subject, "one"))
    }

    /// Reads that answer to its end.
    pub(super) async fn read(&self, subject: &Subject, reader: Reader) -> Run {
        read(subject, self.open(subject, reader)).await
    }

    /// Makes each request wait at this gate before its answer begins.
    pub(super) fn with_opening(self, gate: &Gate) -> Self {
        Self { opening: Some(gate.clone()), ..self }
    }

    pub(super) fn with_work(self, work: Work) -> Self {
        Self { work, ..self }
    }

    /// Returns the chunks that left the model so far, without its completions.
    pub(super) fn seen(&self) -> Vec<Chunk> {
        self.chunks().clone()
    }

    pub(super) fn prompts(&self) -> Vec<ReceivedPrompt> {
        self.model.prompts()
    }

    pub(super) fn live(&self) -> usize {
        self.shared.live.load(Ordering::SeqCst)
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.shared.journal
    }

    fn chunks(&self) -> MutexGuard<'_, Vec<Chunk>> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ChatModel for Inside {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let live = Live::new(&self.shared);
        if let Some(gate) = &self.opening {
            gate.pass().await;
        }
        let (looking, working) = (self.clone(), self.clone());
        let answer = self.model.stream(request).await?;
        let answer = answer.inspect_chunks(move |chunk| {
            let _ = &live;
            if chunk.completed().is_none() {
                looking.chunks().push(chunk.clone());
            }
        });
        Ok(answer.on_completed(move |response| async move { working.complete(response).await }))
    }
}

impl Inside {
    async fn complete(self, mut response: ChatResponse) -> Result<ChatResponse> {
        let journal = self.journal();
        journal.record(format!("inner work begins r{}", response.round()));
        match &self.work {
            Work::Slow => {
                for _ in 0..3 {
                    yield_now().await;
                }
            }
            Work::Waits(gate) => gate.pass().await,
            Work::Fails(kind) => return Err(Error::new(*kind, "inner work fails here")),
        }
        journal.record(format!("inner work ends r{}", response.round()));
        let (input, output) = COUNTED;
        response.usage = Some(Usage::new(input, output));
        Ok(response)
    }
}

/// Counts a stream of the model until it is complete or dropped.
struct Live(Arc<Shared>);

impl Live {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.live.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::SeqCst);
    }
}
