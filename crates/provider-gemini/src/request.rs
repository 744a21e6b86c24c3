//! The body of a request.
//!
//! Every message is written once per [`MessageRules`] and kept with the message. Messages are sent one for one, in
//! their order. Two exceptions: system messages are the instruction beside them, and adjacent tool results share one
//! content, as the calls that they answer do.

mod assistant;
mod body_writer;
mod media;
mod messages;
mod open_api;
mod options;
mod results;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{ChatRequest, Error, ErrorKind, Result, Text};
use bytes::Bytes;
use provider_http::names::{FirstLetter, NameRule, ToolNames};
use serde_json::Value;

use crate::profile::{MessageRules, Profile};

/// The names of functions that the API accepts.
const NAMES: NameRule = NameRule::new(FirstLetter::LetterOrUnderscore, 64);

/// A request body, and the facts needed to read the answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// Its JSON, in pieces.
    pub(crate) json: Vec<Bytes>,
    /// The number of parallel answers it asks for.
    pub(crate) choices: u32,
    /// The names of its tools on the wire.
    pub(crate) names: Arc<ToolNames>,
}

/// Writes the body of `request` to a model. Provider data and opaque blocks of `format` go back in it.
pub(crate) fn body(request: &ChatRequest, model: &str, format: &Text, profile: &Profile) -> Result<Body> {
    let tools = Tools::of(request);
    let (mut body, names) = messages::write(request, &profile.message_rules(model, format.clone()), &tools)?;
    if let Some(declared) = options::tools(request, profile.schemas, &names)? {
        body.field("tools");
        body.extend(&declared);
    }
    let fields = options::fields(request, profile, &names);
    for (name, value) in &fields {
        body.field(name);
        body.extend(&serde_json::to_vec(value).map_err(unwritable)?);
    }
    let names = names.with_offered(tools.offered.iter().chain(&tools.verbatim));
    Ok(Body { json: body.finish(), choices: options::choices(&fields), names: Arc::new(names) })
}

/// The tool names in a request, beside those in its messages.
struct Tools {
    /// The names of the tools that may be called, and the one in the tool choice.
    offered: Vec<Text>,
    /// The names of the functions that the caller wrote into the body.
    verbatim: Vec<Text>,
}

impl Tools {
    fn of(request: &ChatRequest) -> Self {
        let chosen = match request.api_tool_choice() {
            Some(advisor_core::ToolChoice::Tool(name)) => Some(name.clone()),
            _ => None,
        };
        let own = request.options.extra.get("tools").and_then(Value::as_array);
        let declared =
            own.into_iter().flatten().filter_map(|tool| tool.get("functionDeclarations")?.as_array());
        let verbatim =
            declared.flatten().filter_map(|function| function.get("name")?.as_str().map(Text::from));
        Self {
            offered: request.tools.definitions().map(|tool| tool.name.clone()).chain(chosen).collect(),
            verbatim: verbatim.collect(),
        }
    }

    /// Checks whether all offered names can be sent unchanged.
    fn fit(&self) -> bool {
        self.offered.iter().all(|name| NAMES.accepts(name))
    }

    /// Returns the wire names of a request whose messages contain the names `in_messages`.
    fn names<'a>(&'a self, in_messages: impl Iterator<Item = &'a Text>) -> ToolNames {
        let verbatim: Vec<&str> = self.verbatim.iter().map(Text::as_str).collect();
        ToolNames::new(NAMES, &verbatim, self.offered.iter().chain(in_messages))
    }
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
}
