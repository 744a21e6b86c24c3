use std::sync::Arc;
use std::time::Duration;

use advisor_core::{Leniency, NotStartedReason, Tool, ToolCall, ToolSet};
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
    let invalid = |text| Err(Unready { reason: NotStartedReason::InvalidArguments, text });
    let definition = tools.find(&call.name).map(|tool| tool.definition());
    let work = definition.map_or(Work::Little, |tool| Schemas::work(tool, call.arguments.len()));
    if let Work::TooMuch { patterns } = work {
        let bytes = call.arguments.len();
        return invalid(format!(
            "not started: the arguments of {bytes} bytes are too long to be compared with the {patterns} patterns of the tool"
        ));
    }
    let runtime = Handle::try_current().ok().filter(|_| work == Work::Much);
    let Some(runtime) = runtime else { return prepare(call, tools, schemas, leniency) };
    let time = definition.and_then(|tool| tool.timeout).map_or(MOST_TIME, |time| time.min(MOST_TIME));
    let (call, tools, schemas) = (call.clone(), tools.clone(), Arc::clone(schemas));
    let checking = runtime.spawn_blocking(move || prepare(&call, &tools, &schemas, leniency));
    match tokio::time::timeout(time, checking).await {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(_)) => invalid(String::from("not started: the arguments could not be checked")),
        Err(_) => {
            let seconds = time.as_secs_f64();
            invalid(format!("not started: the arguments could not be checked within {seconds} s"))
        }
    }
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
    let invalid = |text| unready(NotStartedReason::InvalidArguments, text);
    let arguments = call
        .parsed_arguments()
        .map_err(|error| invalid(format!("not started: the arguments are no valid JSON: {error}")))?;
    let definition = tool.definition();
    let arguments = schemas
        .fit(definition, arguments, definition.leniency.unwrap_or(leniency))
        .map_err(|wrong| invalid(format!("not started: the arguments do not fit the tool: {wrong}")))?;
    Ok((Arc::clone(tool), arguments))
}
