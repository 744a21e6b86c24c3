use std::sync::Arc;

use advisor_core::{Leniency, NotStartedReason, Tool, ToolCall, ToolSet};
use serde_json::Value;

use crate::plan::schema::Schemas;

/// The reason why a call cannot run.
#[derive(Debug)]
pub(crate) struct Unready {
    pub(crate) reason: NotStartedReason,
    /// The text for the model.
    pub(crate) text: String,
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
