//! Messages and tools in written form: each is written once per form, and kept with the message or the set of tools.
//!
//! So the body of round fifty is that of round forty-nine plus the new messages.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use advisor_core::{Error, ErrorKind, Message, Result, ToolDefinition, ToolSet};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::names::WireNames;

/// Returns the error for a request that is no JSON.
#[must_use]
pub fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
}

/// Writes values in JSON, with commas between them: some entries of a list.
///
/// # Errors
/// If one cannot be written as JSON.
pub fn entries(values: impl IntoIterator<Item = impl Serialize>) -> Result<Bytes> {
    let mut written = Vec::with_capacity(256);
    for value in values {
        if !written.is_empty() {
            written.push(b',');
        }
        serde_json::to_writer(&mut written, &value).map_err(unwritable)?;
    }
    Ok(written.into())
}

/// Writes a body that begins with these lists of [`entries`], followed by the other fields. A list that is `None` is one
/// that the caller wrote among those, or none.
///
/// # Errors
/// If the fields cannot be written as JSON.
///
/// # Example
/// ```
/// use provider_http::written::{body, entries};
/// use serde_json::{Map, json};
///
/// # fn main() -> advisor_core::Result<()> {
/// let fields = Map::from_iter([("model".to_owned(), json!("m"))]);
/// let messages = Some(vec![entries([1, 2])?, entries(["3"])?]);
/// let body = body(&[("messages", messages), ("tools", None)], &fields)?;
/// assert_eq!(body, r#"{"messages":[1,2,"3"],"model":"m"}"#);
/// # Ok(()) }
/// ```
pub fn body(lists: &[(&str, Option<Vec<Bytes>>)], fields: &Map<String, Value>) -> Result<Bytes> {
    let fields = serde_json::to_vec(fields).map_err(unwritable)?;
    let length: usize =
        lists.iter().flat_map(|(_, list)| list.iter().flatten()).map(|entry| entry.len() + 1).sum();
    // Room for the names and brackets of the lists.
    let mut body = Vec::with_capacity(length + fields.len() + 32 * lists.len());
    body.push(b'{');
    for (name, list) in lists {
        let Some(list) = list else { continue };
        for piece in ["\"", name, "\":["] {
            body.extend_from_slice(piece.as_bytes());
        }
        for (place, entry) in list.iter().filter(|entry| !entry.is_empty()).enumerate() {
            if place > 0 {
                body.push(b',');
            }
            body.extend_from_slice(entry);
        }
        body.extend_from_slice(b"],");
    }
    if fields == b"{}" {
        body.pop_if(|last| *last == b',');
    }
    // The fields without their opening brace.
    body.extend_from_slice(fields.get(1..).unwrap_or_default());
    Ok(body.into())
}

/// Makes an object of the fields that have a value.
#[must_use]
pub fn fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    // A name is written only if it has a value.
    let given = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.map(|(name, value)| (name.to_owned(), value)).collect()
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

/// Returns a message in this form; `write` writes it at the first call. The bytes are kept with the message, unless an id or
/// a name in it has another wire form than usual: that depends on the request.
///
/// `form` holds everything else that the bytes depend on. Each provider defines its type.
///
/// # Errors
/// Those of `write`. A failure is not kept.
///
/// # Example
/// ```
/// use advisor_core::{ChatRequest, Message};
/// use provider_http::names::{IdRule, NameRule, WireNames};
/// use provider_http::written::written_message;
///
/// #[derive(Clone, PartialEq)]
/// struct SomeApi;
///
/// # fn main() -> advisor_core::Result<()> {
/// let message = Message::user("Hi");
/// let names = WireNames::new(&ChatRequest::new(message.clone()), IdRule::Any, NameRule::Word, &[]);
/// let first = written_message(&message, &names, &SomeApi, || Ok("\"Hi\"".into()))?;
/// let second = written_message(&message, &names, &SomeApi, || unreachable!("it is kept"))?;
/// assert_eq!(first, second);
/// # Ok(()) }
/// ```
pub fn written_message<F>(
    message: &Message,
    names: &WireNames,
    form: &F,
    write: impl FnOnce() -> Result<Bytes>,
) -> Result<Bytes>
where
    F: Clone + PartialEq + Send + Sync + 'static,
{
    if names.is_special(message) {
        return write();
    }
    message.wire_form(|_| Forms::<F>::default()).written(form, write)
}

/// Returns the tools of a set in this form; `write` writes them at the first call. The bytes are kept with the set, unless
/// the wire name of a tool is not the usual one.
///
/// # Errors
/// Those of `write`. A failure is not kept.
pub fn written_tools<F>(
    tools: &ToolSet,
    names: &WireNames,
    form: &F,
    write: impl FnOnce() -> Result<Bytes>,
) -> Result<Bytes>
where
    F: Clone + PartialEq + Send + Sync + 'static,
{
    if tools.definitions().any(|tool| names.is_special_tool(&tool.name)) {
        return write();
    }
    tools.wire_form(|_| Forms::<F>::default()).written(form, write)
}

#[cfg(test)]
mod tests {
    use advisor_core::{ChatRequest, Error, ErrorKind};

    use super::*;
    use crate::names::{IdRule, NameRule};

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Api(u8);

    fn names() -> WireNames {
        WireNames::new(&ChatRequest::new(Message::user("x")), IdRule::Any, NameRule::Any, &[])
    }

    fn of(message: &Message, api: Api, written: Result<&'static str>) -> Result<Bytes> {
        written_message(message, &names(), &api, || written.map(Bytes::from))
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
    fn body_may_have_lists_or_fields_alone() {
        let fields = Map::from_iter([("a".to_owned(), json!(1))]);
        let lists = || [("x", None), ("y", Some(vec![Bytes::new(), "1".into(), "2,3".into()]))];
        for (lists, fields, expected) in [
            (&lists()[..], fields.clone(), r#"{"y":[1,2,3],"a":1}"#),
            (&lists(), Map::new(), r#"{"y":[1,2,3]}"#),
            (&[], fields, r#"{"a":1}"#),
            (&[], Map::new(), "{}"),
        ] {
            assert_eq!(body(lists, &fields).ok().as_deref(), Some(expected.as_bytes()));
        }
    }

    #[test]
    fn tools_are_written_once_per_form() {
        let tools = ToolSet::new();
        let write = |api, written: &'static str| {
            written_tools(&tools, &names(), &api, || Ok(Bytes::from(written))).ok()
        };
        assert_eq!(write(Api(1), "[]").as_deref(), Some(&b"[]"[..]));
        assert_eq!(write(Api(1), "again").as_deref(), Some(&b"[]"[..]));
    }
}
