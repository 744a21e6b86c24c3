//! `prepare_in_time`: finds the tool of a call and validates its arguments, off the async threads if that may take long.

use std::sync::Arc;
use std::time::Duration;

use advisor_core::json::{MOST_VALUES, values};
use advisor_core::{Leniency, NotStartedReason, Tool, ToolCall, ToolSet};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::not_started::NotStarted;
use crate::plan::schema::Schemas;

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
