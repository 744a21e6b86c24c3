use std::pin::Pin;
use std::task::{Context, Poll, ready};

use advisor_core::{
    AdvisorChain, Block, BlockContent, ChatRequest, ChatResponse, Chunk, ChunkStream, Error, ErrorKind,
    FinishReason, Message, Result, Usage,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::Stream;

use crate::OutputFormat;
use crate::json_text::may_go_on;

/// The attempts at an answer of the form. The first is live; each further one follows a restart.
pub(crate) struct Attempts {
    state: State,
    next: AdvisorChain,
    request: ChatRequest,
    format: OutputFormat,
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
    pub(crate) fn new(
        first: ChunkStream,
        next: AdvisorChain,
        request: ChatRequest,
        format: OutputFormat,
        left: u32,
    ) -> Self {
        Self { state: State::Live(first), next, request, format, left, usage: None, shown: false }
    }

    /// Validates an answer. Returns the item to emit next, if any. Asks again, or fails, if the answer does not
    /// fit.
    fn decide(&mut self, answer: ChatResponse) -> Option<Result<Chunk>> {
        if let Some(usage) = answer.usage() {
            self.usage.get_or_insert_default().add(usage);
        }
        let answer = answer.with_usage(self.usage);
        if answer.tool_calls().next().is_some() || answer.finish().reason == FinishReason::Paused {
            return Some(Ok(Chunk::Completed(answer)));
        }
        match problem(&self.format, &answer) {
            None => return Some(Ok(Chunk::Completed(answer))),
            Some(Problem::Form(problem)) if self.left > 0 => self.ask_again(&answer, &problem),
            Some(problem) => {
                // A complete answer would be recorded as the final answer of the turn.
                let rejected = answer.clone().with_finish(FinishReason::Interrupted);
                self.state = State::Ended(Some(Box::new(problem.into_error().or_partial(rejected))));
            }
        }
        // The emitted chunks of a rejected answer are void.
        let round = answer.round();
        std::mem::take(&mut self.shown).then_some(Ok(Chunk::AttemptRestarted { round }))
    }

    fn ask_again(&mut self, rejected: &ChatResponse, problem: &str) {
        self.left -= 1;
        let again = format!("Your answer does not fit the form: {problem}. Answer again, in the form.");
        let (request, text) = (self.request.clone(), rejected.text());
        let request = if text.trim().is_empty() {
            // Servers reject an empty answer, and some reject two user messages in a row.
            request.with_system(again)
        } else {
            let rejected = Message::assistant(text).ephemeral();
            request.with_message(rejected).with_message(Message::user(again).ephemeral())
        };
        self.state = State::Opening(self.next.next_stream(request).boxed());
    }
}

enum Problem {
    /// A new request may correct it.
    Form(String),
    /// A new request would give the same.
    Finish(&'static str),
}

fn problem(format: &OutputFormat, answer: &ChatResponse) -> Option<Problem> {
    let cut = match answer.finish().reason {
        FinishReason::Length => Some("the answer was cut at its token limit; allow more tokens"),
        FinishReason::ContentFilter => Some("a content filter stopped the answer"),
        FinishReason::Interrupted => Some("the answer was interrupted"),
        _ if refuses(answer) => Some("the model refused to answer"),
        _ => None,
    };
    let text = answer.text();
    match (format.parse(&text), cut) {
        (Ok(_), None) => None,
        (Ok(_), Some(_)) if is_cut(&answer.finish().reason) && !may_go_on(&text) => None,
        (Err(problem), None) => Some(Problem::Form(problem)),
        (_, Some(cut)) => Some(Problem::Finish(cut)),
    }
}

/// Checks whether the model refused, also if the finish reason does not report it.
fn refuses(answer: &ChatResponse) -> bool {
    let is_refusal =
        |block: &Block| matches!(block.content(), BlockContent::Refusal(text) if !text.trim().is_empty());
    answer.finish().reason == FinishReason::Refusal || answer.message().blocks().iter().any(is_refusal)
}

fn is_cut(reason: &FinishReason) -> bool {
    matches!(reason, FinishReason::Length | FinishReason::Interrupted)
}

impl Problem {
    fn into_error(self) -> Error {
        let message = match self {
            // The parser's message can quote the answer, which is content.
            Self::Form(_) => {
                "no answer had the requested form; the last one is in the error's partial answer"
            }
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
