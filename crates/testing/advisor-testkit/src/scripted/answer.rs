//! `Answer`: builds one scripted answer from deltas, waits, gates and errors.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;

use advisor_core::{Delta, DeltaKind, Error, Finish, FinishReason, Text, ToolCallDelta, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Gate;

/// One answer of a [`ScriptedModel`](crate::ScriptedModel): its deltas, its waits and its end.
///
/// Without [`finish`](Answer::finish), an answer ends like a truncated body.
///
/// # Example
/// ```
/// use advisor_core::FinishReason;
/// use advisor_testkit::{Answer, Gate};
///
/// let gate = Gate::new();
/// let answer = Answer::new()
///     .text("Let me ")
///     .gate(&gate) // waits here until the test releases it
///     .text("look.")
///     .call("c1", "weather", r#"{"city":"Oslo"}"#)
///     .finish(FinishReason::ToolCalls);
/// ```
#[derive(Default)]
#[must_use]
pub struct Answer {
    pub(super) steps: VecDeque<AnswerStep>,
    pub(super) refusal: Option<Error>,
    calls: i64,
}

pub(super) enum AnswerStep {
    Delta(Delta),
    Wait(BoxFuture<'static, ()>),
    Error(Error),
}

impl Answer {
    /// Creates an empty answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a whole answer of one text.
    pub fn from_text(text: impl Into<Text>) -> Self {
        Self::new().text(text).finish(FinishReason::Stop)
    }

    /// Creates a whole answer with tool calls: id, name and arguments of each call.
    pub fn from_calls<'a>(calls: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Self {
        let calls = calls
            .into_iter()
            .fold(Self::new(), |answer, (id, name, arguments)| answer.call(id, name, arguments));
        calls.finish(FinishReason::ToolCalls)
    }

    /// Creates an answer that fails before anything is sent.
    pub fn refused(error: Error) -> Self {
        Self { refusal: Some(error), ..Self::new() }
    }

    /// Sends some text.
    pub fn text(self, text: impl Into<Text>) -> Self {
        self.delta(Delta::text(text))
    }

    /// Sends some reasoning.
    pub fn reasoning(self, text: impl Into<Text>) -> Self {
        self.delta(Delta::reasoning(text))
    }

    /// Sends a tool call: its head, then its arguments in two pieces.
    pub fn call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        let index = self.calls;
        self.calls += 1;
        let middle = arguments.char_indices().nth(arguments.chars().count() / 2).map_or(0, |(at, _)| at);
        let (first, second) = arguments.split_at(middle);
        self.delta(Delta::tool_call(ToolCallDelta::start(index, id, name)))
            .delta(Delta::tool_call(ToolCallDelta::arguments(index, first)))
            .delta(Delta::tool_call(ToolCallDelta::arguments(index, second)))
    }

    /// Sends any delta.
    pub fn delta(self, delta: Delta) -> Self {
        self.step(AnswerStep::Delta(delta))
    }

    /// Sends token counts.
    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        self.delta(Delta::usage(Usage::new(input_tokens, output_tokens)))
    }

    /// Sends the finish reason.
    pub fn finish(self, finish: impl Into<Finish>) -> Self {
        self.delta(DeltaKind::Finish(Box::new(finish.into())).into())
    }

    /// Sends the protocol's end marker.
    pub fn done(self) -> Self {
        self.delta(Delta::done())
    }

    /// Waits at the gate until the test releases it.
    pub fn gate(self, gate: &Gate) -> Self {
        let gate = gate.clone();
        self.wait(async move { gate.pass().await })
    }

    /// Waits for any future, such as a timer of tokio's paused clock.
    pub fn wait(self, wait: impl Future<Output = ()> + Send + 'static) -> Self {
        self.step(AnswerStep::Wait(wait.boxed()))
    }

    /// Sends nothing more and never ends.
    pub fn hang(self) -> Self {
        self.wait(std::future::pending())
    }

    /// Fails here.
    pub fn error(self, error: Error) -> Self {
        self.step(AnswerStep::Error(error))
    }

    fn step(mut self, step: AnswerStep) -> Self {
        self.steps.push_back(step);
        self
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("steps", &self.steps.len()).finish_non_exhaustive()
    }
}
