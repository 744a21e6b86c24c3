pub(crate) mod call_identity;
#[cfg(feature = "schema-validation")]
pub(crate) mod lenient;
pub(crate) mod prepare;
#[cfg(feature = "schema-validation")]
pub(crate) mod schema;
#[cfg(not(feature = "schema-validation"))]
#[path = "no_schema.rs"]
pub(crate) mod schema;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use advisor_core::{
    BlockId, CallKey, CallStart, ChatResponse, Chunk, Effect, Limit, Message, Tool, ToolCall, ToolEvent,
    ToolEventKind, ToolResult, TurnId,
};
use serde_json::Value;

use crate::plan::call_identity::CallIdentity;
use crate::truncate::{ResultBounds, cap_result};
use crate::{ClosingTexts, NotStarted, ReadyCall};

/// The treatment of each call of an answer by the loop. Decided once, before any tool runs.
pub(crate) struct ToolPlan {
    pub(crate) answer: ChatResponse,
    calls: Vec<PlannedCall>,
}

/// A call of the answer, and its treatment by the loop.
pub(crate) struct PlannedCall {
    block: BlockId,
    identity: CallIdentity,
    key: CallKey,
    /// Whether the tool returns its result directly to the user.
    is_direct: bool,
    fate: Fate,
}

enum Fate {
    /// The call runs.
    Ready(ReadyCall),
    /// The call was passed to the execution.
    Ran,
    /// The call cannot run; the text becomes its error result.
    Invalid(String),
    /// A limit denies the call.
    Denied(Limit),
    /// The call was, or may have been, started before; the text becomes its error result.
    Refused(&'static str),
}

impl ToolPlan {
    /// Plans the calls of `steered`; `denied` holds the limit that denies each call, if any. Ignores calls that
    /// `answer` does not contain, since their results could not be sent to the model. Ignores a call that
    /// `steered` repeats.
    ///
    /// `prepare` returns the tool of a call and its arguments, or the reason why it cannot run.
    pub(crate) fn new(
        answer: ChatResponse,
        turn: &TurnId,
        steered: &ChatResponse,
        denied: Vec<Option<Limit>>,
        prepare: impl Fn(&ToolCall) -> Result<(Arc<dyn Tool>, Value), String>,
    ) -> Self {
        let position = |block| (0_u32..).zip(answer.tool_calls()).find(|(_, (known, _))| *known == block);
        let mut seen = HashSet::new();
        let calls = steered.tool_calls().zip(denied).filter_map(|((block, call), denied)| {
            let (position, _) = position(block).filter(|_| seen.insert(block))?;
            let key = CallKey::new(turn.clone(), answer.round(), position);
            let fate = match denied {
                Some(limit) => Fate::Denied(limit),
                None => match prepare(call) {
                    Ok((tool, arguments)) => Fate::Ready(ReadyCall {
                        call: call.clone(),
                        block,
                        key: key.clone(),
                        tool,
                        arguments,
                    }),
                    Err(text) => Fate::Invalid(text),
                },
            };
            let is_direct = matches!(&fate, Fate::Ready(ready) if ready.tool.definition().return_direct);
            Some(PlannedCall { block, identity: CallIdentity::from_call(call), key, is_direct, fate })
        });
        let calls = calls.collect();
        Self { answer, calls }
    }

    /// Creates a plan that runs no call: the loop answers every call as left out.
    pub(crate) fn without_calls(answer: ChatResponse) -> Self {
        Self { answer, calls: Vec::new() }
    }

    /// Refuses each call for which `reason` returns a text. The text becomes the error result of the call.
    pub(crate) fn refuse(&mut self, reason: impl Fn(&PlannedCall) -> Option<&'static str>) {
        for planned in &mut self.calls {
            if let Some(text) = reason(planned) {
                planned.fate = Fate::Refused(text);
            }
        }
    }

    /// Returns the starts to record: those of calls that run and whose tools must not run twice.
    pub(crate) fn starts(&self) -> Vec<CallStart> {
        let once = self.calls.iter().filter(|planned| planned.effect() == Some(Effect::AtMostOnce));
        once.map(|planned| CallStart::new(planned.key.clone(), planned.identity.id.clone())).collect()
    }

    /// Returns the calls that count towards limits: those that run, and those that are invalid.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &CallIdentity> {
        self.calls.iter().filter(|planned| planned.is_tried()).map(|planned| &planned.identity)
    }

