//! `ToolPlan` and `Fate`: what becomes of each call, fixed before any tool runs; all calls run through it.
//! `prepare_in_time`: finds the tool of a call and validates its arguments, off the async threads if that may take long.

pub(crate) mod schema;
mod structure;
mod whole_schema;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::json::{MOST_VALUES, values};
use advisor_core::{
    BlockId, CallKey, CallStart, Effect, Error, ErrorKind, Leniency, Limit, NotStartedReason,
    OUTCOME_UNKNOWN, Text, Tool, ToolCall, ToolResult, ToolSet, Turn, VERIFY_BEFORE_RETRYING,
};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::not_started::NotStarted;
use crate::plan::schema::Schemas;
use crate::truncate::cap_result;
use crate::{CallDecision, ReadyCall, ToolBatch, ToolExecution, ToolLimits};

/// Calls and what becomes of each, in call order.
pub(crate) struct ToolPlan(Vec<PlannedCall>);

pub(crate) struct PlannedCall {
    block: BlockId,
    key: CallKey,
    /// The call without its arguments, so that a copy is cheap.
    call: ToolCall,
    fate: Fate,
}

/// What becomes of a call, from the decision after its round to its result.
#[derive(Debug)]
pub(crate) enum Fate {
    /// No limit denies the call; its tool and its arguments are looked at next.
    Admitted,
    /// The call runs.
    Ready(ReadyCall),
    /// The call was passed to the execution.
    Ran {
        /// The arguments with which it ran, if a decision has changed them.
        edited: Option<Text>,
        /// Whether the tool returns its result directly to the user.
        is_direct: bool,
    },
    /// The call waits for a person or for the caller, without a result.
    Pending,
    /// The call does not run.
    NotStarted(NotStarted),
}

impl ToolPlan {
    pub(crate) fn new(calls: Vec<PlannedCall>) -> Self {
        Self(calls)
    }

    /// Returns the calls that could run, in call order.
    pub(crate) fn undecided(&mut self) -> impl Iterator<Item = &mut PlannedCall> {
        self.0.iter_mut().filter(|planned| planned.ready().is_some())
    }

    /// Leaves calls that repeat the id of an earlier pending call pending, too. Their results would be taken for that of
    /// the earlier one.
    pub(crate) fn leave_repeated(&mut self) {
        let mut left: HashSet<Text> = HashSet::new();
        for planned in &mut self.0 {
            if left.contains(&planned.call.id) {
                planned.fate = Fate::Pending;
            }
            if planned.is_pending() {
                left.insert(planned.call.id.clone());
            }
        }
    }

    /// Refuses the calls that were, or may have been, started before.
    pub(crate) fn refuse(&mut self, turn: &Turn) {
        for planned in &mut self.0 {
            let (is_started, is_repeated) = turn.facts(|facts| {
                (facts.started.contains(&planned.key), facts.repeated.contains(&planned.key.round))
            });
            let is_silent = || planned.ready().is_some_and(|ready| ready.tool.definition().effect.is_none());
            if planned.is_tried() && is_started {
                planned.fate = Fate::NotStarted(NotStarted::already_started(VERIFY_BEFORE_RETRYING));
            } else if is_silent() && is_repeated {
                planned.fate = Fate::NotStarted(NotStarted::already_started(OUTCOME_UNKNOWN));
            }
        }
    }

    /// Returns the starts to record: those of calls that run and whose tools must not run twice.
    pub(crate) fn starts(&self) -> Vec<CallStart> {
        let is_once = |planned: &&PlannedCall| {
            planned.ready().is_some_and(|ready| ready.tool.definition().effect == Some(Effect::AtMostOnce))
        };
        let once = self.0.iter().filter(is_once);
        once.map(|planned| CallStart::new(planned.key.clone(), planned.call.id.clone())).collect()
    }

