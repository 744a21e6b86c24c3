//! Reading JSON into messages, tools and options.

use std::collections::HashMap;

use advisor_tests::prelude::*;

/// A recorded request as one of ours, and a model that writes it as the recording's client did.
pub(crate) struct Asked {
    pub(crate) request: ChatRequest,
    pub(crate) model: Box<dyn ChatModel>,
}

pub(crate) fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn number(value: &Value, key: &str) -> Option<u32> {
    value[key].as_u64().map(|number| number.try_into().expect("a small number"))
}

/// Returns the fields of a request that no option expresses. Each must be in `allowed`, so that a recording with a
/// field that nobody thought of fails.
pub(crate) fn extras(request: &Value, known: &[&str], allowed: &[&str], options: &mut ChatOptions) {
    for (key, value) in request.as_object().expect("an object") {
        if !known.contains(&key.as_str()) {
            assert!(allowed.contains(&key.as_str()), "no option and no extra field: {key}");
            options.extra.insert(key.clone(), value.clone());
        }
    }
}

pub(crate) fn tool(name: &str, description: &str, parameters: Value) -> FnTool {
    let definition = ToolDefinition::new(name.to_owned(), description.to_owned(), parameters);
    FnTool::new(definition, |_: Value| async { Ok("") })
}

/// The calls of a conversation so far, by their ids.
#[derive(Default)]
pub(crate) struct Calls(HashMap<String, ToolCall>);

impl Calls {
    pub(crate) fn add(&mut self, id: &str, name: &str, arguments: impl Into<String>) -> ToolCall {
        let call = ToolCall::new(id.to_owned(), name.to_owned(), arguments);
        self.0.insert(id.to_owned(), call.clone());
        call
    }

    pub(crate) fn with_id(&self, id: &str) -> &ToolCall {
        self.0.get(id).expect("a result follows its call")
    }
}
