//! A model that writes its calls into its text, as XML, behind a compatible server.

use advisor_chain::text_tool_calls::TextTools;
use advisor_tests::prelude::*;

use super::Origin;
use super::chat::{answer, said};
use crate::history::story::{ANSWER, CALLS, REFUSAL, TEXT, THOUGHT, definitions};

pub(crate) const LOCAL: Origin = Origin {
    name: "calls in text",
    server: "llm.example",
    model: |transport| {
        Arc::new(OpenAiModel::new("small").with_base_url("https://llm.example/v1").with_transport(transport))
    },
    answers: || vec![first(), said(&calls(1)), said(ANSWER), answer([json!({"content": REFUSAL})], "length")],
    in_text: Some(TextFormat::Xml),
    secrets: &[],
};

/// Writes the calls of a round as the model does.
pub(crate) fn calls(round: usize) -> String {
    let tools = TextTools::new(&definitions());
    CALLS[round].map(|(name, arguments)| tools.call(TextFormat::Xml, name, arguments)).join("\n")
}

fn first() -> String {
    let text = format!("{TEXT}\n{}", calls(0));
    answer([json!({"reasoning_content": THOUGHT}), json!({"content": text})], "stop")
}
