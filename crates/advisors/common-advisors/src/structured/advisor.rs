//! `StructuredOutput`: the advisor, and `Attempts`, the stream over all attempts. It accepts, rejects or asks again.

use std::borrow::Cow;
use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChatResponse, Chunk, ChunkStream, Error, ErrorKind,
    FinishReason, Message, Phase, Placement, Result, StreamAdvisor, Usage, async_trait,
};
use futures::stream::{StreamExt, unfold};

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
        let attempts = Attempts {
            live: next.next_stream(request.clone()).await?,
            follows: None,
            next,
            request,
            format: self.format.clone(),
            made: 1,
            left: self.attempts.saturating_sub(1),
            usage: None,
            shown: false,
        };
        Ok(ChunkStream::new(unfold(attempts, Attempts::next_chunk)))
    }
}

/// The attempts at an answer of the form. The first is live; each further one follows a restart.
struct Attempts {
    live: ChunkStream,
    /// The request or the error that follows a rejected answer.
    follows: Option<Result<ChatRequest>>,
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

impl Attempts {
    async fn next_chunk(mut self) -> Option<(Result<Chunk>, Self)> {
        loop {
            if let Some(follows) = self.follows.take() {
                // Caches inside remove the rejected answer first.
                self.request.turn.reject_answer().await;
                let opened = match follows {
                    Ok(request) => self.next.next_stream(request).await,
                    Err(error) => Err(error),
                };
                match opened {
                    Ok(live) => self.live = live,
                    Err(error) => return Some((Err(error), self)),
                }
            }
            match self.live.next().await? {
                Ok(Chunk::Completed(answer)) => {
                    if let Some(item) = self.decide(answer) {
                        return Some((item, self));
                    }
                }
                item => {
                    self.shown = true;
                    return Some((item, self));
                }
            }
        }
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
            Some(Problem::Form(misfit)) if self.left > 0 => {
                (self.left, self.made) = (self.left - 1, self.made + 1);
                self.follows = Some(Ok(self.again(&answer, &misfit)));
            }
            Some(problem) => {
                // A complete answer would be recorded as the final answer of the turn.
                let rejected = answer.clone().with_finish(FinishReason::Interrupted);
                let error = problem.into_error(self.made).or_partial(rejected);
                self.follows = Some(Err(error));
            }
        }
        // The emitted chunks of a rejected answer are void.
        let round = answer.round();
        std::mem::take(&mut self.shown).then_some(Ok(Chunk::AttemptRestarted { round }))
    }

    /// Returns the request that asks again after an answer with this problem.
    fn again(&self, rejected: &ChatResponse, problem: &str) -> ChatRequest {
        let again = format!("Your answer does not fit the form: {problem}. Answer again, in the form.");
        let (request, text) = (self.request.clone(), rejected.text());
        if text.trim().is_empty() {
            // Servers reject an empty answer, and some reject two user messages in a row.
            return request.with_system(again);
        }
        let rejected = Message::assistant(text).ephemeral();
        request.with_message(rejected).with_message(Message::user(again).ephemeral())
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
