//! Chat Completions.
use advisor_chain::chain::ResponseFormat;
use advisor_chain::messages::ProviderData;
use advisor_chain::openai::Profile;
use advisor_tests::prelude::*;

use crate::requests::read::{Asked, Calls, extras, list, number, tool, word};
use crate::requests::rule::{Rule, each_object, objects, remove, remove_unless_recorded};
use crate::transport::ScriptedTransport;

const OPTIONS: [&str; 14] = [
    "max_completion_tokens", "max_tokens", "messages", "model", "n", "response_format", "seed", "stop",
    "stream", "stream_options", "temperature", "tool_choice", "tools", "top_p",
];
const EXTRAS: [&str; 4] = ["logprobs", "reasoning", "reasoning_effort", "usage"];

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "null field of a message",
        reason: "an optional field of a message that is null means the same as none",
        rewrite: |request, _| {
            objects(request, "messages").for_each(|message| message.retain(|_, value| !value.is_null()));
        },
    },
    Rule {
        name: "list of one text",
        reason: "content that is a list of one text part means the same as the text; the strictest servers take only a text",
        rewrite: |request, _| {
            each_object(request, &|fields| {
                let only = match fields.get("content").and_then(Value::as_array).map(Vec::as_slice) {
                    Some([part]) if part["type"] == "text" => part["text"].clone(),
                    _ => return,
                };
                fields.insert("content".to_owned(), only);
            });
        },
    },
    Rule {
        name: "no text beside calls",
        reason: "servers differ in the content that they demand beside calls (Q27): null, none or an empty text; the profile knows it",
        rewrite: |request, _| {
            for message in objects(request, "messages").filter(|message| message.contains_key("tool_calls")) {
                if message.get("content").is_none_or(|content| content == "") {
                    message.remove("content");
                }
            }
        },
    },
    Rule {
        name: "empty reasoning beside calls",
        reason: "DeepSeek's thinking models refuse a call without reasoning_content (Q64); the others ignore an empty one",
        rewrite: |request, _| {
            for message in objects(request, "messages").filter(|message| message.contains_key("tool_calls")) {
                if message.get("reasoning_content").is_some_and(|reasoning| reasoning == "") {
                    message.remove("reasoning_content");
                }
            }
        },
    },
    Rule {
        name: "name of a result",
        reason: "Mistral's API has the name of the tool beside the id of the call, which already says it",
        rewrite: |request, _| {
            for message in objects(request, "messages").filter(|message| message["role"] == "tool") {
                message.remove("name");
            }
        },
    },
    Rule {
        name: "name of the token limit",
        reason: "max_completion_tokens replaces max_tokens at OpenAI; both limit the answer, and the profile has the one that all models of a server take",
        rewrite: |request, _| {
            let fields = request.as_object_mut().expect("an object");
            if let Some(limit) = fields.remove("max_completion_tokens") {
                fields.insert("max_tokens".to_owned(), limit);
            }
        },
    },
    Rule {
        name: "usage of the stream",
        reason: "stream_options only asks for a last chunk with token counts; the profile knows where it must be left out",
        rewrite: |request, _| {
            if request["stream_options"] == json!({"include_usage": true}) {
                remove(request, "stream_options");
            }
        },
    },
    Rule {
        name: "one answer",
        reason: "one answer is the default, and more are not asked for",
        rewrite: |request, _| remove(request, "n"),
    },
    Rule {
        name: "no tools",
        reason: "an empty list of tools means the same as none, and most servers refuse it",
        rewrite: |request, _| {
            if request["tools"] == json!([]) {
                remove(request, "tools");
            }
        },
    },
    Rule {
        name: "one stop text",
        reason: "a single stop text means the same as a list of it",
        rewrite: |request, _| {
            if request["stop"].is_string() {
                request["stop"] = json!([request["stop"]]);
            }
        },
    },
    Rule {
        name: "spelling of a number",
        reason: "0 and 0.0 are the same JSON number",
        rewrite: |request, _| {
            if let Some(number) = request["temperature"].as_f64() {
                request["temperature"] = number.into();
            }
        },
    },
    Rule {
        name: "model in the address",
        reason: "Azure's address of a deployment names the model; the body's is ignored",
        rewrite: |request, recorded| remove_unless_recorded(request, recorded, "model"),
    },
    Rule {
        name: "strict tools",
        reason: "a definition of ours has no switch for the grammar of arguments: the loop validates them against the same schema",
        rewrite: |request, _| {
            for tool in objects(request, "tools") {
                tool.get_mut("function").into_iter().for_each(|function| remove(function, "strict"));
            }
        },
    },
];

