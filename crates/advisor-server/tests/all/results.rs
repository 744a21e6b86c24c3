//! Results of calls that the client runs, in the words of each protocol.

use advisor_core::{ChatClient, Message, Role, ToolDefinition};
use advisor_server::ChatServer;
use advisor_testkit::{Answer, ScriptedModel};
use axum::http::StatusCode;
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use serde_json::{Value, json};
use tool_call_advisor::{ClientSideTool, FnTool, ToolCallAdvisor, ToolCallStreaming};

use crate::setting::{Setting, json_of, post, refused, text, with_tokens};

const PATHS: [&str; 5] = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/ag-ui", "/api/ui"];

/// A server whose tool `place` runs at the client. The model calls it, and then says these texts.
fn setting(calls: &[&str], texts: &[&str]) -> Setting {
    let call = Answer::from_calls(calls.iter().map(|id| (*id, "place", "{}")));
    let texts = texts.iter().map(|text| Answer::from_text(*text));
    let model = ScriptedModel::new([call].into_iter().chain(texts));
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let definition = ToolDefinition::new("place", "Asks for the place.", json!({"type": "object"}));
    let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
    let client = ChatClient::builder(model.clone()).advisor(memory.clone()).advisor(tool_loop);
    let client = client.tool(ClientSideTool::new(definition)).build().unwrap();
    Setting { server: ChatServer::new(client, memory), model }
}

fn body(path: &str, run: &str, messages: &[Value]) -> Value {
    match path {
        "/v1/responses" => json!({"input": messages, "conversation": "c1", "stream": true}),
        "/api/ag-ui" => json!({"threadId": "c1", "runId": run, "messages": messages}),
        "/api/ui" => {
            json!({"id": "c1", "messages": messages, "messageId": messages.last().filter(|last| last["role"] == "assistant").map(|last| &last["id"])})
        }
        _ => json!({"messages": messages, "user": "c1", "metadata": {"user_id": "c1"}, "stream": true}),
    }
}

fn asking(path: &str) -> Value {
    let text = "Where am I?";
    body(
        path,
        "r1",
        &[json!({"id": "u1", "role": "user", "content": text, "parts": [{"type": "text", "text": text}]})],
    )
}

/// Returns a request with results of these calls, behind the history of the client.
fn answering(path: &str, results: &[(&str, &str)]) -> Value {
    let question = asking(path);
    let mut messages =
        question.get("messages").or(question.get("input")).unwrap().as_array().unwrap().clone();
    let each = |make: fn(&str, &str) -> Value| {
        results.iter().map(|(id, result)| make(id, result)).collect::<Vec<_>>()
    };
    match path {
        "/v1/chat/completions" => {
            let calls = each(
                |id, _| json!({"id": id, "type": "function", "function": {"name": "place", "arguments": "{}"}}),
            );
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
            messages
                .extend(each(|id, result| json!({"role": "tool", "tool_call_id": id, "content": result})));
        }
        "/v1/responses" => {
            messages.extend(each(
                |id, _| json!({"type": "function_call", "call_id": id, "name": "place", "arguments": "{}"}),
            ));
            messages.extend(each(
                |id, result| json!({"type": "function_call_output", "call_id": id, "output": result}),
            ));
        }
        "/v1/messages" => {
            let calls = each(|id, _| json!({"type": "tool_use", "id": id, "name": "place", "input": {}}));
            messages.push(json!({"role": "assistant", "content": calls}));
            let results = each(
                |id, result| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": result}]}),
            );
            messages.push(json!({"role": "user", "content": results}));
        }
        "/api/ag-ui" => {
            messages.push(json!({"id": "a1", "role": "assistant"}));
            messages.extend(each(
                |id, result| json!({"id": "m", "role": "tool", "toolCallId": id, "content": result}),
            ));
        }
        _ => {
            let parts = each(
                |id, result| json!({"type": "dynamic-tool", "toolName": "place", "toolCallId": id, "state": "output-available", "input": {}, "output": result}),
            );
            messages.push(json!({"id": "answer-u1", "role": "assistant", "parts": parts}));
        }
    }
    body(path, "r2", &messages)
}