    /// Returns the tools of the calls that count towards limits: those that run, those that are invalid, and those that are
    /// denied. A model that repeats any of them reaches a limit. A call that a hook left out is none of them.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Text> {
        let is_counted = |planned: &&PlannedCall| {
            planned.is_tried()
                || matches!(planned.fate, Fate::NotStarted(NotStarted::Other(NotStartedReason::Denied, _)))
        };
        self.0.iter().filter(is_counted).map(PlannedCall::tool)
    }

    /// Returns the first limit that denied a call, beside those of which the model is only told.
    pub(crate) fn denied(&self) -> Option<&Limit> {
        self.0.iter().find_map(|planned| match &planned.fate {
            Fate::NotStarted(NotStarted::Limit(limit)) => Some(limit),
            _ => None,
        })
    }

    /// Checks whether the results are the answer to the user, provided that none is an error.
    pub(crate) fn is_direct(&self) -> bool {
        let is_direct = |planned: &PlannedCall| matches!(planned.fate, Fate::Ran { is_direct: true, .. });
        !self.0.is_empty() && self.0.iter().all(is_direct)
    }

    /// Returns the blocks of the pending calls.
    pub(crate) fn pending(&self) -> HashSet<BlockId> {
        self.0.iter().filter(|planned| planned.is_pending()).map(|planned| planned.block).collect()
    }

    /// Runs the calls that are ready, in `batch`, after it has reported those that do not run. Returns a result for each
    /// call that is not pending, in call order.
    ///
    /// If the execution fails, its error comes beside the results. Pending calls have one then, too, since the turn ends
    /// before the caller gets them.
    pub(crate) async fn run(
        &mut self,
        execution: &dyn ToolExecution,
        mut batch: ToolBatch,
        limits: &ToolLimits,
    ) -> (Vec<ToolResult>, Option<Error>) {
        for planned in &self.0 {
            if let Fate::NotStarted(why) = &planned.fate {
                batch.events.not_run(why.event(planned.block, &planned.call)).await;
            }
        }
        batch.calls = self.take_ready();
        let (ran, broken) = execute(execution, batch).await;
        let mut ran = ran.into_iter();
        let result = |planned: &PlannedCall| match &planned.fate {
            Fate::Ran { edited, is_direct } => {
                // A direct result is for the user, who does not need the note.
                let edited = edited.as_ref().filter(|_| !is_direct);
                Some(note_edit(ran.next()?, planned, edited))
            }
            Fate::NotStarted(why) => why.event(planned.block, &planned.call).result().cloned(),
            _ => broken.as_ref().map(|_| ToolResult::error(&planned.call, NotStarted::failed().to_string())),
        };
        let results = self.0.iter().filter_map(result).map(|result| cap_result(result, limits)).collect();
        (results, broken)
    }

    fn take_ready(&mut self) -> Vec<ReadyCall> {
        let take = |planned: &mut PlannedCall| {
            let ready = planned.ready()?;
            let (edited, is_direct) = (ready.edited.clone(), ready.tool.definition().return_direct);
            match std::mem::replace(&mut planned.fate, Fate::Ran { edited, is_direct }) {
                Fate::Ready(ready) => Some(ready),
                _ => None,
            }
        };
        self.0.iter_mut().filter_map(take).collect()
    }
}

impl PlannedCall {
    pub(crate) fn new(block: BlockId, key: CallKey, call: &ToolCall, fate: Fate) -> Self {
        Self { block, key, call: ToolCall::new(&call.id, &call.name, ""), fate }
    }

    /// Returns the call, if it is about to run.
    pub(crate) fn ready(&self) -> Option<&ReadyCall> {
        match &self.fate {
            Fate::Ready(ready) => Some(ready),
            _ => None,
        }
    }

    /// Returns the name under which it runs; a hook may have changed it.
    fn tool(&self) -> &Text {
        self.ready().map_or(&self.call.name, |ready| &ready.call.name)
    }

    fn is_pending(&self) -> bool {
        matches!(self.fate, Fate::Pending)
    }

