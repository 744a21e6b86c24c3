//! Tests that a request which a real client sent, read into messages and options, is written as it was.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing helper is a failing test"
)]

use std::sync::{Arc, Mutex};

use advisor_core::{
    Block, BlockContent, ChatModel, ChatOptions, ChatRequest, Message, Part, ProviderData, Tool, ToolCall,
    ToolDefinition, ToolError, ToolInvocation, ToolOutput, ToolResult, async_trait,
};
use advisor_testkit::recordings;
use bytes::Bytes;
use futures::{StreamExt, stream};
use provider_gemini::transport::{ByteStream, Transport, TransportError};
use provider_gemini::{CallIdField, GeminiModel, Profile, SchemaForm};
use serde_json::{Map, Value, json};

/// Keeps the request, and answers nothing.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Bytes>>);

#[async_trait]
impl Transport for Kept {
    async fn send(
        &self,
        request: http::Request<Vec<Bytes>>,
    ) -> Result<http::Response<ByteStream>, TransportError> {
        *self.0.lock().expect("unpoisoned") = request.into_body().concat().into();
        Ok(http::Response::new(stream::empty().boxed()))
    }
}

struct Declared(ToolDefinition);

#[async_trait]
impl Tool for Declared {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn run(&self, _: ToolInvocation) -> Result<ToolOutput, ToolError> {
        Ok("".into())
    }
}

/// Writes a recorded request in the way of this project, where clients differ in spelling only: types in lower case,
/// fields in camel case, an instruction without a role, no empty text beside a call, no empty objects, no title.
fn normal(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let is_empty_text = |item: &Value| *item == json!({"text": ""});
            let several = items.len() > 1;
            Value::Array(items.iter().filter(|item| !(several && is_empty_text(item))).map(normal).collect())
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| {
                let key = match key.as_str() {
                    "function_call" => "functionCall",
                    "function_response" => "functionResponse",
                    key => key,
                };
                match (key, value) {
                    ("type", Value::String(name)) => (key.to_owned(), name.to_ascii_lowercase().into()),
                    _ => (key.to_owned(), normal(value)),
                }
            })
            .collect(),
        other => other.clone(),
    }
}

fn normal_request(recorded: &Value) -> Value {
    let mut request = normal(recorded);
    let fields = request.as_object_mut().expect("an object");
    fields.retain(|_, value| *value != json!({}));
    if let Some(instruction) = fields.get_mut("systemInstruction").and_then(Value::as_object_mut) {
        instruction.remove("role");
    }
    for tool in fields.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        for function in tool["functionDeclarations"].as_array_mut().into_iter().flatten() {
            // A tool without parameters has no schema.
            if function["parameters"]["properties"] == json!({}) {
                function.as_object_mut().expect("an object").remove("parameters");
            }
        }
    }
    request
}

/// Reads a request into messages, tools and options.
fn read(request: &Value) -> ChatRequest {
    let mut messages = Vec::new();
    for part in request["systemInstruction"]["parts"].as_array().into_iter().flatten() {
        messages.push(Message::system(part["text"].as_str().expect("text")));
    }
    for content in request["contents"].as_array().expect("contents") {
        let parts = content["parts"].as_array().expect("parts");
        if content["role"] == "model" {
            messages.push(Message::assistant_blocks(parts.iter().map(block).collect()));
        } else if parts.iter().any(|part| part.get("functionResponse").is_some()) {
            messages.extend(parts.iter().map(|part| Message::tool(result(&part["functionResponse"]))));
        } else {
            let text = |part: &Value| Part::Text(part["text"].as_str().expect("text").into());
            messages.push(Message::user_parts(parts.iter().map(text).collect()));
        }
    }
    let mut options = ChatOptions::new();
    let mut read = ChatRequest::new(messages);
    let mut extra: Map<String, Value> = request.as_object().expect("an object").clone();
    extra.retain(|key, _| !matches!(key.as_str(), "contents" | "systemInstruction" | "tools"));
    if let Some(config) = extra.get_mut("generationConfig").and_then(Value::as_object_mut) {
        options.temperature = config.remove("temperature").and_then(|value| value.as_f64());
        let limit = config.remove("maxOutputTokens").and_then(|value| value.as_u64());
        options.max_tokens = limit.and_then(|limit| limit.try_into().ok());
    }
    for tool in request["tools"].as_array().into_iter().flatten() {
        let Some(functions) = tool["functionDeclarations"].as_array() else {
            extra.insert("tools".to_owned(), request["tools"].clone());
            continue;
        };
        for function in functions {
            let word = |key: &str| function[key].as_str().expect("a word").to_owned();
            let parameters = function.get("parameters").cloned().unwrap_or_default();
            read =
                read.with_tool(Declared(ToolDefinition::new(word("name"), word("description"), parameters)));
        }
    }
    options.extra = extra;
    read.with_options(options)
}

fn block(part: &Value) -> Block {
    let data = part
        .get("thoughtSignature")
        .map(|text| ProviderData::new("gemini", json!({"thoughtSignature": text})));
    let content = match (part.get("functionCall"), part["text"].as_str()) {
        (Some(call), _) => {
            let word = |key: &str| call[key].as_str().unwrap_or("call").to_owned();
            BlockContent::ToolCall(ToolCall::new(word("id"), word("name"), call["args"].to_string()))
        }
        (None, text) => BlockContent::Text(text.expect("text").to_owned()),
    };
    Block::with_data(content, data.into_iter().collect())
}

fn result(response: &Value) -> ToolResult {
    let word = |key: &str| response[key].as_str().unwrap_or("call").to_owned();
    let call = ToolCall::new(word("id"), word("name"), "");
    let part = match response["response"]["output"].as_str() {
        Some(output) => Part::Text(output.into()),
        None => Part::Json(response["response"].clone()),
    };
    ToolResult::new(&call, vec![part])
}

#[tokio::test]
async fn every_recorded_request_is_written_as_it_was() {
    let recordings = recordings::all("gemini");
    let Some(directory) = recordings.directory() else { return };
    let mut count = 0;
    for recording in &recordings {
        let path = directory.join(format!("{}.request.json", recording.name));
        let Ok(recorded) = std::fs::read(path) else { continue };
        let expected = normal_request(&serde_json::from_slice(&recorded).expect("JSON"));
        let kept = Kept::default();
        let mut profile = Profile::gemini_api();
        profile.schemas = SchemaForm::OpenApi;
        let has_ids = expected.to_string().contains(r#""id":"#);
        profile.call_ids = if has_ids { CallIdField::Sent } else { CallIdField::LeftOut };
        let model = GeminiModel::new("gemini-2.5-flash").with_profile(profile).with_transport(kept.clone());
        // The answer is none; only the request matters.
        let _answer = model.stream(read(&expected)).await;
        let sent: Value = serde_json::from_slice(&kept.0.lock().expect("unpoisoned")).expect("JSON");
        assert_eq!(sent, expected, "{}", recording.name);
        count += 1;
    }
    assert!(recordings.is_empty() || count >= 10, "{count} requests");
}
