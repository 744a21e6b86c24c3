//! Advisors that give an answer its form.

use advisor_chain::structured::{OutputFormat, StructuredOutput};
use advisor_chain::text_tool_calls::{TextFormat, TextToolCalls};
use serde_json::json;

use super::{Base, Row, Touch};

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("StructuredOutput", || {
            let text =
                json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
            StructuredOutput::new(OutputFormat::new("text", text, |_| Ok(())))
        })
        .in_a(Base::Json, "")
        .touching(Touch::Works(600)),
        Row::new("TextToolCalls", || TextToolCalls::new(TextFormat::Xml))
            .in_a(Base::Offer, ", XML")
            .touching(Touch::Works(2_100)),
    ]
}