    /// Checks whether it runs, ran, or was found to be invalid or out of time when it was about to.
    fn is_tried(&self) -> bool {
        match &self.fate {
            Fate::Ready(_) | Fate::Ran { .. } => true,
            Fate::NotStarted(why) => matches!(
                why,
                NotStarted::Limit(Limit::Time(_))
                    | NotStarted::Other(
                        NotStartedReason::UnknownTool
                            | NotStartedReason::IncompleteCall
                            | NotStartedReason::InvalidArguments,
                        _
                    )
            ),
            Fate::Admitted | Fate::Pending => false,
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
            CallDecision::Deny(reason) => self.fate = Fate::NotStarted(NotStarted::denied(reason)),
            CallDecision::Ask => self.fate = Fate::Pending,
            CallDecision::RunWith(arguments) => {
                let misfit = "its arguments were changed and do not fit the tool";
                match fit_in_time(&ready.tool, arguments, schemas, leniency, misfit).await {
                    Ok(arguments) => {
                        ready.edited = Some(arguments.to_string().into());
                        ready.arguments = arguments;
                    }
                    Err(why) => self.fate = Fate::NotStarted(why),
                }
            }
        }
    }
}

/// Returns the result under the id and the name of its call. A note about changed arguments is in front of it, for the
/// model.
fn note_edit(mut result: ToolResult, planned: &PlannedCall, edited: Option<&Text>) -> ToolResult {
    (result.call_id, result.name) = (planned.call.id.clone(), planned.call.name.clone());
    if let Some(arguments) = edited {
        result.parts.insert(0, format!("The call ran with changed arguments: {arguments}\n").into());
    }
    result
}

/// Runs a batch. Returns one result per call, in call order; if the execution fails, beside its error.
async fn execute(execution: &dyn ToolExecution, batch: ToolBatch) -> (Vec<ToolResult>, Option<Error>) {
    if batch.calls.is_empty() {
        return (Vec::new(), None);
    }
    let text = "stopped: the machinery that runs tools failed; the outcome is unknown";
    let lost: Vec<_> = batch.calls.iter().map(|ready| ToolResult::error(&ready.call, text)).collect();
    let events = batch.events.clone();
    let shown = if events.are_shown() { batch.calls.as_slice() } else { &[] };
    let shown: Vec<_> = shown.iter().map(ReadyCall::without_value).collect();
    let (ran, broken) = match execution.execute(batch).await {
        Ok(ran) if ran.iter().map(|result| &result.call_id).eq(lost.iter().map(|lost| &lost.call_id)) => {
            (ran, None)
        }
        Ok(_) => {
            let message = "the tool execution gave other results than one per call, in call order";
            (lost, Some(Error::new(ErrorKind::Tool, message)))
        }
        Err(error) => (lost, Some(error)),
    };
    // The starts and the ends that the execution did not report.
    for (call, result) in shown.iter().zip(&ran) {
        events.finished(call, result).await;
    }
    (ran, broken)
}

/// The longest time of a check, unless that of the tool is shorter.
const MOST_TIME: Duration = Duration::from_secs(10);

/// What the model reads of arguments that do not fit, before the reason.
const MISFIT: &str = "the arguments do not fit the tool";

/// The values that the parsed arguments of an answer's calls may still have. All of them are in memory at once.
pub(crate) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST_VALUES)
    }
}

impl Room {
    /// Takes the room of a call. One that [`prepare_in_time`] refuses without parsing its arguments takes none.
    ///
    /// # Errors
    /// If the calls before it leave less.
    pub(crate) fn take(&mut self, call: &ToolCall, tools: &ToolSet) -> Result<(), NotStarted> {
        let values = values(call.arguments.as_bytes());
        if values > MOST_VALUES || tool_of(call, tools).is_err() {
            return Ok(());
        }
        match self.0.checked_sub(values) {
            Some(left) => self.0 = left,
            None => {
                let text = format!(
                    "the arguments of the calls of an answer may have {MOST_VALUES} values together; \
                     make fewer calls at once"
                );
                return Err(invalid(text));
            }
        }
        Ok(())
    }
}

