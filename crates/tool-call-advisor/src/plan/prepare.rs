use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Leniency, NotStartedReason, Tool, ToolCall, ToolDefinition, ToolSet};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::plan::schema::Schemas;
use crate::plan::work::Work;

/// The reason why a call cannot run.
#[derive(Debug)]
pub(crate) struct Unready {
    pub(crate) reason: NotStartedReason,
    /// The text for the model.
    pub(crate) text: String,
}

/// The longest time of a check, unless that of the tool is shorter.
const MOST_TIME: Duration = Duration::from_secs(10);

/// Does what [`prepare`] does. Work that may take long runs off the async threads, within the time of the tool.
///
/// # Cancellation
/// A check that has begun off the async threads goes on to its end, which is bounded.
pub(crate) async fn prepare_in_time(
    call: &ToolCall,
    tools: &ToolSet,
    schemas: &Arc<Schemas>,
    leniency: Leniency,
) -> Result<(Arc<dyn Tool>, Value), Unready> {
    let definition = tools.find(&call.name).map(|tool| tool.definition());
    let place = definition.map_or(Ok(Place::Here), |tool| Place::of_check(tool, call.arguments.len()))?;
    let Place::Elsewhere(runtime, time) = place else { return prepare(call, tools, schemas, leniency) };
    let (call, tools, schemas) = (call.clone(), tools.clone(), Arc::clone(schemas));
    elsewhere(&runtime, time, move || prepare(&call, &tools, &schemas, leniency)).await
}

/// Returns the arguments that a decision has put in place of a call's, as the tool gets them. Takes its time as
/// [`prepare_in_time`] does.
pub(crate) async fn fit_in_time(
    tool: &Arc<dyn Tool>,
    arguments: Value,
    schemas: &Arc<Schemas>,
    leniency: Leniency,
) -> Result<Value, Unready> {
    let fit = move |tool: &dyn Tool, arguments: Value, schemas: &Schemas| {
        let definition = tool.definition();
        schemas.fit(definition, arguments, definition.leniency.unwrap_or(leniency)).map_err(|wrong| {
            invalid(format!("not started: its arguments were changed and do not fit the tool: {wrong}"))
        })
    };
    let place = Place::of_check(tool.definition(), arguments.to_string().len())?;
    let Place::Elsewhere(runtime, time) = place else { return fit(&**tool, arguments, schemas) };
    let (tool, schemas) = (Arc::clone(tool), Arc::clone(schemas));
    elsewhere(&runtime, time, move || fit(&*tool, arguments, &schemas)).await
}

/// Where a check of arguments runs.
enum Place {
    Here,
    /// Off the async threads, for this time at most.
    Elsewhere(Handle, Duration),
}

impl Place {
    /// Returns the place of a check of so many bytes, unless that would take too long.
    fn of_check(tool: &ToolDefinition, bytes: usize) -> Result<Self, Unready> {
        match (Schemas::work(tool, bytes), Handle::try_current()) {
            (Work::TooMuch { patterns }, _) => Err(invalid(format!(
                "not started: the arguments of {bytes} bytes are too long to be compared with the {patterns} patterns of the tool"
            ))),
            (Work::Much, Ok(runtime)) => {
                let time = tool.timeout.map_or(MOST_TIME, |time| time.min(MOST_TIME));
                Ok(Self::Elsewhere(runtime, time))
            }
            (Work::Much, Err(_)) | (Work::Little, _) => Ok(Self::Here),
        }
    }
}

async fn elsewhere<T: Send + 'static>(
    runtime: &Handle,
    time: Duration,
    check: impl FnOnce() -> Result<T, Unready> + Send + 'static,
) -> Result<T, Unready> {
    match tokio::time::timeout(time, runtime.spawn_blocking(check)).await {
        Ok(Ok(checked)) => checked,
        Ok(Err(_)) => Err(invalid(String::from("not started: the arguments could not be checked"))),
        Err(_) => {
            let seconds = time.as_secs_f64();
            Err(invalid(format!("not started: the arguments could not be checked within {seconds} s")))
        }
    }
}

fn invalid(text: String) -> Unready {
    Unready { reason: NotStartedReason::InvalidArguments, text }
}

/// Returns the tool of a call and its checked arguments, or the reason why the call cannot run.
///
/// Calls are checked nowhere else: code that runs calls receives only those that passed.
pub(crate) fn prepare(
    call: &ToolCall,
    tools: &ToolSet,
    schemas: &Schemas,
    leniency: Leniency,
) -> Result<(Arc<dyn Tool>, Value), Unready> {
    let unready = |reason, text| Unready { reason, text };
    let Some(tool) = tools.find(&call.name) else {
        let text = format!("there is no tool called `{}`; call one of those you were given", call.name);
        return Err(unready(NotStartedReason::UnknownTool, text));
    };
    if !call.complete {
        let text = String::from("not started: the call is incomplete; make it again, by itself");
        return Err(unready(NotStartedReason::IncompleteCall, text));
    }
    let arguments = call
        .parsed_arguments()
        .map_err(|error| invalid(format!("not started: the arguments are no valid JSON: {error}")))?;
    let definition = tool.definition();
    let arguments = schemas
        .fit(definition, arguments, definition.leniency.unwrap_or(leniency))
        .map_err(|wrong| invalid(format!("not started: the arguments do not fit the tool: {wrong}")))?;
    Ok((Arc::clone(tool), arguments))
}
