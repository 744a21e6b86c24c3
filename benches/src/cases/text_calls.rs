//! One answer through `TextToolCalls`: text without a call, and the arguments of a call in the text.

use advisor_chain::text_tool_calls::{TextFormat, TextToolCalls};
use advisor_chain::tools::ToolSet;
use advisor_chain::{ChatClient, ChatRequest, FnTool, Message, OpenAiModel, ToolDefinition};
use serde_json::{Value, json};

use super::answers::CHUNKS;
use super::{Case, runtime};
use crate::shapes::WORDS;
use crate::{InMemory, Shape};

/// A call in a format of text: what precedes its only argument, and what follows it.
#[derive(Debug, Clone, Copy)]
struct WrittenCall {
    format: TextFormat,
    name: &'static str,
    begin: &'static str,
    end: &'static str,
}

const CALLS: [WrittenCall; 3] = [
    WrittenCall {
        format: TextFormat::Xml,
        name: "XML",
        begin: "<tool name=\"note\"><arguments><arg name=\"text\">",
        end: "</arg></arguments></tool>",
    },
    WrittenCall {
        format: TextFormat::Json,
        name: "JSON",
        begin: "{\"tool\": {\"function\": \"note\", \"parameters\": {\"text\": \"",
        end: "\"}}}",
    },
    WrittenCall {
        format: TextFormat::Sentinel,
        name: "sentinel",
        begin: "[[SEG_START {\"type\": \"tool\", \"tool_name\": \"note\"}]]{\"text\": \"",
        end: "\"}[[SEG_END]]",
    },
];

pub(super) fn cases() -> Vec<Case> {
    let text = CALLS.map(|call| {
        answering(format!("answer, text looked through for {}", call.name), call.format, "Well:", "", 0)
    });
    let arguments = CALLS.map(|call| {
        let name = format!("answer, arguments in {}", call.name);
        answering(name, call.format, call.begin, call.end, 1)
    });
    text.into_iter().chain(arguments).collect()
}

/// An answer that begins and ends with these texts, with words between them. It has this number of calls.
fn answering(name: String, format: TextFormat, begin: &'static str, end: &'static str, calls: usize) -> Case {
    Case::new(name, "event", CHUNKS, move |events| {
        // A line break may not stand in a string of JSON.
        let words = WORDS.into_iter().filter(|word| !word.contains('\\')).cycle().take(events);
        let texts: Vec<&str> = [begin].into_iter().chain(words).chain([end]).collect();
        let model = OpenAiModel::new("m").with_base_url("http://127.0.0.1:1/v1");
        let model = model.with_transport(InMemory::new([Shape::OPENAI.body_of(&texts)]));
        let chain =
            ChatClient::builder(model).advisor(TextToolCalls::new(format)).build().unwrap().chain().clone();
        let request = ChatRequest { tools: tools(), ..ChatRequest::new(Message::user("?")) };
        let runtime = runtime();
        move || {
            let response = runtime.block_on(chain.next_call(request)).unwrap();
            assert_eq!(response.tool_calls().count(), calls);
        }
    })
}

fn tools() -> ToolSet {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let definition = ToolDefinition::new("note", "Keeps a note.", schema);
    ToolSet::new().with(FnTool::new(definition, |_: Value| async { Ok("kept") }))
}