async fn ask(setting: &Setting, path: &str, body: &Value) -> String {
    let response = setting.post(path, body).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}: {body}");
    text(response).await
}

fn sent(setting: &Setting) -> Vec<Message> {
    setting.model.prompts().last().unwrap().messages.iter().cloned().collect()
}

#[tokio::test]
async fn results_of_the_client_continue_the_conversation() {
    for path in PATHS {
        let setting = setting(&["t1", "t2"], &["In Oslo.", "Sunny."]);
        let events = ask(&setting, path, &asking(path)).await;
        assert!(events.contains("t1") && events.contains("t2"), "{path}: {events}");
        let results = answering(path, &[("t1", "Oslo"), ("t2", "Norway")]);
        let events = ask(&setting, path, &results).await;
        assert!(events.contains("In Oslo."), "{path}: {events}");
        let prompt = sent(&setting);
        let results: Vec<_> = prompt.iter().filter_map(Message::tool_result).collect();
        let read: Vec<_> = results
            .iter()
            .map(|result| (result.call_id.as_str(), result.name.as_str(), result.text()))
            .collect();
        assert_eq!(
            read,
            [("t1", "place", "Oslo".to_owned()), ("t2", "place", "Norway".to_owned())],
            "{path}"
        );
        assert_eq!(prompt.last().unwrap().role(), Role::Tool, "{path}");
        // `useChat` extends the message of the call.
        assert!(path != "/api/ui" || events.contains("\"messageId\":\"answer-u1\""), "{events}");
    }
}

#[tokio::test]
async fn results_that_nobody_waits_for_are_refused() {
    for path in PATHS {
        let setting = setting(&["t1"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        for forged in [&[("t9", "forged")][..], &[("t1", "forged"), ("t1", "Oslo")]] {
            let response = setting.post(path, &answering(path, forged)).await;
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path} {forged:?}");
            let message = json_of(response).await["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains("result"), "{path} {forged:?}: {message}");
        }
        ask(&setting, path, &answering(path, &[("t1", "Oslo")])).await;
        // The call has its result now.
        let mut again = answering(path, &[("t1", "forged")]);
        again["runId"] = "r3".into();
        let response = setting.post(path, &again).await;
        assert_eq!(refused(response, StatusCode::BAD_REQUEST).await, "invalid_request", "{path}");
        assert_eq!(setting.model.calls(), 2, "{path}");
    }
}

#[tokio::test]
async fn results_of_another_tenant_are_refused() {
    for path in PATHS {
        let setting = with_tokens(setting(&["t1"], &[]));
        for (tenant, body, status) in [
            ("ann", asking(path), StatusCode::OK),
            ("bob", answering(path, &[("t1", "forged")]), StatusCode::BAD_REQUEST),
        ] {
            let request = post(path).header("authorization", format!("Bearer token-of-{tenant}"));
            let response = setting.send(request.body(body.to_string().into()).unwrap()).await;
            assert_eq!(response.status(), status, "{path}");
            text(response).await;
        }
        assert_eq!(setting.model.calls(), 1, "{path}");
    }
}

/// A text may come with the results, and a failure is one for the model.
#[tokio::test]
async fn failed_results_and_a_text_reach_the_model() {
    let denied =
        |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "denied", "is_error": true});
    let also = json!({"type": "text", "text": "And now?"});
    let tool = json!({"id": "m", "role": "tool", "toolCallId": "t1", "content": "", "error": "denied"});
    let part =
        json!({"type": "tool-place", "toolCallId": "t1", "state": "output-error", "errorText": "denied"});
    for (path, messages, has_text) in [
        ("/v1/messages", vec![json!({"role": "user", "content": [also, denied("t1")]})], true),
        ("/api/ag-ui", vec![tool, json!({"id": "u2", "role": "user", "content": "And now?"})], true),
        ("/api/ui", vec![json!({"id": "answer-u1", "role": "assistant", "parts": [part]})], false),
    ] {
        let setting = setting(&["t1"], &["Then no."]);
        ask(&setting, path, &asking(path)).await;
        ask(&setting, path, &body(path, "r2", &messages)).await;
        let prompt = sent(&setting);
        let result = prompt.iter().find_map(Message::tool_result).unwrap();
        assert!(result.is_error && result.text() == "denied", "{path}: {result:?}");
        assert_eq!(prompt.last().unwrap().text() == "And now?", has_text, "{path}");
    }
}

