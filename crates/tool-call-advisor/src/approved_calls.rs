//! The loop's `CallRunner`: decided calls, the approved ones in one batch.

use std::sync::Arc;

use advisor_core::{
    BlockId, CallRunner, ChatRequest, DecidedCall, DecisionProblem, Error, ErrorKind, NotStartedReason,
    Result, Text, Tool, ToolCall, ToolResult, Verdict, async_trait,
};
use serde_json::Value;

use crate::execution::unrun_result;
use crate::plan::Admission;
use crate::plan::note_edit;
use crate::plan::prepare::{Room, Unready, prepare_in_time};
use crate::run::decide::Counts;
use crate::run::round::execute_batch;
use crate::run::{limits_of, note_decided};
use crate::truncate::cap_result;
use crate::{CallDecision, NotStarted, ReadyCall, ToolBatch, ToolCallAdvisor, ToolEvents};

/// A decided call, before its result.
enum Prepared {
    /// It is in the batch. Its arguments were changed to these.
    Runs { edited: Option<Text> },
    /// It does not run.
    Unrun(ToolResult),
}

/// Runs approved calls as the loop would, in one batch and within the limits of the turn that continues. They count as its
/// calls. So do denied ones, which a model may repeat.
///
/// The policy and `before_tool` have asked about the calls as the model wrote them. They are asked again about arguments
/// that a person has changed, and may deny these. The `eligible` predicate is not asked.
#[async_trait]
impl CallRunner for ToolCallAdvisor {
    async fn first_request(&self, request: ChatRequest) -> Result<ChatRequest> {
        let request = self.config.hooks.loop_start(request).await?;
        self.config.hooks.before_round(request, 1).await
    }

    async fn validate(&self, request: &ChatRequest, call: &DecidedCall) -> Result<()> {
        limits_of(&self.config, &request.turn)?;
        let (problem, text) = match self.prepare(request, call).await {
            Ok((tool, _)) if tool.definition().client_side => {
                (DecisionProblem::ClientSide, "its tool runs at the client; send its result")
            }
            Ok((_, arguments)) => match self.denied(call, &arguments) {
                true => (DecisionProblem::Policy, "the policy denies the changed arguments"),
                false => return Ok(()),
            },
            // The reason without its text, which has parts of the arguments.
            Err(unready) => match unready.reason {
                NotStartedReason::UnknownTool => {
                    (DecisionProblem::UnknownTool, "the request has no such tool; add it to the prompt")
                }
                NotStartedReason::IncompleteCall => {
                    (DecisionProblem::Incomplete, "the call is incomplete; deny it")
                }
                _ => {
                    let text = "the arguments do not fit the tool; change them, or deny the call";
                    (DecisionProblem::Arguments, text)
                }
            },
        };
        let message = format!("the approved call {} of `{}` cannot run: {text}", call.key, call.call.name);
        Err(Error::new(ErrorKind::Approval { problem }, message))
    }

    async fn run(&self, request: &ChatRequest, calls: Vec<DecidedCall>) -> Result<Vec<ToolResult>> {
        let limits = limits_of(&self.config, &request.turn)?;
        let (mut ready, mut prepared) = (Vec::new(), Vec::new());
        let (mut counts, mut room) = (Counts::default(), Room::default());
        for call in calls {
            let admission = counts.admit_decided(&call.call, &limits);
            prepared.push(self.prepared(request, call, admission, &mut room, &mut ready).await?);
        }
        let deadline = note_decided(&request.turn, &limits, counts);
        let ran = match ready.is_empty() {
            true => Vec::new(),
            false => {
                let batch = ToolBatch::new(ready, request, ToolEvents::ignored(), deadline);
                execute_batch(&self.config, batch).await?
            }
        };
        let mut ran = ran.into_iter();
        let results = prepared.into_iter().filter_map(|prepared| match prepared {
            Prepared::Runs { edited } => Some(note_edit(ran.next()?, edited.as_deref())),
            Prepared::Unrun(result) => Some(result),
        });
        Ok(results.map(|result| cap_result(result, limits.of_result())).collect())
    }
}

impl ToolCallAdvisor {
    /// Adds the call to those that run, or returns its error result.
    async fn prepared(
        &self,
        request: &ChatRequest,
        decided: DecidedCall,
        admission: Admission,
        room: &mut Room,
        ready: &mut Vec<ReadyCall>,
    ) -> Result<Prepared> {
        if let Verdict::Denied(reason) = decided.verdict {
            return Ok(self.unrun(&decided.call, &NotStarted::Forbidden(reason)));
        }
        if let Admission::Denied(limit) | Admission::Told(limit) = admission {
            return Ok(self.unrun(&decided.call, &NotStarted::Limit(limit)));
        }
        let edited = edited(&decided.verdict);
        // Only a call that may run takes room.
        let fits = room.take(&called(&decided), &request.tools);
        let prepared = match fits {
            Ok(()) => self.prepare(request, &decided).await,
            Err(unready) => Err(unready),
        };
        let (tool, arguments) = match prepared {
            Ok(prepared) => prepared,
            Err(Unready { text, .. }) => return Ok(Prepared::Unrun(ToolResult::error(&decided.call, text))),
        };
        let asked = decided.definition.as_deref();
        if asked.is_some_and(|asked| *asked != tool.definition().digest()) {
            return Ok(self.unrun(&decided.call, &NotStarted::Redefined));
        }
        let DecidedCall { key, call, .. } = decided;
        let block = BlockId::new(key.round, key.position);
        let call = ReadyCall { call, block, key, tool, arguments, edited: edited.clone() };
        if edited.is_some()
            && let CallDecision::Deny(reason) = self.config.hooks.before_tool(&call, request).await?
        {
            return Ok(self.unrun(&call.call, &NotStarted::Forbidden(reason)));
        }
        ready.push(call);
        Ok(Prepared::Runs { edited })
    }

    fn unrun(&self, call: &ToolCall, why: &NotStarted) -> Prepared {
        let text = self.config.texts.not_started(why);
        Prepared::Unrun(unrun_result(call, why.reason(), text))
    }

    /// Checks whether the policy denies arguments that a person has changed.
    fn denied(&self, decided: &DecidedCall, arguments: &Value) -> bool {
        let Verdict::ApprovedWith(_) = decided.verdict else { return false };
        let by_policy =
            self.config.policy.as_ref().map(|policy| policy.decide(&decided.call.name, arguments));
        matches!(by_policy, Some(CallDecision::Deny(_)))
    }

    /// Returns the tool and the arguments with which an approved call runs.
    async fn prepare(
        &self,
        request: &ChatRequest,
        decided: &DecidedCall,
    ) -> Result<(Arc<dyn Tool>, Value), Unready> {
        prepare_in_time(&called(decided), &request.tools, &self.config.schemas, self.config.leniency).await
    }
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
