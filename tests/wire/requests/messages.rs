//! Anthropic's Messages API.
use advisor_chain::chain::ParallelToolCalls;
use advisor_chain::messages::ProviderData;
use advisor_tests::prelude::*;

use crate::requests::read::{Asked, Calls, extras, list, number, tool, word};
use crate::requests::rule::{Rule, each_object, remove, remove_unless_recorded};
use crate::transport::ScriptedTransport;

const OPTIONS: [&str; 8] =
    ["max_tokens", "messages", "model", "stream", "system", "temperature", "tool_choice", "tools"];
const EXTRAS: [&str; 3] = ["anthropic_version", "mcp_servers", "thinking"];

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "content that is a text",
        reason: "a text means the same as a list of one text block",
        rewrite: |request, _| {
            each_object(request, &|fields| {
                if let Some(content) = fields.get_mut("content").filter(|content| content.is_string()) {
                    *content = json!([{"type": "text", "text": content}]);
                }
            });
        },
    },
    Rule {
        name: "no tools",
        reason: "an empty list of tools means the same as none",
        rewrite: |request, _| {
            if request["tools"] == json!([]) {
                remove(request, "tools");
            }
        },
    },
    Rule {
        name: "marks for the cache",
        reason: "they change the price and not the answer; `PromptCaching` chooses their places here",
        rewrite: |request, _| each_object(request, &|fields| drop(fields.remove("cache_control"))),
    },
    Rule {
        name: "model and stream in the address",
        reason: "the addresses of Bedrock and Vertex AI name them",
        rewrite: |request, recorded| {
            remove_unless_recorded(request, recorded, "model");
            remove_unless_recorded(request, recorded, "stream");
        },
    },
];

pub(crate) fn read(recorded: &Value, _: &str, transport: ScriptedTransport) -> Asked {
    let system = list(recorded, "system").iter().map(|block| Message::system(word(block, "text")));
    let mut calls = Calls::default();
    let said = list(recorded, "messages").iter().flat_map(|message| match word(message, "role") {
        "assistant" => vec![answer(message, &mut calls)],
        "user" => user(message, &calls),
        other => panic!("unknown role {other}"),
    });
    let messages: Vec<Message> = system.chain(said).collect();
    let mut request = ChatRequest::new(messages).with_options(options(recorded));
    let mut model = AnthropicModel::new(word(recorded, "model")).with_transport(transport);
    for described in list(recorded, "tools") {
        if let Some(schema) = described.get("input_schema") {
            let (name, description) = (word(described, "name"), word(described, "description"));
            request = request.with_tool(tool(name, description, schema.clone()));
        } else {
            model = model.with_tool_definition(described.clone());
        }
    }
    Asked { request, model: Box::new(model.with_streaming(recorded["stream"] == true)) }
}

fn options(recorded: &Value) -> ChatOptions {
    let mut options = ChatOptions::new();
    options.temperature = recorded["temperature"].as_f64();
    options.max_tokens = number(recorded, "max_tokens");
    let choice = &recorded["tool_choice"];
    options.tool_choice = match choice["type"].as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("tool") => Some(ToolChoice::Tool(word(choice, "name").into())),
        None => None,
        Some(other) => panic!("unknown tool choice {other}"),
    };
    options.parallel_tool_calls =
        choice["disable_parallel_tool_use"].as_bool().map(|disabled| match disabled {
            true => ParallelToolCalls::Forbidden,
            false => ParallelToolCalls::Allowed,
        });
    extras(recorded, &OPTIONS, &EXTRAS, &mut options);
    options
}

fn answer(message: &Value, calls: &mut Calls) -> Message {
    let blocks = blocks(message).into_iter().map(|block| match word(&block, "type") {
        "text" => Block::text(word(&block, "text")),
        "thinking" => {
            let data = ProviderData::new("anthropic-messages", json!({"signature": block["signature"]}));
            Block::with_data(BlockContent::Reasoning(word(&block, "thinking").to_owned()), vec![data])
        }
        "tool_use" => calls.add(word(&block, "id"), word(&block, "name"), block["input"].to_string()).into(),
        other => panic!("unknown block {other}"),
    });
    Message::assistant_blocks(blocks.collect())
}

/// Returns the results of tools, and the other content of the user.
fn user(message: &Value, calls: &Calls) -> Vec<Message> {
    let (results, others): (Vec<_>, Vec<_>) =
        blocks(message).into_iter().partition(|block| block["type"] == "tool_result");
    let results = results.iter().map(|result| {
        let call = calls.with_id(word(result, "tool_use_id"));
        Message::tool(ToolResult::new(call, texts(&blocks(result))))
    });
    let said = (!others.is_empty()).then(|| Message::user_parts(texts(&others)));
    results.chain(said).collect()
}

fn blocks(value: &Value) -> Vec<Value> {
    match &value["content"] {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => list(value, "content").to_vec(),
    }
}

fn texts(blocks: &[Value]) -> Vec<Part> {
    let text = |block: &Value| {
        assert_eq!(block["type"], "text");
        Part::from(word(block, "text"))
    };
    blocks.iter().map(text).collect()
}
