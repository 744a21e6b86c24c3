//! The differences between requests that mean the same.

use serde_json::{Map, Value};

/// A difference between two requests that does not change their meaning.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// Why both forms mean the same.
    pub(crate) reason: &'static str,
    /// Rewrites a request in the common form. The second value is the recorded request.
    pub(crate) rewrite: fn(&mut Value, &Value),
}

/// Rewrites a request by these rules.
pub(crate) fn normalised<'a>(
    rules: impl Iterator<Item = &'a Rule>,
    request: &Value,
    recorded: &Value,
) -> Value {
    let mut request = request.clone();
    rules.for_each(|rule| (rule.rewrite)(&mut request, recorded));
    request
}

/// Returns the names of the rules without which the written request differs from the recorded one.
pub(crate) fn needed(rules: &[Rule], written: &Value, recorded: &Value) -> Vec<&'static str> {
    let is_needed = |rule: &&Rule| {
        let others = || rules.iter().filter(|other| other.name != rule.name);
        normalised(others(), written, recorded) != normalised(others(), recorded, recorded)
    };
    rules.iter().filter(is_needed).map(|rule| rule.name).collect()
}

/// Applies a change to each object in a value, the outer one first, except to those in schemas.
pub(crate) fn each_object(value: &mut Value, change: &impl Fn(&mut Map<String, Value>)) {
    const SCHEMAS: [&str; 4] = ["parameters", "input_schema", "schema", "arguments"];
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_object(item, change)),
        Value::Object(fields) => {
            change(fields);
            let inner = fields.iter_mut().filter(|(key, _)| !SCHEMAS.contains(&key.as_str()));
            inner.for_each(|(_, value)| each_object(value, change));
        }
        _ => {}
    }
}

/// Removes a field of the request if the recorded one does not have it.
pub(crate) fn remove_unless_recorded(request: &mut Value, recorded: &Value, field: &str) {
    if recorded.get(field).is_none() {
        remove(request, field);
    }
}

pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}

/// Returns the objects of a list in a field.
pub(crate) fn objects<'a>(
    value: &'a mut Value,
    field: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> + use<'a> {
    let list = value.get_mut(field).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}
