//! The end of a body, and parts that several formats write the same way.

use std::borrow::Cow;

use advisor_core::{Result, ToolDefinition};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::unwritable;

/// Completes a body whose first field is a list. `list` has its pieces up to the last entry, such as
/// `{"messages":[1`; none if the caller wrote that field. The list of tools and the other fields follow.
///
/// There must be other fields. Every request has one: its model.
///
/// # Errors
/// If the fields cannot be written as JSON.
///
/// # Example
/// ```
/// use provider_http::written::completed_body;
/// use serde_json::{Map, json};
///
/// # fn main() -> advisor_core::Result<()> {
/// let fields = Map::from_iter([("model".to_owned(), json!("m"))]);
/// let body = completed_body(vec!["{\"messages\":[1".into()], Some("[2]".into()), &fields)?;
/// assert_eq!(body.concat(), br#"{"messages":[1],"tools":[2],"model":"m"}"#);
/// # Ok(()) }
/// ```
pub fn completed_body(
    mut list: Vec<Bytes>,
    tools: Option<Bytes>,
    fields: &Map<String, Value>,
) -> Result<Vec<Bytes>> {
    let mut rest = if list.is_empty() { b"{".to_vec() } else { b"],".to_vec() };
    if let Some(tools) = tools {
        rest.extend_from_slice(b"\"tools\":");
        rest.extend_from_slice(&tools);
        rest.push(b',');
    }
    // The fields without their opening brace.
    let fields = serde_json::to_vec(fields).map_err(unwritable)?;
    rest.extend_from_slice(fields.get(1..).unwrap_or_default());
    list.push(rest.into());
    Ok(list)
}

/// Returns the schema of a tool's arguments. That of a tool without one is an object without properties.
#[must_use]
pub fn parameters_of(tool: &ToolDefinition) -> Cow<'_, Value> {
    match &tool.parameters {
        Value::Null => Cow::Owned(json!({ "type": "object", "properties": {} })),
        parameters => Cow::Borrowed(parameters),
    }
}
