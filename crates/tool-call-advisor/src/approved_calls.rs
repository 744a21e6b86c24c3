//! The loop's `CallRunner`: decided calls, the approved ones in one batch.

use advisor_core::{
    BlockId, CallKey, CallRunner, ChatRequest, DecidedCall, DecisionProblem, Effect, Error, ErrorKind,
    NotStartedReason, Result, Text, ToolCall, ToolResult, Turn, VERIFY_BEFORE_RETRYING, Verdict, async_trait,
};

use crate::advisor::Config;
use crate::not_started::NotStarted;
use crate::plan::{Fate, PlannedCall, ToolPlan};
use crate::plan::{Room, prepare_in_time};
use crate::run::decide::Counts;
use crate::run::{limits_of, note_decided};
use crate::{CallDecision, ReadyCall, ToolBatch, ToolCallAdvisor, ToolEvents};

/// Runs approved calls as the loop would, in one batch and within the limits of the turn that continues. They count as its
/// calls. So do denied ones, which a model may repeat.
///
/// The policy and `before_tool` have asked about the calls as the model wrote them. They are asked again about arguments
/// that a person has changed, and may deny these: for the decisions of a turn in [`validate`](CallRunner::validate), before a
/// start is recorded, otherwise in [`run`](CallRunner::run). The `eligible` predicate is not asked.
///
/// With a memory, [`Prompt::resume`](advisor_core::Prompt::resume) calls it. Without one, call it yourself with the calls
/// that a turn left to its caller, in that turn: [`TurnResponse::call_key`](advisor_core::TurnResponse::call_key) has their
/// keys. Nothing is recorded then: a call that must not run twice is started once within one
/// [`Turn`](advisor_core::Turn) value, that of the request.
///
/// # Example
/// ```
/// use std::sync::Arc;
///
/// use advisor_core::{CallRunner, ChatClient, ChatRequest, DecidedCall, Message, Result, Verdict};
/// use advisor_testkit::{Answer, ScriptedModel};
/// use serde_json::{Value, json};
/// use tool_call_advisor::{FnTool, ToolCallAdvisor, ToolDefinition, ToolSet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let pay = ToolDefinition::new("pay", "Pays a bill.", json!({"type": "object"}));
/// let pay = ToolDefinition { client_side: true, ..pay };
/// let tools = ToolSet::new().with(FnTool::new(pay, |_: Value| async { Ok("paid") }));
/// # let model = ScriptedModel::new([Answer::from_calls([("c1", "pay", "{}")]), Answer::from_text("Done.")]);
/// let advisor = ToolCallAdvisor::new();
/// let client = ChatClient::builder(model).advisor(advisor.clone()).tools(&tools).build()?;
/// let answer = client.prompt().user("Pay the bill.").call().await?;
///
/// // Here a person approves each call. Its key is an idempotency key for the tool.
/// let approved = answer.open_calls().filter_map(|(block, call)| {
///     let (key, call) = (answer.call_key(block)?, call.clone());
///     Some(DecidedCall { key, call, verdict: Verdict::Approved, definition: None })
/// });
/// let approved = approved.collect();
/// // In the turn of the answer, a call that must not run twice is started once.
/// let turn = Arc::clone(&answer.turn);
/// let request = ChatRequest { tools, turn, ..ChatRequest::new(Vec::new()) };
/// let results = advisor.run(&request, approved).await?;
///
/// let results = results.into_iter().map(Message::tool);
/// let messages: Vec<_> = answer.transcript.iter().cloned().chain(results).collect();
/// assert_eq!(client.prompt().messages(messages).call().await?.text(), "Done.");
/// # Ok(()) }
/// ```
#[async_trait]
impl CallRunner for ToolCallAdvisor {
    async fn first_request(&self, request: ChatRequest) -> Result<ChatRequest> {
        let request = self.config.hooks.loop_start(request).await?;
        self.config.hooks.before_round(request, 1).await
    }

    async fn validate(&self, request: &ChatRequest, call: &DecidedCall) -> Result<()> {
        limits_of(&self.config, &request.turn)?;
        let (problem, text) = match self.prepare(request, call).await {
            Ok(ready) if ready.tool.definition().client_side => {
                (DecisionProblem::ClientSide, "its tool runs at the client; send its result")
            }
            Ok(ready) => match self.denial(&ready, request).await? {
                Some(_) => (DecisionProblem::Policy, "the policy or a hook denies the changed arguments"),
                None => return Ok(()),
            },
            Err(why) if why.reason() == NotStartedReason::UnknownTool => {
                (DecisionProblem::UnknownTool, "the request has no such tool; add it to the prompt")
            }
            Err(why) if why.reason() == NotStartedReason::IncompleteCall => {
                (DecisionProblem::Incomplete, "the call is incomplete; deny it")
            }
            // Without the reason, which has parts of the arguments.
            Err(_) => {
                let text = "the arguments do not fit the tool; change them, or deny the call";
                (DecisionProblem::Arguments, text)
            }
        };
        let message = format!("the approved call {} of `{}` cannot run: {text}", call.key, call.call.name);
        Err(Error::new(ErrorKind::Approval { problem }, message))
    }

