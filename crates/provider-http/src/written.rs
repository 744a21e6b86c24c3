//! Messages and tools in written form: each is written once per form, and kept with the message or the set of tools.
//!
//! So the body of round fifty is that of round forty-nine plus the new messages.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use advisor_core::{Error, ErrorKind, Message, Result, ToolDefinition, ToolSet};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Returns the error for a request that is no JSON.
#[must_use]
pub fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
}

/// Writes a body whose first field is a list of this name, followed by the list of tools and the other fields. There is no list
/// if the caller wrote that field.
///
/// There must be other fields. Every request has one: its model.
///
/// # Errors
/// If the fields cannot be written as JSON.
///
/// # Example
/// ```
/// use provider_http::written::body;
/// use serde_json::{Map, json};
///
/// # fn main() -> advisor_core::Result<()> {
/// let fields = Map::from_iter([("model".to_owned(), json!("m"))]);
/// let body = body("messages", Some(vec!["1".into(), "2".into()]), Some("[3]".into()), &fields)?;
/// assert_eq!(body, r#"{"messages":[1,2],"tools":[3],"model":"m"}"#);
/// # Ok(()) }
/// ```
pub fn body(
    name: &str,
    list: Option<Vec<Bytes>>,
    tools: Option<Bytes>,
    fields: &Map<String, Value>,
) -> Result<Bytes> {
    let fields = serde_json::to_vec(fields).map_err(unwritable)?;
    let entries = list.iter().flatten();
    let length = entries.chain(&tools).map(|written| written.len() + 1).sum::<usize>() + fields.len();
    // Room for the names and brackets of both lists.
    let mut body = Vec::with_capacity(length + name.len() + 32);
    body.push(b'{');
    if let Some(list) = list {
        body.extend_from_slice(format!("\"{name}\":[").as_bytes());
        for (place, entry) in list.iter().enumerate() {
            if place > 0 {
                body.push(b',');
            }
            body.extend_from_slice(entry);
        }
        body.extend_from_slice(b"],");
    }
    if let Some(tools) = tools {
        body.extend_from_slice(b"\"tools\":");
        body.extend_from_slice(&tools);
        body.push(b',');
    }
    // The fields without their opening brace.
    body.extend_from_slice(fields.get(1..).unwrap_or_default());
    Ok(body.into())
}

/// Returns the schema of a tool's arguments. That of a tool without one is an object without properties.
#[must_use]
pub fn parameters_of(tool: &ToolDefinition) -> Cow<'_, Value> {
    match &tool.parameters {
        Value::Null => Cow::Owned(json!({ "type": "object", "properties": {} })),
        parameters => Cow::Borrowed(parameters),
    }
}

/// The bytes of an immutable value in each of its forms, of which there are few.
struct Forms<F>(Mutex<Vec<(F, Bytes)>>);

impl<F> Default for Forms<F> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<F: Clone + PartialEq> Forms<F> {
    fn written(&self, form: &F, write: impl FnOnce() -> Result<Bytes>) -> Result<Bytes> {
        let mut forms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, written)) = forms.iter().find(|(known, _)| known == form) {
            return Ok(written.clone());
        }
        let written = write()?;
        forms.push((form.clone(), written.clone()));
        Ok(written)
    }
}

/// Returns a message in this form; `write` writes it at the first call. The bytes are kept with the message.
///
/// `form` holds everything beside the message that the bytes depend on. Each provider defines its type.
///
/// # Errors
/// Those of `write`. A failure is not kept.
///
/// # Example
/// ```
/// use advisor_core::Message;
/// use provider_http::written::written_message;
///
/// #[derive(Clone, PartialEq)]
/// struct SomeApi;
///
/// # fn main() -> advisor_core::Result<()> {
/// let message = Message::user("Hi");
/// let first = written_message(&message, &SomeApi, || Ok("\"Hi\"".into()))?;
/// let second = written_message(&message, &SomeApi, || unreachable!("it is kept"))?;
/// assert_eq!(first, second);
/// # Ok(()) }
/// ```
pub fn written_message<F>(message: &Message, form: &F, write: impl FnOnce() -> Result<Bytes>) -> Result<Bytes>
where
    F: Clone + PartialEq + Send + Sync + 'static,
{
    message.wire_form(|_| Forms::<F>::default()).written(form, write)
}

/// Returns the tools of a set in this form; `write` writes them at the first call. The bytes are kept with the set.
///
/// # Errors
/// Those of `write`. A failure is not kept.
pub fn written_tools<F>(tools: &ToolSet, form: &F, write: impl FnOnce() -> Result<Bytes>) -> Result<Bytes>
where
    F: Clone + PartialEq + Send + Sync + 'static,
{
    tools.wire_form(|_| Forms::<F>::default()).written(form, write)
}

#[cfg(test)]
mod tests {
    use advisor_core::{Error, ErrorKind};

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Api(u8);

    fn of(message: &Message, api: Api, written: Result<&'static str>) -> Result<Bytes> {
        written_message(message, &api, || written.map(Bytes::from))
    }

    #[test]
    fn message_is_written_once_per_form() {
        let message = Message::user("x");
        assert_eq!(of(&message, Api(1), Ok("one")).ok().as_deref(), Some(&b"one"[..]));
        assert_eq!(of(&message, Api(2), Ok("two")).ok().as_deref(), Some(&b"two"[..]));
        assert_eq!(of(&message.clone(), Api(1), Ok("again")).ok().as_deref(), Some(&b"one"[..]));
    }

    #[test]
    fn failure_is_not_kept() {
        let message = Message::user("x");
        let failure = Err(Error::new(ErrorKind::InvalidRequest, "no"));
        assert!(of(&message, Api(1), failure).is_err());
        assert_eq!(of(&message, Api(1), Ok("one")).ok().as_deref(), Some(&b"one"[..]));
    }

    #[test]
    fn tools_are_written_once_per_form() {
        let tools = ToolSet::new();
        let write =
            |api, written: &'static str| written_tools(&tools, &api, || Ok(Bytes::from(written))).ok();
        assert_eq!(write(Api(1), "[]").as_deref(), Some(&b"[]"[..]));
        assert_eq!(write(Api(1), "again").as_deref(), Some(&b"[]"[..]));
    }
}
