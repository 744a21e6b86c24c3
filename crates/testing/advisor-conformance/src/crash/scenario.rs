//! `Scenario`: the model's answers in a turn, the limits, and the tools of the scenarios.

use std::fmt;
use std::time::Duration;

use advisor_core::{Effect, FinishReason, ToolDefinition, ToolError, ToolSet};
use serde_json::{Value, json};
use tokio::time::sleep;
use tool_call_advisor::{ClientSideTool, FnTool, ToolLimits};

use super::AwaitPoints;
use crate::crash::points::pass::WANTED;
use advisor_testkit::Answer;

/// The model's answers in a turn, and the number of rounds that the loop allows.
///
/// Answers may call the tools `work`, `direct` (whose results are the answer), `once` (which must not run
/// twice), `elsewhere` (which only the caller runs), `asked` and `asked_once` (which wait for an approval), `slow`,
/// `fails` and `panics`.
#[derive(Clone, Copy)]
pub struct Scenario {
    name: &'static str,
    /// The answer of the turn before, whose calls a person approves.
    asking: Option<fn() -> Answer>,
    answers: fn() -> Vec<Answer>,
    rounds: u32,
}

impl Scenario {
    /// Creates a scenario of these answers: the first to the user message, each further one to the results of
    /// the one before.
    #[must_use]
    pub const fn new(name: &'static str, answers: fn() -> Vec<Answer>) -> Self {
        Self { name, asking: None, answers, rounds: 9 }
    }

    /// Sets the number of rounds that the loop allows.
    #[must_use]
    pub const fn with_rounds(self, rounds: u32) -> Self {
        Self { rounds, ..self }
    }

    /// Adds a turn before, with this answer. A person approves its calls of `asked` and `asked_once`, which begins the
    /// first turn of a case.
    #[must_use]
    pub const fn after(self, asking: fn() -> Answer) -> Self {
        Self { asking: Some(asking), ..self }
    }

    /// The model answers at once.
    pub const PLAIN: Self = Self::new("a plain answer", || vec![done()]);
    /// One round of two calls at a time, then the answer.
    pub const ROUND: Self = Self::new("a round of two calls", || vec![calls(1, ["work", "work"]), done()]);
    /// Three rounds of two calls at a time, then the answer.
    pub const ROUNDS: Self = Self::new("three rounds of two calls", || {
        vec![calls(1, ["work", "work"]), calls(2, ["work", "work"]), calls(3, ["work", "work"]), done()]
    });
    /// The results of two calls are the answer.
    pub const DIRECT: Self = Self::new("return-direct", || vec![calls(1, ["direct", "direct"])]);
    /// The loop's limit is reached in the second round.
    pub const LIMIT: Self =
        Self::new("the last round", || vec![calls(1, ["work", "work"]), calls(2, ["work", "work"])])
            .with_rounds(2);
    /// A tool fails and another one panics, then the answer.
    pub const FAILURES: Self =
        Self::new("tools that fail and panic", || vec![calls(1, ["fails", "panics"]), done()]);
    /// A call that must not run twice beside one that may, then the answer.
    pub const ONCE: Self =
        Self::new("a call that must not run twice", || vec![calls(1, ["once", "work"]), done()]);
    /// A call that the loop runs beside one that is left to the caller. The next turn goes on without its result.
    pub const CLIENT_SIDE: Self = Self::new("a client-side call", || vec![calls(1, ["work", "elsewhere"])]);
    /// Two calls that a person approves, one of which must not run twice. Their results are answered with a round of two
    /// calls, then the answer.
    pub const APPROVED: Self = Self::new("approved calls", || vec![calls(2, ["work", "work"]), done()])
        .after(|| calls(1, ["asked", "asked_once"]));
    /// One call that takes 15 seconds by tokio's clock, then the answer. A lease of 30 seconds is renewed
    /// meanwhile. It needs a paused clock, and is therefore not in [`ALL`](Self::ALL).
    pub const SLOW: Self = Self::new("a call that takes long", || vec![calls(1, ["slow", "work"]), done()]);

    /// All scenarios that take no time.
    pub const ALL: [Self; 9] = [
        Self::PLAIN,
        Self::ROUND,
        Self::ROUNDS,
        Self::DIRECT,
        Self::LIMIT,
        Self::FAILURES,
        Self::ONCE,
        Self::CLIENT_SIDE,
        Self::APPROVED,
    ];

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the answer to a request with `before` answers of its turn.
    pub(super) fn answer(&self, before: usize) -> Answer {
        (self.answers)().into_iter().nth(before).unwrap_or_else(done)
    }

    /// Checks whether a person approves calls of a turn before.
    pub(super) fn asks(&self) -> bool {
        self.asking.is_some()
    }

    /// Returns the answer to a request with `before` answers since the user's message of the turn that asks.
    pub(super) fn answer_after_asking(&self, before: usize) -> Answer {
        match (before.checked_sub(1), self.asking) {
            (None, Some(asking)) => asking(),
            (before, _) => self.answer(before.unwrap_or_default()),
        }
    }

    pub(super) fn limits(&self) -> ToolLimits {
        ToolLimits { rounds: Some(self.rounds), ..ToolLimits::default() }
    }
}

/// The model's answer in the last turn of a case.
pub(super) const LAST: &str = "Fine.";

fn done() -> Answer {
    Answer::new().text("All ").text("done.").finish(FinishReason::Stop)
}

/// Returns an answer with calls of these tools. Their ids are the same in every turn, as with many servers.
fn calls(round: u32, tools: [&str; 2]) -> Answer {
    let answer = Answer::new().text(format!("Round {round}: "));
    let calls = (1..)
        .zip(tools)
        .fold(answer, |answer, (place, tool)| answer.call(&format!("r{round}c{place}"), tool, r#"{"n":1}"#));
    calls.finish(FinishReason::ToolCalls)
}

/// Returns the tools that scenarios call.
pub(super) fn tools(points: &AwaitPoints) -> ToolSet {
    let definition = |name: &str| ToolDefinition::new(name, "A tool.", json!({"type": "object"}));
    let works = |definition| FnTool::new(definition, |_: Value| async { Ok("worked") });
    let slow = |_: Value| async {
        sleep(Duration::from_secs(15)).await;
        Ok("worked")
    };
    let fails = |_: Value| async { Err::<&str, _>(ToolError::new("it failed")) };
    let panics = |_: Value| async { panicked() };
    ToolSet::new()
        .with(points.tool(works(definition("work"))))
        .with(points.tool(works(ToolDefinition { return_direct: true, ..definition("direct") })))
        .with(points.tool(works(ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition("once") })))
        .with(ClientSideTool::new(definition("elsewhere")))
        .with(points.tool(works(definition("asked"))))
        .with(
            points
                .tool(works(ToolDefinition { effect: Some(Effect::AtMostOnce), ..definition("asked_once") })),
        )
        .with(points.tool(FnTool::new(definition("slow"), slow)))
        .with(points.tool(FnTool::new(definition("fails"), fails)))
        .with(points.tool(FnTool::new(definition("panics"), panics)))
}

/// Panics without running the panic hook.
fn panicked() -> Result<&'static str, ToolError> {
    std::panic::resume_unwind(Box::new(WANTED))
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