    async fn run(&self, request: &ChatRequest, calls: Vec<DecidedCall>) -> Result<Vec<ToolResult>> {
        let limits = limits_of(&self.config, &request.turn)?;
        let (mut counts, mut room) = (Counts::default(), Room::default());
        let mut fates = Vec::new();
        for decided in &calls {
            let fate = counts.admit_decided(&decided.call, &limits);
            fates.push(self.fate(request, decided, fate, &mut room).await?);
        }
        // From here on they run: nothing that is noted as started is left by an error.
        let planned = calls.into_iter().zip(fates).map(|(decided, fate)| {
            let fate = started_once(fate, &request.turn);
            PlannedCall::new(block_of(&decided.key), decided.key, &decided.call, fate)
        });
        let planned = planned.collect();
        let deadline = note_decided(&request.turn, &limits, counts);
        let batch = ToolBatch::new(request, ToolEvents::ignored(), deadline);
        let mut plan = ToolPlan::new(planned);
        match plan.run(&*self.config.execution, batch, &limits).await {
            (results, None) => Ok(results),
            (_, Some(error)) => Err(error),
        }
    }
}

impl ToolCallAdvisor {
    /// Returns what becomes of a decided call, which the limits admit or not.
    async fn fate(
        &self,
        request: &ChatRequest,
        decided: &DecidedCall,
        by_limits: Fate,
        room: &mut Room,
    ) -> Result<Fate> {
        if let Verdict::Denied(reason) = &decided.verdict {
            return Ok(Fate::NotStarted(NotStarted::denied(reason)));
        }
        if !matches!(by_limits, Fate::Admitted) {
            return Ok(by_limits);
        }
        // Only a call that may run takes room.
        let prepared = match room.take(&called(decided), &request.tools) {
            Ok(()) => self.prepare(request, decided).await,
            Err(why) => Err(why),
        };
        let ready = match prepared {
            Ok(ready) => ready,
            Err(why) => return Ok(Fate::NotStarted(why)),
        };
        let asked = decided.definition.as_deref();
        if asked.is_some_and(|asked| *asked != ready.tool.definition().digest()) {
            let text = "the call was approved, but the definition of the tool has changed since; read the new one, and call the \
                        tool again if it still fits";
            return Ok(Fate::NotStarted(NotStarted::denied(text)));
        }
        // A decision of the turn is about a call of an earlier one. It is validated.
        let is_validated = request.turn.decisions().is_some() && decided.key.turn != *request.turn.id();
        if !is_validated && let Some(reason) = self.denial(&ready, request).await? {
            return Ok(Fate::NotStarted(NotStarted::denied(reason)));
        }
        Ok(Fate::Ready(ready))
    }

    /// Asks about arguments that a person has changed. Returns the reason for which they are denied, if they are.
    async fn denial(&self, ready: &ReadyCall, request: &ChatRequest) -> Result<Option<Text>> {
        if ready.edited.is_none() {
            return Ok(None);
        }
        let config = &self.config;
        let by_policy =
            config.policy.as_ref().map(|policy| policy.decide(&ready.call.name, &ready.arguments));
        let decision = match by_policy {
            Some(CallDecision::Deny(reason)) => return Ok(Some(reason)),
            _ => config.hooks.before_tool(ready, request).await?,
        };
        Ok(if let CallDecision::Deny(reason) = decision { Some(reason) } else { None })
    }

    /// Returns an approved call with the tool and the arguments with which it runs.
    async fn prepare(&self, request: &ChatRequest, decided: &DecidedCall) -> Result<ReadyCall, NotStarted> {
        let Config { schemas, leniency, .. } = &*self.config;
        let (tool, arguments) = prepare_in_time(&called(decided), &request.tools, schemas, *leniency).await?;
        let (call, key, edited) = (decided.call.clone(), decided.key.clone(), edited(&decided.verdict));
        Ok(ReadyCall { call, block: block_of(&key), key, tool, arguments, edited })
    }
}

/// Notes the start of a call that must not run twice, and refuses it if it was started before. Where a memory records
/// starts, it has recorded this one.
fn started_once(fate: Fate, turn: &Turn) -> Fate {
    match fate {
        Fate::Ready(ready)
            if ready.tool.definition().effect == Some(Effect::AtMostOnce)
                && !turn.facts(|facts| facts.started.insert(ready.key.clone())) =>
        {
            Fate::NotStarted(NotStarted::already_started(VERIFY_BEFORE_RETRYING))
        }
        fate => fate,
    }
}

/// Returns the block of a call of an answer that is not at hand.
fn block_of(key: &CallKey) -> BlockId {
    BlockId::new(key.round, key.position)
}

/// Returns the call with the arguments that it runs with.
fn called(decided: &DecidedCall) -> ToolCall {
    let call = decided.call.clone();
    match edited(&decided.verdict) {
        Some(edited) => ToolCall::new(call.id, call.name, edited),
        None => call,
    }
}

/// Returns the arguments that a person has put in place of the model's.
fn edited(verdict: &Verdict) -> Option<Text> {
    match verdict {
        Verdict::ApprovedWith(arguments) => Some(arguments.to_string().into()),
        _ => None,
    }
}