/// Returns the tool of a call and its checked arguments, or the reason why the call cannot run. Work that may take long
/// runs off the async threads, within the time of the tool.
///
/// Calls are checked nowhere else: code that runs calls receives only those that passed.
///
/// # Cancellation
/// A check that has begun off the async threads goes on to its end, which is bounded.
pub(crate) async fn prepare_in_time(
    call: &ToolCall,
    tools: &ToolSet,
    schemas: &Arc<Schemas>,
    leniency: Leniency,
) -> Result<(Arc<dyn Tool>, Value), NotStarted> {
    let tool = tool_of(call, tools)?;
    if Schemas::is_short(call.arguments.len()) {
        let arguments = fit_in_time(tool, parsed(call)?, schemas, leniency, MISFIT).await?;
        return Ok((Arc::clone(tool), arguments));
    }
    let (call, checked, schemas) = (call.clone(), Arc::clone(tool), Arc::clone(schemas));
    let check = move || fit(&*checked, parsed(&call)?, &schemas, leniency, MISFIT);
    Ok((Arc::clone(tool), elsewhere(&**tool, check).await?))
}

/// Returns arguments as the tool gets them. Takes its time as [`prepare_in_time`] does. `misfit` is the text of those that
/// do not fit, before the reason.
pub(crate) async fn fit_in_time(
    tool: &Arc<dyn Tool>,
    arguments: Value,
    schemas: &Arc<Schemas>,
    leniency: Leniency,
    misfit: &'static str,
) -> Result<Value, NotStarted> {
    let leniency = tool.definition().leniency.unwrap_or(leniency);
    if let Some(corrected) = schemas.fit_quickly(tool.definition(), &arguments, leniency) {
        let corrected = corrected.map_err(|wrong| does_not_fit(misfit, &wrong))?;
        return Ok(corrected.unwrap_or(arguments));
    }
    let (checked, schemas) = (Arc::clone(tool), Arc::clone(schemas));
    elsewhere(&**tool, move || fit(&*checked, arguments, &schemas, leniency, misfit)).await
}

/// Does a check off the async threads, if there are others.
async fn elsewhere(
    tool: &dyn Tool,
    check: impl FnOnce() -> Result<Value, NotStarted> + Send + 'static,
) -> Result<Value, NotStarted> {
    let Ok(runtime) = Handle::try_current() else { return check() };
    let time = tool.definition().timeout.map_or(MOST_TIME, |time| time.min(MOST_TIME));
    match tokio::time::timeout(time, runtime.spawn_blocking(check)).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(_)) => Err(invalid(String::from("the arguments could not be checked"))),
        Err(_) => {
            let seconds = time.as_secs_f64();
            Err(invalid(format!("the arguments could not be checked within {seconds} s")))
        }
    }
}

fn tool_of<'a>(call: &ToolCall, tools: &'a ToolSet) -> Result<&'a Arc<dyn Tool>, NotStarted> {
    let Some(tool) = tools.find(&call.name) else {
        let text = format!("there is no tool called `{}`; call one of those you were given", call.name);
        return Err(NotStarted::Other(NotStartedReason::UnknownTool, text.into()));
    };
    if call.complete {
        return Ok(tool);
    }
    let text = "the call is incomplete; make it again, by itself";
    Err(NotStarted::Other(NotStartedReason::IncompleteCall, text.into()))
}

fn parsed(call: &ToolCall) -> Result<Value, NotStarted> {
    call.parsed_arguments().map_err(|error| invalid(format!("the arguments are no valid JSON: {error}")))
}

fn fit(
    tool: &dyn Tool,
    arguments: Value,
    schemas: &Schemas,
    leniency: Leniency,
    misfit: &str,
) -> Result<Value, NotStarted> {
    let leniency = tool.definition().leniency.unwrap_or(leniency);
    let fitted = schemas.fit(tool.definition(), arguments, leniency);
    fitted.map_err(|wrong| does_not_fit(misfit, &wrong))
}

fn does_not_fit(misfit: &str, wrong: &str) -> NotStarted {
    invalid(format!("{misfit}: {wrong}"))
}

fn invalid(text: String) -> NotStarted {
    NotStarted::Other(NotStartedReason::InvalidArguments, text.into())
}
