//! `ChainSpan`: recognises spans of a chain; `translated` gives them name, kind, status and attributes.

use std::borrow::Cow;

use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::SpanData;

use crate::Conventions;
use crate::names::{ERROR, OPERATION, REQUEST_MODEL, TOOL_NAME, TOOL_TYPE, translate};

/// A span of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainSpan {
    /// A turn: `invoke_agent`.
    Turn,
    /// A round of a turn; the conventions have no such span.
    Round,
    /// A model call: `chat`.
    ModelCall,
    /// A run of a tool: `execute_tool`.
    ToolRun,
}

impl ChainSpan {
    /// Recognises a span of a chain by its name and its operation. Spans of others are `None`.
    pub(crate) fn of(span: &SpanData) -> Option<Self> {
        let operation = attribute(span, OPERATION).map(Value::as_str);
        match (&*span.name, operation.as_deref()) {
            ("turn", Some("invoke_agent")) => Some(Self::Turn),
            ("round", None) if attribute(span, "round").is_some() => Some(Self::Round),
            ("model_call", Some("chat")) => Some(Self::ModelCall),
            ("tool_run", Some("execute_tool")) => Some(Self::ToolRun),
            _ => None,
        }
    }
}

/// Returns the value of an attribute.
pub(crate) fn attribute<'a>(span: &'a SpanData, name: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|attribute| attribute.key.as_str() == name).map(|attribute| &attribute.value)
}

/// Returns the span with the names, kind and status of `conventions`, if it belongs to a chain.
pub(crate) fn translated(mut span: SpanData, conventions: Conventions) -> SpanData {
    let Some(chain_span) = ChainSpan::of(&span) else { return span };
    span.name = name(chain_span, &span);
    span.span_kind = match chain_span {
        ChainSpan::ModelCall => SpanKind::Client,
        ChainSpan::Turn | ChainSpan::Round | ChainSpan::ToolRun => SpanKind::Internal,
    };
    // The description stays empty: the text of an error may have content.
    span.status = if attribute(&span, ERROR).is_some() { Status::error("") } else { Status::Unset };
    if chain_span == ChainSpan::ToolRun {
        span.attributes.push(KeyValue::new(TOOL_TYPE, "function"));
    }
    let attributes = std::mem::take(&mut span.attributes);
    span.attributes = attributes.into_iter().filter_map(|known| translate(known, conventions)).collect();
    span
}

/// Returns the name: the operation, and its model or tool.
fn name(chain_span: ChainSpan, span: &SpanData) -> Cow<'static, str> {
    let of = |operation: &'static str, attribute_name| match attribute(span, attribute_name) {
        Some(object) => Cow::Owned(format!("{operation} {}", object.as_str())),
        None => Cow::Borrowed(operation),
    };
    match chain_span {
        ChainSpan::Turn => Cow::Borrowed("invoke_agent"),
        ChainSpan::Round => Cow::Borrowed("round"),
        ChainSpan::ModelCall => of("chat", REQUEST_MODEL),
        ChainSpan::ToolRun => of("execute_tool", TOOL_NAME),
    }
}
