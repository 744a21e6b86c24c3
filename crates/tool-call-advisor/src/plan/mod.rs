//! `ToolPlan` and `PlannedCall`: the fate of each call of an answer, fixed before any tool runs.

pub(crate) mod prepare;
pub(crate) mod schema;
mod structure;
mod whole_schema;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use advisor_core::{
    BlockId, CallKey, CallStart, ChatResponse, Effect, Leniency, Limit, Message, NotStartedReason, Text,
    Tool, ToolCall, ToolResult, TurnId,
};
use serde_json::Value;

use crate::execution::UnrunCall;
use crate::plan::prepare::{Unready, fit_in_time};
use crate::plan::schema::Schemas;
use crate::truncate::{ResultBounds, cap_result};
use crate::{CallDecision, ClosingTexts, NotStarted, ReadyCall};

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
    /// The arguments with which it runs, if a decision has changed them.
    edited: Option<Text>,
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
    /// A limit denies the call, and the model is told before the turn ends.
    Told(Limit),
    /// A decision denies the call, for this reason.
    Forbidden(Text),
    /// The call is left to the caller, without a result.
    ClientSide,
    /// The call was, or may have been, started before; the text becomes its error result.
    Refused(&'static str),
}

impl ToolPlan {
    /// Plans the calls of `steered`, whose treatment `admissions` holds. Ignores calls that `answer` does not
    /// contain, since their results could not be sent to the model. Ignores a call that `steered` repeats.
    ///
    /// `prepared` returns the tool of an admitted call and its arguments, or the reason why it cannot run.
    pub(crate) fn new(
        answer: ChatResponse,
        turn: &TurnId,
        steered: &ChatResponse,
        admissions: Vec<Admission>,
        mut prepared: impl FnMut(BlockId) -> Option<Result<(Arc<dyn Tool>, Value), Unready>>,
    ) -> Self {
        let position = |block| (0_u32..).zip(answer.tool_calls()).find(|(_, (known, _))| *known == block);
        let mut seen = HashSet::new();
        let calls = steered.tool_calls().zip(admissions).filter_map(|((block, call), admission)| {
            let (position, _) = position(block).filter(|_| seen.insert(block))?;
            let key = CallKey::new(turn.clone(), answer.round(), position);
            let fate = match admission {
                Admission::Denied(limit) => Fate::Denied(limit),
                Admission::Told(limit) => Fate::Told(limit),
                Admission::ClientSide => Fate::ClientSide,
                Admission::Admitted => match prepared(block)? {
                    Ok((tool, arguments)) => Fate::Ready(ReadyCall {
                        call: call.clone(),
                        block,
                        key: key.clone(),
                        tool,
                        arguments,
                        edited: None,
                    }),
                    Err(unready) => Fate::Invalid(unready),
                },
            };
            let is_direct = matches!(&fate, Fate::Ready(ready) if ready.tool.definition().return_direct);
            Some(PlannedCall {
                block,
                identity: CallIdentity::from_call(call),
                key,
                is_direct,
                edited: None,
                fate,
            })
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

    /// Returns the calls that count towards limits: those that run, those that are invalid, and those that a decision
    /// denies. A model that repeats any of them reaches a limit.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &CallIdentity> {
        let is_counted =
            |planned: &&PlannedCall| planned.is_tried() || matches!(planned.fate, Fate::Forbidden(_));
        self.calls.iter().filter(is_counted).map(|planned| &planned.identity)
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

    /// Returns the limits that denied calls, beside those of which the model is only told.
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

    /// Checks whether calls are left to the caller.
    pub(crate) fn has_client_side(&self) -> bool {
        self.calls.iter().any(PlannedCall::is_client_side)
    }

    /// Returns the blocks of the calls that are left to the caller.
    pub(crate) fn client_side(&self) -> HashSet<BlockId> {
        self.calls.iter().filter(|planned| planned.is_client_side()).map(|planned| planned.block).collect()
    }

    /// Returns the client-side calls with an error result, since the turn fails before the caller gets them.
    pub(crate) fn abandoned(&self, texts: &ClosingTexts) -> Vec<UnrunCall> {
        let why = NotStarted::Failed;
        let open = self.calls.iter().filter(|planned| planned.is_client_side());
        let unrun = |planned: &PlannedCall| UnrunCall {
            block: planned.block,
            reason: why.reason(),
            result: planned.identity.error(texts.not_started(&why)),
        };
        open.map(unrun).collect()
    }

    /// Returns the calls of the recorded answer that get an error result since they do not run, in its order.
    pub(crate) fn unrun(&self, texts: &ClosingTexts) -> Vec<UnrunCall> {
        let planned: HashMap<_, _> = self.calls.iter().map(|planned| (planned.block, planned)).collect();
        let unrun = |(block, call): (BlockId, &ToolCall)| {
            let (reason, text) = match planned.get(&block) {
                Some(planned) => planned.fate.reason(texts)?,
                None => (NotStartedReason::Denied, texts.not_started(&NotStarted::LeftOut)),
            };
            Some(UnrunCall::new(block, call, reason, text))
        };
        self.answer.tool_calls().filter_map(unrun).collect()
    }

    /// Returns one result per call of the recorded answer, in its order, except for client-side calls. `ran` holds
    /// the results of the calls that ran, `unrun` the other calls.
    pub(crate) fn results(
        &self,
        ran: Vec<ToolResult>,
        unrun: Vec<UnrunCall>,
        bounds: ResultBounds,
    ) -> Vec<Message> {
        let ran = self.calls.iter().filter(|planned| planned.runs()).zip(ran);
        let of_run = ran.map(|(planned, result)| (planned.block, planned.noted(result)));
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
    /// Returns the reason why the call does not run and the text for the model; `None` if it runs or is
    /// client-side.
    fn reason(&self, texts: &ClosingTexts) -> Option<(NotStartedReason, String)> {
        match self {
            Self::Ready(_) | Self::Ran | Self::ClientSide => None,
            Self::Invalid(Unready { reason, text }) => Some((*reason, text.clone())),
            Self::Denied(limit) | Self::Told(limit) => {
                Some((NotStartedReason::Limit, texts.not_started(&NotStarted::Limit(limit.clone()))))
            }
            Self::Forbidden(reason) => {
                Some((NotStartedReason::Denied, texts.not_started(&NotStarted::Forbidden(reason.clone()))))
            }
            Self::Refused(text) => Some((NotStartedReason::AlreadyStarted, String::from(*text))),
        }
    }
}

impl PlannedCall {
    pub(crate) fn key(&self) -> &CallKey {
        &self.key
    }

    fn is_client_side(&self) -> bool {
        matches!(self.fate, Fate::ClientSide)
    }

    /// Checks whether it runs or ran.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.fate, Fate::Ready(_) | Fate::Ran)
    }

    /// Checks whether it runs, ran, or was found to be invalid.
    pub(crate) fn is_tried(&self) -> bool {
        self.runs() || matches!(self.fate, Fate::Invalid(_))
    }

    /// Adds a note about changed arguments to the result. A direct result is for the user, who does not need it.
    fn noted(&self, result: ToolResult) -> ToolResult {
        note_edit(result, self.edited.as_deref().filter(|_| !self.is_direct))
    }

    /// Returns the effect that its tool declares, if the call is about to run.
    pub(crate) fn effect(&self) -> Option<Effect> {
        match &self.fate {
            Fate::Ready(ready) => ready.tool.definition().effect,
            _ => None,
        }
    }
}

/// The treatment of a call whose round runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Admission {
    /// The loop runs the call.
    Admitted,
    /// A limit denies the call.
    Denied(Limit),
    /// The limit on equal calls denies the call for the first time: the model is told, and may go on.
    Told(Limit),
    /// The call is left to the caller.
    ClientSide,
}

/// The fields of a call that its result repeats. Without the arguments, a copy is cheap.
#[derive(Clone)]
pub(crate) struct CallIdentity {
    pub(crate) id: Text,
    pub(crate) name: Text,
}

impl CallIdentity {
    pub(crate) fn from_call(call: &ToolCall) -> Self {
        Self { id: call.id.clone(), name: call.name.clone() }
    }

    /// Returns an error result with the reason for the model.
    pub(crate) fn error(&self, text: impl Into<Text>) -> ToolResult {
        ToolResult::error(&ToolCall::new(self.id.clone(), self.name.clone(), String::new()), text)
    }
}

/// Decisions about single calls.
impl ToolPlan {
    /// Returns the calls that could run, in call order.
    pub(crate) fn undecided(&mut self) -> impl Iterator<Item = &mut PlannedCall> {
        self.calls.iter_mut().filter(|planned| planned.ready().is_some())
    }

    /// Leaves calls that repeat the id of an earlier client-side call to the caller, too. Their results would be taken
    /// for that of the earlier one.
    pub(crate) fn leave_repeated(&mut self) {
        let mut left: HashSet<Text> = HashSet::new();
        for planned in &mut self.calls {
            if left.contains(&planned.identity.id) {
                planned.fate = Fate::ClientSide;
            }
            if planned.is_client_side() {
                left.insert(planned.identity.id.clone());
            }
        }
    }
}

impl PlannedCall {
    /// Returns the call, if it is about to run.
    pub(crate) fn ready(&self) -> Option<&ReadyCall> {
        match &self.fate {
            Fate::Ready(ready) => Some(ready),
            _ => None,
        }
    }

    /// Applies a decision to a call that is about to run.
    pub(crate) async fn decide(
        &mut self,
        decision: CallDecision,
        schemas: &Arc<Schemas>,
        leniency: Leniency,
    ) {
        let Fate::Ready(ready) = &mut self.fate else { return };
        match decision {
            CallDecision::Run => {}
            CallDecision::Deny(reason) => self.fate = Fate::Forbidden(reason),
            CallDecision::Ask => self.fate = Fate::ClientSide,
            CallDecision::RunWith(arguments) => {
                let misfit = "its arguments were changed and do not fit the tool";
                match fit_in_time(&ready.tool, arguments, schemas, leniency, misfit).await {
                    Ok(arguments) => {
                        let text = Text::from(arguments.to_string());
                        (ready.arguments, ready.edited) = (arguments, Some(text.clone()));
                        self.edited = Some(text);
                    }
                    Err(unready) => self.fate = Fate::Invalid(unready),
                }
            }
        }
    }
}

/// Adds a note about changed arguments to the front of a result, for the model.
pub(crate) fn note_edit(mut result: ToolResult, arguments: Option<&str>) -> ToolResult {
    if let Some(arguments) = arguments {
        result.parts.insert(0, format!("The call ran with changed arguments: {arguments}\n").into());
    }
    result
}
