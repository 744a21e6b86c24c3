//! `StructuredOutput`: the advisor, and `Attempts`, the stream over all attempts. It accepts, rejects or asks again.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChatResponse, Chunk, ChunkStream, Error, ErrorKind,
    FinishReason, Message, Phase, Placement, Result, StreamAdvisor, Usage, async_trait,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::Stream;

use crate::structured::OutputFormat;
use crate::structured::json_text::may_go_on;

/// Asks for answers of a form, validates them, and asks again if one does not fit.
///
/// Its position is [`Phase::Round`], inside memory and the tool loop. Rejected answers and the corrections sent to
/// the model are never stored. Caches and retries of [`Phase::ModelCall`] are inside it and see the requested
/// form. Answers with tool calls pass, since another round follows them.
///
/// # Ordering
/// The first attempt streams live. If an attempt is rejected after it was shown,
/// [`Chunk::AttemptRestarted`](advisor_core::Chunk::AttemptRestarted) voids the chunks of its round. The next
/// attempt follows in its own round. The usage of the response sums all attempts. The chunks of the last attempt
/// are voided as well if it is rejected.
///
/// # Cancellation
/// Dropping the stream drops the running attempt.
///
/// # Errors
/// Of kind [`InvalidOutput`](advisor_core::ErrorKind::InvalidOutput) if the last attempt does not fit, or if an
/// answer is cut off, filtered or refused, or ended by a limit. The text names the cause, without content.
/// The answer is the error's [`partial`](advisor_core::Error::partial); [`OutputFormat::parse`] tells why it does not fit.
///
/// Caches inside remove rejected answers ([`Turn::reject_answer`](advisor_core::Turn::reject_answer)).
///
/// # Example
/// See [`PromptExt::entity`](crate::structured::PromptExt::entity), which adds this advisor to a turn.
#[derive(Debug, Clone)]
#[allow(clippy::exhaustive_structs, reason = "callers write it with `..StructuredOutput::new(…)`")]
pub struct StructuredOutput {
    /// The form.
    pub format: OutputFormat,
    /// The maximum number of requests, the first included; 0 counts as 1.
    pub attempts: u32,
}

impl StructuredOutput {
    /// Creates an advisor that asks at most three times.
    #[must_use]
    pub fn new(format: OutputFormat) -> Self {
        Self { format, attempts: 3 }
    }
}

impl AdvisorInfo for StructuredOutput {
    fn name(&self) -> &'static str {
        "structured-output"
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::Round, role: AdvisorRole::InsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for StructuredOutput {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let request = self.format.apply_to(request, next.schema_support());
        let first = next.next_stream(request.clone()).await?;
        Ok(ChunkStream::new(Attempts::new(
            first,
            next,
            request,
            self.format.clone(),
            self.attempts.saturating_sub(1),
        )))
    }
}

/// The attempts at an answer of the form. The first is live; each further one follows a restart.
struct Attempts {
    state: State,
    next: AdvisorChain,
    request: ChatRequest,
    format: OutputFormat,
    /// Number of requests that were made.
    made: u32,
    /// Number of requests that remain.
    left: u32,
    /// Summed usage of the attempts.
    usage: Option<Usage>,
    /// Whether a chunk of the running attempt was emitted.
    shown: bool,
}

enum State {
    Live(ChunkStream),
    Opening(BoxFuture<'static, Result<ChunkStream>>),
    /// The attempts have ended, with this error if it was not emitted yet.
    Ended(Option<Box<Error>>),
}

impl Attempts {
    fn new(
        first: ChunkStream,
        next: AdvisorChain,
        request: ChatRequest,
        format: OutputFormat,
        left: u32,
    ) -> Self {
        Self { state: State::Live(first), next, request, format, made: 1, left, usage: None, shown: false }
    }

    /// Validates an answer. Returns the item to emit next, if any. Asks again, or fails, if the answer does not
    /// fit.
    fn decide(&mut self, answer: ChatResponse) -> Option<Result<Chunk>> {
        let answer = answer.with_added_usage(self.usage);
        self.usage = answer.usage;
        if answer.tool_calls().next().is_some() || answer.finish.reason == FinishReason::Paused {
            return Some(Ok(Chunk::Completed(answer)));
        }
        match problem(&self.format, &answer) {
            None => return Some(Ok(Chunk::Completed(answer))),
            Some(Problem::Form(misfit)) if self.left > 0 => self.ask_again(&answer, &misfit),
            Some(problem) => {
                // A complete answer would be recorded as the final answer of the turn.
                let rejected = answer.clone().with_finish(FinishReason::Interrupted);
                let error = problem.into_error(self.made).or_partial(rejected);
                self.after_rejection(async { Err(error) });
            }
        }
        // The emitted chunks of a rejected answer are void.
        let round = answer.round();
        std::mem::take(&mut self.shown).then_some(Ok(Chunk::AttemptRestarted { round }))
    }

