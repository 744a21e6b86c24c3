//! Checks a stream of `AgUi` by the rules of its protocol.

use std::collections::BTreeSet;

use advisor_sse::Frame;
use serde_json::Value;

use super::{Checked, Lifecycles, Next, check_all, object, require, text};

/// Checks a stream of [`AgUi`](advisor_sse::AgUi) with the rules of the client's verifier.
///
/// # Errors
/// The first frame that breaks a rule:
/// - A run starts first, and nothing follows its end, which names the same run.
/// - Texts, reasoning, calls and steps open once, and close before the run finishes.
/// - Text is never empty.
/// - An interrupt has an id and a reason, and is about a call without a result.
/// - Before all other content, results are those of calls of earlier runs.
pub(crate) fn ag_ui(frames: &[Frame]) -> Result<(), String> {
    let mut state = State::default();
    check_all(frames, |frame| state.check(&object(frame)?))
}

#[derive(Debug, Default)]
struct State {
    /// The thread and the run that have started.
    run: Option<(String, String)>,
    lives: Lifecycles,
    steps: BTreeSet<String>,
    has_content: bool,
    results: BTreeSet<String>,
}

impl State {
    fn check(&mut self, event: &Value) -> Checked {
        let kind = text(event, "type")?;
        let is_first = self.run.is_none();
        require(!is_first || matches!(kind, "RUN_STARTED" | "RUN_ERROR"), "a run starts first")?;
        match kind {
            "RUN_STARTED" => {
                require(is_first, "a run starts once")?;
                self.run = Some(run(event)?);
            }
            "RUN_FINISHED" => {
                require(self.run == Some(run(event)?), "the run that finishes is the one that started")?;
                require(self.steps.is_empty(), "all steps finish before the run")?;
                self.lives.all_closed()?;
                self.check_outcome(&event["outcome"])?;
                return Ok(Next::End);
            }
            "RUN_ERROR" => {
                text(event, "message")?;
                return Ok(Next::End);
            }
            "STEP_STARTED" => {
                require(self.steps.insert(text(event, "stepName")?.into()), "a step starts once")?;
            }
            "STEP_FINISHED" => {
                require(self.steps.remove(text(event, "stepName")?), "a step finishes after its start")?
            }
            "STATE_SNAPSHOT" => require(event.get("snapshot").is_some(), "a state has its snapshot")?,
            "CUSTOM" => {
                text(event, "name")?;
                require(event.get("value").is_some(), "a custom event has a value")?;
            }
            _ => self.check_content(kind, event)?,
        }
        self.has_content |= !matches!(kind, "RUN_STARTED" | "TOOL_CALL_RESULT");
        Ok(Next::Open)
    }

    fn check_outcome(&self, outcome: &Value) -> Result<(), String> {
        let Some(interrupts) = outcome.get("interrupts").and_then(Value::as_array) else {
            return require(outcome.is_null(), "an outcome is an interrupt");
        };
        require(text(outcome, "type")? == "interrupt", "an outcome is an interrupt")?;
        require(!interrupts.is_empty(), "an interrupt waits for something")?;
        for interrupt in interrupts {
            text(interrupt, "id").and(text(interrupt, "reason"))?;
            let call = text(interrupt, "toolCallId")?;
            self.lives.is_closed("call", call)?;
            require(!self.results.contains(call), "a call with a result needs no approval")?;
        }
        Ok(())
    }

    fn check_content(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let id = || text(event, "messageId");
        let call = || text(event, "toolCallId");
        let delta = || require(!text(event, "delta")?.is_empty(), "a delta is not empty");
        match kind {
            "TEXT_MESSAGE_START" => {
                text(event, "role")?;
                self.lives.open("text", id()?)
            }
            "TEXT_MESSAGE_CONTENT" => delta().and(self.lives.extend("text", id()?)),
            "TEXT_MESSAGE_END" => self.lives.close("text", id()?),
            "REASONING_START" => self.lives.open("reasoning", id()?),
            "REASONING_MESSAGE_START" => {
                text(event, "role")?;
                self.lives.extend("reasoning", id()?)?;
                self.lives.open("reasoning message", id()?)
            }
            "REASONING_MESSAGE_CONTENT" => delta().and(self.lives.extend("reasoning message", id()?)),
            "REASONING_MESSAGE_END" => self.lives.close("reasoning message", id()?),
            "REASONING_END" => self.lives.close("reasoning", id()?),
            "TOOL_CALL_START" => {
                text(event, "toolCallName")?;
                self.lives.open("call", call()?)
            }
            "TOOL_CALL_ARGS" => delta().and(self.lives.extend("call", call()?)),
            "TOOL_CALL_END" => self.lives.close("call", call()?),
            "TOOL_CALL_RESULT" => {
                id().and(text(event, "content"))?;
                if self.has_content {
                    self.lives.is_closed("call", call()?)?;
                }
                require(self.results.insert(call()?.into()), "a call has one result")
            }
            other => Err(format!("the type `{other}` is unknown")),
        }
    }
}

/// Returns the ids of a thread and of a run.
fn run(event: &Value) -> Result<(String, String), String> {
    Ok((text(event, "threadId")?.into(), text(event, "runId")?.into()))
}
