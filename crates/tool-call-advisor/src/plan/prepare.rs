use std::sync::Arc;

use advisor_core::{Leniency, Tool, ToolCall, ToolSet};
use serde_json::Value;

use crate::plan::schema::Schemas;

/// Returns the tool of a call and its checked arguments, or the reason why the call cannot run.
///
/// Calls are checked nowhere else: code that runs calls receives only those that passed.
pub(crate) fn prepare(
    call: &ToolCall,
    tools: &ToolSet,
    schemas: &Schemas,
    leniency: Leniency,
) -> Result<(Arc<dyn Tool>, Value), String> {
    let Some(tool) = tools.find(&call.name) else {
        return Err(format!("there is no tool called `{}`; call one of those you were given", call.name));
    };
    if !call.complete {
        return Err(String::from("not started: the call is incomplete; make it again, by itself"));
    }
    let arguments = call
        .parsed_arguments()
        .map_err(|error| format!("not started: the arguments are no valid JSON: {error}"))?;
    let definition = tool.definition();
    let arguments = schemas
        .fit(definition, arguments, definition.leniency.unwrap_or(leniency))
        .map_err(|wrong| format!("not started: the arguments do not fit the tool: {wrong}"))?;
    Ok((Arc::clone(tool), arguments))
}