    fn ask_again(&mut self, rejected: &ChatResponse, problem: &str) {
        (self.left, self.made) = (self.left - 1, self.made + 1);
        let again = format!("Your answer does not fit the form: {problem}. Answer again, in the form.");
        let (request, text) = (self.request.clone(), rejected.text());
        let request = if text.trim().is_empty() {
            // Servers reject an empty answer, and some reject two user messages in a row.
            request.with_system(again)
        } else {
            let rejected = Message::assistant(text).ephemeral();
            request.with_message(rejected).with_message(Message::user(again).ephemeral())
        };
        self.after_rejection(self.next.next_stream(request));
    }

    /// Opens the next attempt, or fails, after caches inside have removed the rejected answer.
    fn after_rejection(&mut self, opening: impl Future<Output = Result<ChunkStream>> + Send + 'static) {
        let turn = Arc::clone(&self.request.turn);
        let rejected = async move {
            turn.reject_answer().await;
            opening.await
        };
        self.state = State::Opening(rejected.boxed());
    }
}

enum Problem {
    /// A new request may correct it.
    Form(String),
    /// A new request would give the same.
    Finish(Cow<'static, str>),
}

fn problem(format: &OutputFormat, answer: &ChatResponse) -> Option<Problem> {
    let cut: Option<Cow<'static, str>> = match &answer.finish.reason {
        FinishReason::Length => Some("the answer was cut at its token limit; allow more tokens".into()),
        FinishReason::ContentFilter => Some("a content filter stopped the answer".into()),
        FinishReason::Interrupted => Some("the answer was interrupted".into()),
        limit @ FinishReason::Limit(_) => Some(ended_without_value(limit).into()),
        _ if answer.is_refusal() => Some("the model refused to answer".into()),
        _ => None,
    };
    let text = answer.text();
    match (format.parse(&text), cut) {
        (Ok(_), None) => None,
        (Ok(_), Some(_)) if is_cut(&answer.finish.reason) && !may_go_on(&text) => None,
        (Err(misfit), None) => Some(Problem::Form(misfit)),
        (_, Some(cut)) => Some(Problem::Finish(cut)),
    }
}

/// Returns the text of the error of a turn that ended for this reason, without a value.
pub(crate) fn ended_without_value(reason: &FinishReason) -> String {
    let cause = match reason {
        FinishReason::ToolCalls => {
            return "the turn waits for tool calls, so it has no value yet; resume it with their decisions or results".into();
        }
        FinishReason::Limit(limit) => format!("it reached {limit}"),
        // A server's own name of a reason can be any text.
        FinishReason::Other(_) => "the provider ended it for a reason of an unknown name".into(),
        known => format!("its finish reason is {known:?}"),
    };
    format!(
        "the turn has no answer in the requested form: {cause}; its last answer is in the error's partial answer"
    )
}

fn is_cut(reason: &FinishReason) -> bool {
    matches!(reason, FinishReason::Length | FinishReason::Interrupted | FinishReason::Limit(_))
}

impl Problem {
    fn into_error(self, attempts: u32) -> Error {
        let message = match self {
            // Without the reason, which can quote the answer.
            Self::Form(_) => format!(
                "no answer had the requested form (attempts: {attempts}); the last one is in the error's partial answer, \
                 and `OutputFormat::parse` tells why it does not fit"
            )
            .into(),
            Self::Finish(text) => text,
        };
        Error::new(ErrorKind::InvalidOutput, message)
    }
}

impl Stream for Attempts {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Live(live) => match ready!(Pin::new(live).poll_next(cx)) {
                    Some(Ok(Chunk::Completed(answer))) => {
                        this.state = State::Ended(None);
                        if let Some(out) = this.decide(answer) {
                            return Poll::Ready(Some(out));
                        }
                    }
                    next => {
                        this.shown = true;
                        return Poll::Ready(next);
                    }
                },
                State::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                    Ok(live) => this.state = State::Live(live),
                    Err(error) => this.state = State::Ended(Some(Box::new(error))),
                },
                State::Ended(error) => return Poll::Ready(error.take().map(|error| Err(*error))),
            }
        }
    }
}
