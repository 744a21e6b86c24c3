//! The body of a request.
//!
//! Every message is written once per [`MessageRules`] and kept with the message. The written form of a list is kept
//! with the list. So a round adds only its new messages to the body of the round before.
//!
//! Messages are sent one for one, in their order. Two exceptions: system messages are the instruction beside them, and
//! adjacent tool results share one content, as the calls that they answer do.

mod assistant;
mod body_writer;
mod contents;
mod media;
mod messages;
mod open_api;
mod options;
mod results;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use advisor_core::{ChatRequest, Error, Result, Text};
use bytes::Bytes;
use provider_http::names::{FirstLetter, NameRule, OfferedNames, ToolNames};
use provider_http::written::unwritable;
use serde_json::Value;

use crate::profile::{MessageRules, Profile};
use body_writer::BodyWriter;

/// The names of functions that the API accepts.
const NAMES: NameRule = NameRule::new(FirstLetter::LetterOrUnderscore, 64);

/// A request body, and the facts needed to read the answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// Its JSON, in pieces.
    pub(crate) json: Vec<Bytes>,
    /// The names of its tools on the wire.
    pub(crate) names: Arc<ToolNames>,
}

/// Writes the body of `request` to a model. Provider data and opaque blocks of `format` go back in it.
pub(crate) fn body(request: &ChatRequest, model: &str, format: &Text, profile: &Profile) -> Result<Body> {
    let extra = &request.options.extra;
    let own = extra.get("tools").and_then(Value::as_array);
    let declared = own.into_iter().flatten().filter_map(|tool| tool.get("functionDeclarations")?.as_array());
    let verbatim = declared.flatten().filter_map(|function| function.get("name")?.as_str());
    let offered = OfferedNames::new(request, NAMES, verbatim);
    let rules = profile.message_rules(model, format.clone());
    let is_own = |field: &str| extra.contains_key(field);
    let (contents, names) = messages::write(&request.messages, &rules, &offered)?;
    let instruction = contents.instruction();
    let mut body = if is_own("contents") { BodyWriter::default() } else { contents.into_body() };
    if !instruction.is_empty() && !is_own("systemInstruction") {
        body.field("systemInstruction");
        instruction.iter().for_each(|piece| body.push(piece));
    }
    if let Some(declared) = options::tools(request, profile.schemas, &names)? {
        body.field("tools");
        body.push(&declared);
    }
    let fields = options::fields(request, profile, &names);
    // The API reads both spellings.
    let configs = ["generationConfig", "generation_config"].into_iter().filter_map(|name| fields.get(name));
    let mut counts = configs.flat_map(|config| [config.get("candidateCount"), config.get("candidate_count")]);
    if counts.any(|count| count.is_some_and(|n| !n.is_null() && *n != 1)) {
        return Err(Error::configuration(
            "an answer is one: leave `candidateCount` out of the extra fields, or ask several times",
        ));
    }
    for (name, value) in &fields {
        body.field(name);
        body.push(&serde_json::to_vec(value).map_err(unwritable)?.into());
    }
    let names = Arc::new(offered.complete(names));
    Ok(Body { json: body.finish(), names })
}