pub(crate) fn read(recorded: &Value, provider: &str, transport: ScriptedTransport) -> Asked {
    let mut request = ChatRequest::new(messages(recorded)).with_options(options(recorded));
    for described in list(recorded, "tools") {
        let function = &described["function"];
        let parameters = function["parameters"].clone();
        request = request.with_tool(tool(word(function, "name"), word(function, "description"), parameters));
    }
    let streaming = recorded["stream"] == true;
    let model = OpenAiModel::new(recorded["model"].as_str().unwrap_or("deployment"));
    let model = model.with_profile(profile(provider)).with_streaming(streaming).with_transport(transport);
    Asked { request, model: Box::new(model) }
}

fn profile(provider: &str) -> Profile {
    match provider {
        "azure-openai" => Profile::azure_deployment("2025-04-01-preview"),
        "deepseek" => Profile::deepseek(),
        "groq" => Profile::groq(),
        "llamacpp" => Profile::llama_cpp(),
        "mistral" => Profile::mistral(),
        "ollama" => Profile::ollama(),
        "openai" => Profile::openai(),
        "openrouter" => Profile::openrouter(),
        "together" => Profile::together(),
        "vllm-crusoe" => Profile::vllm(),
        "xai" => Profile::xai(),
        _ => Profile::compatible(),
    }
}

fn options(recorded: &Value) -> ChatOptions {
    let mut options = ChatOptions::new();
    options.temperature = recorded["temperature"].as_f64();
    options.top_p = recorded["top_p"].as_f64();
    options.max_tokens = number(recorded, "max_tokens").or(number(recorded, "max_completion_tokens"));
    options.seed = recorded["seed"].as_i64();
    options.stop = recorded["stop"].as_str().map(Into::into).into_iter().collect();
    options.tool_choice = match &recorded["tool_choice"] {
        Value::String(mode) if mode == "auto" => Some(ToolChoice::Auto),
        Value::String(mode) if mode == "required" => Some(ToolChoice::Required),
        Value::Null => None,
        named => Some(ToolChoice::Tool(word(&named["function"], "name").into())),
    };
    let format = &recorded["response_format"];
    options.response_format = (format["type"] == "json_schema").then(|| ResponseFormat::JsonSchema {
        name: word(&format["json_schema"], "name").into(),
        schema: format["json_schema"]["schema"].clone(),
        strict: format["json_schema"]["strict"] == true,
    });
    extras(recorded, &OPTIONS, &EXTRAS, &mut options);
    options
}

fn messages(recorded: &Value) -> Vec<Message> {
    let mut calls = Calls::default();
    let message = |message: &Value| match word(message, "role") {
        "system" => Message::system(texts(&message["content"]).concat()),
        "user" => Message::user_parts(texts(&message["content"]).into_iter().map(Part::from).collect()),
        "assistant" => Message::assistant_blocks(answer(message, &mut calls)),
        "tool" => {
            let call = calls.with_id(word(message, "tool_call_id"));
            Message::tool(ToolResult::new(call, vec![word(message, "content").into()]))
        }
        other => panic!("unknown role {other}"),
    };
    list(recorded, "messages").iter().map(message).collect()
}

fn answer(message: &Value, calls: &mut Calls) -> Vec<Block> {
    let details = message.get("reasoning_details").map(|details| {
        let data = ProviderData::new("openai-chat@api.openai.com", json!({"reasoning_details": details}));
        let text = list(message, "reasoning_details").iter().map(|detail| word(detail, "text")).collect();
        Block::with_data(BlockContent::Reasoning(text), vec![data])
    });
    let said = texts(&message["content"]).into_iter().filter(|text| !text.is_empty()).map(Block::text);
    let asked = list(message, "tool_calls").iter().map(|call| {
        let function = &call["function"];
        calls.add(word(call, "id"), word(function, "name"), word(function, "arguments")).into()
    });
    details.into_iter().chain(said).chain(asked).collect()
}

/// Returns the texts of content.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => parts
            .iter()
            .map(|part| {
                assert_eq!(part["type"], "text");
                word(part, "text").to_owned()
            })
            .collect(),
        _ => Vec::new(),
    }
}