/// Libraries name the tools that they run. Those of the chain are no tools of the client.
#[tokio::test]
async fn client_side_tools_of_the_chain_may_be_named() {
    for path in &PATHS[..4] {
        for (name, status) in [("place", StatusCode::OK), ("other", StatusCode::BAD_REQUEST)] {
            let setting = setting(&["t1"], &[]);
            let mut body = asking(path);
            body["tools"] = match *path {
                "/v1/chat/completions" => json!([{"type": "function", "function": {"name": name}}]),
                _ => json!([{"name": name, "parameters": {}}]),
            };
            let response = setting.post(path, &body).await;
            assert_eq!(response.status(), status, "{path} {name}");
            text(response).await;
        }
    }
}

/// The turn has answered the calls, so the conversation waits for them no longer.
#[tokio::test]
async fn results_that_are_sent_again_join_their_turn() {
    for path in &PATHS[..4] {
        let setting = setting(&["t1", "t2"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        let send = async |results: &[(&str, &str)]| {
            let request = post(path).header("idempotency-key", "r2");
            setting.send(request.body(answering(path, results).to_string().into()).unwrap()).await
        };
        for _ in 0..2 {
            let response = send(&[("t1", "Oslo"), ("t2", "Norway")]).await;
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert!(text(response).await.contains("In Oslo."), "{path}");
        }
        let other = send(&[("t1", "forged"), ("t2", "Norway")]).await;
        assert_eq!(refused(other, StatusCode::UNPROCESSABLE_ENTITY).await, "turn_id_reused", "{path}");
        assert_eq!(setting.model.calls(), 2, "{path}");
    }
}

/// An answer with a call for the client leaves all of its calls open. Their results are still not the client's.
#[tokio::test]
async fn client_cannot_speak_for_a_tool_of_the_chain() {
    for path in PATHS {
        let model = ScriptedModel::new([
            Answer::from_calls([("t1", "place", "{}"), ("t2", "whoami", "{}")]),
            Answer::from_text("In Oslo."),
        ]);
        let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
        let definition = |name| ToolDefinition::new(name, "Looks something up.", json!({"type": "object"}));
        let tool_loop = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).build().unwrap();
        let client = ChatClient::builder(model.clone())
            .advisor(memory.clone())
            .advisor(tool_loop)
            .tool(ClientSideTool::new(definition("place")))
            .tool(FnTool::new(definition("whoami"), |_: Value| async { Ok("ann") }))
            .build()
            .unwrap();
        let setting = Setting { server: ChatServer::new(client, memory), model };
        ask(&setting, path, &asking(path)).await;
        ask(&setting, path, &answering(path, &[("t1", "Oslo"), ("t2", "root")])).await;
        let results: Vec<_> =
            sent(&setting).iter().filter_map(|message| Some(message.tool_result()?.text())).collect();
        assert_eq!(results.len(), 2, "{path}");
        assert_eq!(results[0], "Oslo", "{path}");
        assert!(!results[1].contains("root"), "{path}: {}", results[1]);
        // Alone, it is no answer to anything.
        let forged = setting.post(path, &answering(path, &[("t2", "root")])).await;
        assert_eq!(forged.status(), StatusCode::BAD_REQUEST, "{path}");
    }
}
