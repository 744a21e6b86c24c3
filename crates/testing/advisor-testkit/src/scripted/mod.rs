//! A model with scripted answers, without a network.

mod answer;

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use advisor_core::{
    AggregatorSettings, ChatModel, ChatOptions, ChatRequest, ChatResponse, Chunk, ChunkStream, Delta, Error,
    ErrorKind, MessageAggregator, MessageList, Result, TurnId,
};
use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::stream::{Stream, StreamExt};

use crate::Journal;
pub use answer::Answer;
use answer::AnswerStep;

/// A model that gives scripted answers, one per call, and keeps its prompts.
///
/// Deltas that are sent without waiting are ready at once. A reader takes them together, like those of one read
/// from a provider.
///
/// Clones share the script and the received prompts: give one to the chain and keep another. With a [`Journal`]
/// it records `model.ask r1`, `model.end r1` and, when an answer is dropped before its end, `model.drop r1`.
///
/// # Errors
/// If it is asked more often than there are answers, it fails with [`ErrorKind::Provider`].
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let model = ScriptedModel::new([Answer::from_text("Hello")]);
/// let client = ChatClient::builder(model.clone()).build()?;
/// let response = client.prompt().user("Hi").call().await?;
/// assert_eq!(response.text(), "Hello");
/// assert_eq!(model.prompts()[0].messages.last().unwrap().text(), "Hi");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ScriptedModel {
    shared: Arc<Shared>,
    journal: Option<Journal>,
    settings: AggregatorSettings,
}

struct Shared {
    script: Mutex<Script>,
    prompts: Mutex<Vec<ReceivedPrompt>>,
}

enum Script {
    Answers(VecDeque<Answer>),
    Asked(Box<dyn FnMut(&ReceivedPrompt) -> Answer + Send>),
}

/// A request to a [`ScriptedModel`]. It does not keep the turn alive.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReceivedPrompt {
    /// The turn.
    pub turn: TurnId,
    /// The number of this call within the turn.
    pub round: u32,
    /// The messages that were sent.
    pub messages: MessageList,
    /// The names of the tools that the API describes.
    pub tools: Vec<String>,
    /// The options.
    pub options: ChatOptions,
}

impl ScriptedModel {
    /// Creates a model with one answer per call.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with_script(Script::Answers(answers.into_iter().collect()))
    }

    /// Creates a model that computes its answer to each prompt.
    pub fn from_fn(answer: impl FnMut(&ReceivedPrompt) -> Answer + Send + 'static) -> Self {
        Self::with_script(Script::Asked(Box::new(answer)))
    }

    fn with_script(script: Script) -> Self {
        let shared = Shared { script: Mutex::new(script), prompts: Mutex::default() };
        Self { shared: Arc::new(shared), journal: None, settings: AggregatorSettings::default() }
    }

    /// Records the calls of this clone in `journal`.
    #[must_use]
    pub fn with_journal(self, journal: &Journal) -> Self {
        Self { journal: Some(journal.clone()), ..self }
    }

    /// Sets the aggregator's settings for the deltas of this clone.
    #[must_use]
    pub fn with_settings(self, settings: AggregatorSettings) -> Self {
        Self { settings, ..self }
    }

    /// Returns all prompts so far, in order.
    #[must_use]
    pub fn prompts(&self) -> Vec<ReceivedPrompt> {
        lock(&self.shared.prompts).clone()
    }

    /// Returns the number of calls so far.
    #[must_use]
    pub fn calls(&self) -> usize {
        lock(&self.shared.prompts).len()
    }

    fn next_answer(&self, prompt: &ReceivedPrompt) -> Option<Answer> {
        match &mut *lock(&self.shared.script) {
            Script::Answers(answers) => answers.pop_front(),
            Script::Asked(answer) => Some(answer(prompt)),
        }
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let prompt = ReceivedPrompt {
            turn: request.turn.id().clone(),
            round: request.round,
            messages: request.messages.clone(),
            tools: request.api_tools().definitions().map(|tool| tool.name.to_string()).collect(),
            options: request.options.clone(),
        };
        let answer = self.next_answer(&prompt);
        lock(&self.shared.prompts).push(prompt);
        let journal = RoundJournal::begin(self.journal.clone(), request.round);
        let Some(mut answer) = answer else {
            return Err(Error::new(
                ErrorKind::Provider { status: None },
                "the scripted model has no answer left",
            ));
        };
        if let Some(error) = answer.refusal.take() {
            return Err(error);
        }
        let aggregator = MessageAggregator::with_settings(request.round, self.settings.clone());
        let deltas = Scripted { steps: answer.steps, waiting: None, journal };
        Ok(ChunkStream::from_deltas(aggregator, deltas))
    }

    fn name(&self) -> &'static str {
        "scripted"
    }
}

/// Asks a model, and reads its answer to the end.
///
/// # Errors
/// That of the request or of its answer.
///
/// # Panics
/// If the stream ends with neither an error nor `Completed`, which law S1 forbids.
#[allow(clippy::expect_used, reason = "this is a check for tests: a broken law has to be seen")]
pub async fn answer_of(model: &impl ChatModel, request: ChatRequest) -> Result<ChatResponse> {
    let mut stream = model.stream(request).await?;
    let mut last = None;
    while let Some(chunk) = stream.next().await {
        last = Some(chunk?);
    }
    Ok(last.as_ref().and_then(Chunk::completed).expect("a stream ends with `Completed`").clone())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("calls", &self.calls()).finish_non_exhaustive()
    }
}

struct Scripted {
    steps: VecDeque<AnswerStep>,
    waiting: Option<BoxFuture<'static, ()>>,
    journal: RoundJournal,
}

impl Stream for Scripted {
    type Item = Result<Delta>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            match self.steps.pop_front() {
                Some(AnswerStep::Delta(delta)) => return Poll::Ready(Some(Ok(delta))),
                Some(AnswerStep::Wait(waiting)) => self.waiting = Some(waiting),
                Some(AnswerStep::Error(error)) => {
                    self.journal.end();
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.journal.end();
                    return Poll::Ready(None);
                }
            }
        }
    }
}

/// Records the progress of a model call in the journal, also when the call is dropped.
struct RoundJournal {
    journal: Option<Journal>,
    round: u32,
    ended: bool,
}

impl RoundJournal {
    fn begin(journal: Option<Journal>, round: u32) -> Self {
        let begun = Self { journal, round, ended: false };
        begun.record("ask");
        begun
    }

    fn end(&mut self) {
        if !self.ended {
            self.ended = true;
            self.record("end");
        }
    }

    fn record(&self, what: &str) {
        if let Some(journal) = &self.journal {
            journal.record(format!("model.{what} r{}", self.round));
        }
    }
}

impl Drop for RoundJournal {
    fn drop(&mut self) {
        if !self.ended {
            self.record("drop");
        }
    }
}
