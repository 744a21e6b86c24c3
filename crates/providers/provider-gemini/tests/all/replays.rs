//! Tests that answers go back in the form that the server expects, against requests that real clients sent to it.

use advisor_core::{ChatOptions, ChatRequest, ChatResponse, Message, Part, ToolDefinition, ToolResult};
use advisor_test_support::recordings;
use advisor_testkit::{DescribedTool, ReplayServer, Reply, answer_of};
use provider_gemini::GeminiModel;
use serde_json::{Value, json};

async fn ask(server: &ReplayServer, request: ChatRequest) -> ChatResponse {
    let model = GeminiModel::new("gemini-3.1-pro-preview").with_base_url(server.url());
    answer_of(&model, request).await.expect("an answer")
}

/// A server that sends this body twice.
async fn server(body: &[u8]) -> ReplayServer {
    let reply = || Reply::sse(body.to_vec());
    ReplayServer::start([reply(), reply()]).await.expect("a port")
}

/// The second request.
fn sent(server: &ReplayServer) -> Value {
    server.requests()[1].json().expect("JSON")
}

/// The first answer, and the request that a real client sent after it.
async fn first_and_second(first: &str, second: &str) -> Option<(ReplayServer, Value)> {
    let recordings = recordings::all("gemini");
    let answer = recordings.named(first)?;
    let path = recordings.directory()?.join(format!("{second}.request.json"));
    let recorded = serde_json::from_slice(&std::fs::read(path).expect("the request")).expect("JSON");
    Some((server(&answer.body).await, recorded))
}

#[tokio::test]
async fn recorded_answer_goes_back_as_a_real_client_sent_it() {
    let Some((server, recorded)) = first_and_second(
        "gemini-gemini-3-1-pro-preview-parallel-tools-signature-01",
        "gemini-gemini-3-1-pro-preview-text-after-tools-01",
    )
    .await
    else {
        return;
    };
    let question = Message::user("Add and multiply the number 2 and 3");
    let response = ask(&server, ChatRequest::new(question.clone())).await;
    let results = response.tool_calls().zip(["5", "6"]).map(|((_, call), result)| {
        Message::tool(ToolResult::new(call, vec![Part::Json(json!({ "result": result }))]))
    });
    let system =
        Message::system("You are a helpful assistant. Always use both add and multiply at the same time.");
    let messages: Vec<Message> =
        [system, question, response.message().clone()].into_iter().chain(results).collect();
    let mut request = ChatRequest {
        options: ChatOptions {
            tool_choice: Some(advisor_core::ToolChoice::Auto),
            max_tokens: Some(4000),
            ..ChatOptions::default()
        },
        ..ChatRequest::new(messages)
    };
    let number = |text: &str| json!({"type": "integer", "description": text});
    for (name, description) in [("add", "Add two numbers"), ("multiply", "Multiply two numbers")] {
        let parameters = json!({"type": "object", "required": ["a", "b"],
            "properties": {"a": number("first number"), "b": number("second number")}});
        request = request.with_tool(DescribedTool::new(ToolDefinition::new(name, description, parameters)));
    }
    ask(&server, request).await;
    // The differences: schemas are an older form there, and the instruction has a role.
    let mut expected = with_json_schemas(recorded);
    expected["systemInstruction"].as_object_mut().expect("an object").remove("role");
    assert_eq!(sent(&server), expected);
}

fn with_json_schemas(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| match (key.as_str(), &value) {
                ("type", Value::String(name)) => (key, name.to_ascii_lowercase().into()),
                ("parameters", _) => ("parametersJsonSchema".to_owned(), with_json_schemas(value)),
                _ => (key, with_json_schemas(value)),
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(with_json_schemas).collect(),
        other => other,
    }
}

#[tokio::test]
async fn parts_that_only_gemini_understands_go_back_unchanged() {
    let recordings = recordings::all("gemini");
    let Some(answer) = recordings.named("gemini-gemini-3-flash-preview-server-toolcall-parts-01") else {
        return;
    };
    let server = server(&answer.body).await;
    let response = ask(&server, ChatRequest::new(Message::user("x"))).await;
    ask(&server, ChatRequest::new(vec![Message::user("x"), response.message().clone(), Message::user("y")]))
        .await;
    let sent = sent(&server)["contents"][1]["parts"].clone();
    // The recorded parts, with adjacent texts that are not signed in one.
    let body = str::from_utf8(&answer.body).expect("text");
    let mut expected: Vec<Value> = Vec::new();
    for event in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(event).expect("JSON");
        for part in event["candidates"][0]["content"]["parts"].as_array().expect("parts") {
            let is_plain =
                |part: &Value| part.get("text").is_some() && part.get("thoughtSignature").is_none();
            match expected.last_mut() {
                Some(last) if is_plain(last) && is_plain(part) => {
                    let joined =
                        [&last["text"], &part["text"]].map(|text| text.as_str().expect("text")).concat();
                    last["text"] = joined.into();
                }
                _ => expected.push(part.clone()),
            }
        }
    }
    assert_eq!(sent, Value::Array(expected));
}
