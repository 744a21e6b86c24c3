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
    BlockId, CallKey, CallStart, ChatResponse, Effect, Limit, Message, NotStartedReason, Tool, ToolCall,
    ToolResult, TurnId,
};
use serde_json::Value;

use crate::plan::call_identity::CallIdentity;
use crate::plan::prepare::Unready;
use crate::truncate::{ResultBounds, cap_result};
use crate::unrun_call::UnrunCall;
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
    /// The call cannot run.
    Invalid(Unready),
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
        prepare: impl Fn(&ToolCall) -> Result<(Arc<dyn Tool>, Value), Unready>,
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
                    Err(unready) => Fate::Invalid(unready),
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

    /// Returns the calls of the recorded answer that do not run, in its order.
    pub(crate) fn unrun(&self, texts: &ClosingTexts) -> Vec<UnrunCall> {
        let planned: HashMap<_, _> = self.calls.iter().map(|planned| (planned.block, planned)).collect();
        let unrun = |(block, call): (BlockId, &ToolCall)| {
            let (reason, text) = match planned.get(&block) {
                Some(planned) => planned.fate.reason(texts)?,
                None => (NotStartedReason::Denied, texts.not_started(&NotStarted::LeftOut)),
            };
            Some(UnrunCall { block, reason, result: ToolResult::error(call, text) })
        };
        self.answer.tool_calls().filter_map(unrun).collect()
    }

    /// Returns one result per call of the recorded answer, in its order. `ran` holds the results of the calls that
    /// ran, `unrun` the other calls.
    pub(crate) fn results(
        &self,
        ran: Vec<ToolResult>,
        unrun: Vec<UnrunCall>,
        bounds: ResultBounds,
    ) -> Vec<Message> {
        let of_run = self.calls.iter().filter(|planned| planned.runs()).map(|planned| planned.block).zip(ran);
        let of_unrun = unrun.into_iter().map(|call| (call.block, call.result));
        let mut by_block: HashMap<_, _> = of_run.chain(of_unrun).collect();
        let result = |(block, call): (BlockId, &ToolCall)| {
            let mut result = by_block.remove(&block)?;
            (result.call_id, result.name) = (call.id.clone(), call.name.clone());
            Some(Message::tool(cap_result(result, bounds)))
        };
        self.answer.tool_calls().filter_map(result).collect()
    }
}

impl Fate {
    /// Returns the reason why the call does not run and the text for the model; `None` if it runs.
    fn reason(&self, texts: &ClosingTexts) -> Option<(NotStartedReason, String)> {
        match self {
            Self::Ready(_) | Self::Ran => None,
            Self::Invalid(Unready { reason, text }) => Some((*reason, text.clone())),
            Self::Denied(limit) => {
                Some((NotStartedReason::Limit, texts.not_started(&NotStarted::Limit(limit.clone()))))
            }
            Self::Refused(text) => Some((NotStartedReason::AlreadyStarted, String::from(*text))),
        }
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