    /// Returns the calls that cannot run, each with its error result.
    pub(crate) fn invalid(&self) -> impl Iterator<Item = (BlockId, ToolResult)> {
        self.calls.iter().filter_map(|planned| match &planned.fate {
            Fate::Invalid(text) => Some((planned.block, planned.identity.error(text.as_str()))),
            _ => None,
        })
    }

    /// Takes the calls that run, to pass them to the execution.
    pub(crate) fn take_ready(&mut self) -> Vec<ReadyCall> {
        let take = |planned: &mut PlannedCall| match std::mem::replace(&mut planned.fate, Fate::Ran) {
            Fate::Ready(ready) => Some(ready),
            other => {
                planned.fate = other;
                None
            }
        };
        self.calls.iter_mut().filter_map(take).collect()
    }

    /// Returns the limits that denied calls.
    pub(crate) fn denied(&self) -> impl Iterator<Item = &Limit> {
        self.calls.iter().filter_map(|planned| match &planned.fate {
            Fate::Denied(limit) => Some(limit),
            _ => None,
        })
    }

    /// Checks whether the results are the answer to the user, provided that none is an error.
    pub(crate) fn is_direct(&self) -> bool {
        let direct = |planned: &PlannedCall| planned.is_direct && matches!(planned.fate, Fate::Ran);
        !self.calls.is_empty() && self.calls.iter().all(direct)
    }

    /// Returns one result per call of the recorded answer, in its order. `ran` holds the results of the calls that
    /// ran.
    pub(crate) fn results(
        &self,
        ran: Vec<ToolResult>,
        texts: &ClosingTexts,
        bounds: ResultBounds,
    ) -> Vec<Message> {
        let mut ran = ran.into_iter();
        let result = |planned: &PlannedCall| {
            let error = |text: &str| Some(planned.identity.error(text));
            let result = match &planned.fate {
                Fate::Ready(_) | Fate::Ran => ran.next(),
                Fate::Invalid(text) => error(text),
                Fate::Denied(limit) => error(&texts.not_started(&NotStarted::Limit(limit.clone()))),
                Fate::Refused(text) => error(text),
            };
            Some((planned.block, result?))
        };
        let mut by_block: HashMap<_, _> = self.calls.iter().filter_map(result).collect();
        let result = |(block, call): (BlockId, &ToolCall)| {
            let left_out = || ToolResult::error(call, texts.not_started(&NotStarted::LeftOut));
            let mut result = by_block.remove(&block).unwrap_or_else(left_out);
            (result.call_id, result.name) = (call.id.clone(), call.name.clone());
            Message::tool(cap_result(result, bounds))
        };
        self.answer.tool_calls().map(result).collect()
    }

    /// Returns the events that report the results of calls that were not tried.
    pub(crate) fn not_run(&self, results: &[Message]) -> Vec<Chunk> {
        let tried = |block| self.calls.iter().any(|planned| planned.block == block && planned.is_tried());
        finished(&self.answer, results, |block| !tried(block))
    }
}

impl PlannedCall {
    pub(crate) fn key(&self) -> &CallKey {
        &self.key
    }

    /// Checks whether it runs or ran.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.fate, Fate::Ready(_) | Fate::Ran)
    }

    /// Checks whether it runs, ran, or was found to be invalid.
    pub(crate) fn is_tried(&self) -> bool {
        self.runs() || matches!(self.fate, Fate::Invalid(_))
    }

    /// Returns the effect that its tool declares, if the call is about to run.
    pub(crate) fn effect(&self) -> Option<Effect> {
        match &self.fate {
            Fate::Ready(ready) => ready.tool.definition().effect,
            _ => None,
        }
    }
}

/// Returns the events that report the results of those calls of an answer that `tell` accepts.
pub(crate) fn finished(
    answer: &ChatResponse,
    results: &[Message],
    tell: impl Fn(BlockId) -> bool,
) -> Vec<Chunk> {
    let ended = answer.tool_calls().zip(results.iter().filter_map(Message::tool_result));
    ended
        .filter(|((block, _), _)| tell(*block))
        .map(|((block, call), result)| {
            let kind = ToolEventKind::Finished(result.clone());
            Chunk::Tool(Box::new(ToolEvent::new(block, call.id.clone(), call.name.clone(), kind)))
        })
        .collect()
}
