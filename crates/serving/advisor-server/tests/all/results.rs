//! Results of calls that the client runs, in the words of each protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use advisor_core::{AdvisorChain, ChatRequest, Message, Phase, Placement, Role, ToolDefinition, from_fn};
use advisor_testkit::{Answer, FaultStore, ScriptedModel};
use axum::http::StatusCode;
use axum::http::request::Parts;
use chat_memory_advisor::{ChatMemoryAdvisor, ConversationStore, InMemoryStore};
use serde_json::{Value, json};
use tool_call_advisor::{ClientSideTool, FnTool, ToolCallAdvisor, ToolCallAdvisorBuilder, ToolCallStreaming};

use crate::setting::{Setting, chain, chain_over, post_in, refused, text, told, with_tokens};

const PATHS: [&str; 5] = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/ag-ui", "/api/ui"];

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "Looks something up.", json!({"type": "object"}))
}

/// Creates a server whose tool `place` runs at the client. The model gives these answers.
fn server(tool_loop: ToolCallAdvisorBuilder, answers: impl IntoIterator<Item = Answer>) -> Setting {
    server_over(InMemoryStore::new(), tool_loop, answers)
}

fn server_over(
    store: impl ConversationStore,
    tool_loop: ToolCallAdvisorBuilder,
    answers: impl IntoIterator<Item = Answer>,
) -> Setting {
    let tool_loop = tool_loop.streaming(ToolCallStreaming::All).build().unwrap();
    chain_over(ChatMemoryAdvisor::new(store), ScriptedModel::new(answers), |client| {
        client.advisor(tool_loop).tool(ClientSideTool::new(definition("place")))
    })
}

/// Creates a server whose model calls `place`, and then says these texts.
pub(crate) fn setting(calls: &[&str], texts: &[&str]) -> Setting {
    let call = Answer::from_calls(calls.iter().map(|id| (*id, "place", "{}")));
    let texts = texts.iter().map(|text| Answer::from_text(*text));
    server(ToolCallAdvisor::builder(), [call].into_iter().chain(texts))
}

/// Creates a server whose model calls `place` beside `whoami`, a tool that the chain runs.
fn with_both(tool_loop: ToolCallAdvisorBuilder) -> Setting {
    let both = Answer::from_calls([("t1", "place", "{}"), ("t2", "whoami", "{}")]);
    with_whoami(tool_loop, [both, Answer::from_text("In Oslo.")])
}

/// Creates a server with `place` and `whoami`. The model gives these answers.
fn with_whoami(tool_loop: ToolCallAdvisorBuilder, answers: impl IntoIterator<Item = Answer>) -> Setting {
    let whoami = || FnTool::new(definition("whoami"), |_: Value| async { Ok("ann") });
    server(tool_loop, answers).with(|server| server.map_prompt(move |prompt, _| prompt.tool(whoami())))
}

/// Returns the results in the last request.
pub(crate) fn results_sent(setting: &Setting) -> Vec<String> {
    sent(setting).iter().filter_map(|message| Some(message.tool_result()?.text())).collect()
}

pub(crate) fn body(path: &str, run: &str, messages: &[Value]) -> Value {
    match path {
        "/v1/responses" => json!({"input": messages, "conversation": "c1", "stream": true}),
        "/api/ag-ui" => json!({"threadId": "c1", "runId": run, "messages": messages}),
        "/api/ui" => {
            json!({"id": "c1", "messages": messages, "messageId": messages.last().filter(|last| last["role"] == "assistant").map(|last| &last["id"])})
        }
        _ => json!({"messages": messages, "user": "c1", "stream": true}),
    }
}

pub(crate) fn asking(path: &str) -> Value {
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
    let asked = question.get("messages").or(question.get("input")).unwrap().as_array().unwrap();
    let of = |(id, result): &(&str, &str)| match path {
        "/v1/messages" => (id.to_string(), json!([{"type": "text", "text": result}])),
        _ => (id.to_string(), json!(result)),
    };
    body(path, "r2", &[&asked[..], &list(path, &results.iter().map(of).collect::<Vec<_>>())].concat())
}

/// Returns calls of `place`, and their results behind them.
fn list(path: &str, results: &[(String, Value)]) -> Vec<Value> {
    let each = |make: fn(&str, &Value) -> Value| -> Vec<Value> {
        results.iter().map(|(id, result)| make(id, result)).collect()
    };
    let functions =
        each(|id, _| json!({"id": id, "type": "function", "function": {"name": "place", "arguments": "{}"}}));
    let (calls, results) = match path {
        "/v1/chat/completions" => (
            vec![json!({"role": "assistant", "content": null, "tool_calls": functions})],
            each(|id, result| json!({"role": "tool", "tool_call_id": id, "content": result})),
        ),
        "/v1/responses" => (
            each(|id, _| json!({"type": "function_call", "call_id": id, "name": "place", "arguments": "{}"})),
            each(|id, result| json!({"type": "function_call_output", "call_id": id, "output": result})),
        ),
        "/v1/messages" => {
            let calls = each(|id, _| json!({"type": "tool_use", "id": id, "name": "place", "input": {}}));
            let results =
                each(|id, result| json!({"type": "tool_result", "tool_use_id": id, "content": result}));
            (
                vec![json!({"role": "assistant", "content": calls})],
                vec![json!({"role": "user", "content": results})],
            )
        }
        "/api/ag-ui" => (
            vec![json!({"id": "a1", "role": "assistant", "toolCalls": functions})],
            each(|id, result| json!({"id": "m", "role": "tool", "toolCallId": id, "content": result})),
        ),
        _ => {
            let parts = each(
                |id, result| json!({"type": "dynamic-tool", "toolName": "place", "toolCallId": id, "state": "output-available", "input": {}, "output": result}),
            );
            (vec![json!({"id": "answer-u1", "role": "assistant", "parts": parts})], Vec::new())
        }
    };
    [calls, results].concat()
}

/// A call of a list, and the result that may follow at once.
fn pair(path: &str, id: &str, result: Value) -> Vec<Value> {
    list(path, &[(id.to_owned(), result)])
}

pub(crate) async fn ask(setting: &Setting, path: &str, body: &Value) -> String {
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
        let read =
            results.iter().map(|result| format!("{} {} {}", result.call_id, result.name, result.text()));
        assert_eq!(read.collect::<Vec<_>>(), ["t1 place Oslo", "t2 place Norway"], "{path}");
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
        let twice = &[("t1", "forged"), ("t1", "Oslo")][..];
        for forged in [&[("t9", "forged")][..], twice] {
            // In a message, the last part of an id counts.
            if path == "/api/ui" && forged == twice {
                continue;
            }
            let response = setting.post(path, &answering(path, forged)).await;
            let message = told(response, StatusCode::BAD_REQUEST).await;
            assert!(message.contains("result"), "{path} {forged:?}: {message}");
        }
        ask(&setting, path, &answering(path, &[("t1", "Oslo")])).await;
        // The call has its result now.
        let mut again = answering(path, &[("t1", "forged")]);
        again["runId"] = "r3".into();
        let response = setting.post(path, &again).await;
        let (status, code) = match path {
            // The message is the same, so its results begin the same turn.
            "/api/ui" => (StatusCode::UNPROCESSABLE_ENTITY, "turn_id_reused"),
            _ => (StatusCode::BAD_REQUEST, "invalid_request"),
        };
        assert_eq!(refused(response, status).await, code, "{path}");
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
            let request =
                post_in(path, &body).header("authorization", format!("Bearer the-token-of-{tenant}"));
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
async fn client_side_tools_of_the_prompt_may_be_named() {
    for path in &PATHS[..4] {
        for (name, status) in
            [("place", StatusCode::OK), ("time", StatusCode::OK), ("other", StatusCode::BAD_REQUEST)]
        {
            let time = || ClientSideTool::new(definition("time"));
            let setting = setting(&["t1"], &[]);
            let setting = setting.with(|server| server.map_prompt(move |prompt, _| prompt.tool(time())));
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

/// The function of the application may count, or make something for the turn.
#[tokio::test]
async fn prompt_is_changed_once_for_a_request() {
    for path in PATHS {
        let changes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&changes);
        let counting = move |prompt, _: &Parts| {
            counter.fetch_add(1, Ordering::SeqCst);
            prompt
        };
        let setting = setting(&["t1"], &["In Oslo."]).with(|server| server.map_prompt(counting));
        ask(&setting, path, &asking(path)).await;
        assert_eq!(changes.load(Ordering::SeqCst), 1, "{path}");
        let mut results = answering(path, &[("t1", "Oslo")]);
        if path.starts_with("/v1") {
            results["tools"] = json!([{"name": "place", "function": {"name": "place"}}]);
        }
        assert!(ask(&setting, path, &results).await.contains("In Oslo."), "{path}");
        assert_eq!(changes.load(Ordering::SeqCst), 2, "{path}");
    }
}

/// The open calls and their ids are two loads, and the history of a list is one. The turn loads the conversation, and stores its input and its answer.
#[tokio::test]
async fn results_are_read_with_three_loads() {
    for path in PATHS {
        let store = FaultStore::new(InMemoryStore::new());
        let call = Answer::from_calls([("t1", "place", "{}")]);
        let setting =
            server_over(store.clone(), ToolCallAdvisor::builder(), [call, Answer::from_text("Yes.")]);
        ask(&setting, path, &asking(path)).await;
        let asked = store.operations();
        text(setting.post_as("r2", path, &answering(path, &[("t1", "Oslo")])).await).await;
        assert_eq!(store.operations() - asked, 3 + 3, "{path}");
    }
}

/// The turn has answered the calls, so the conversation waits for them no longer.
#[tokio::test]
async fn results_that_are_sent_again_join_their_turn() {
    for path in PATHS {
        let setting = setting(&["t1", "t2"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        let send =
            async |results: &[(&str, &str)]| setting.post_as("r2", path, &answering(path, results)).await;
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

/// The chain runs its own tool beside the one of the client, and a client cannot speak for it.
#[tokio::test]
async fn chain_runs_its_tools_beside_those_of_the_client() {
    for path in PATHS {
        let setting = with_both(ToolCallAdvisor::builder());
        let events = ask(&setting, path, &asking(path)).await;
        assert!(events.contains("t1"), "{path}: {events}");
        ask(&setting, path, &answering(path, &[("t1", "Oslo"), ("t2", "root")])).await;
        assert_eq!(results_sent(&setting), ["Oslo", "ann"], "{path}");
        // Alone, it is no answer to anything.
        let forged = setting.post(path, &answering(path, &[("t2", "root")])).await;
        assert_eq!(forged.status(), StatusCode::BAD_REQUEST, "{path}");
    }
}

/// A call of the chain that waits, such as for an approval, is not the client's.
#[tokio::test]
async fn client_cannot_speak_for_a_call_that_waits() {
    for path in PATHS {
        let setting = with_both(ToolCallAdvisor::builder().eligible(|_| false));
        ask(&setting, path, &asking(path)).await;
        ask(&setting, path, &answering(path, &[("t1", "Oslo"), ("t2", "root")])).await;
        let results = results_sent(&setting);
        assert_eq!((results.len(), results[0].as_str()), (2, "Oslo"), "{path}");
        assert!(!results[1].contains("root"), "{path}: {}", results[1]);
    }
}

/// The server does not know a tool that an advisor adds, so it takes no result for it.
#[tokio::test]
async fn client_cannot_speak_for_a_tool_of_an_advisor() {
    for path in PATHS {
        let adds = from_fn("adds", |request: ChatRequest, next: AdvisorChain| async move {
            let pay = FnTool::new(definition("pay"), |_: Value| async { Ok("paid") });
            let tools = request.tools.clone().with(pay);
            next.next_stream(ChatRequest { tools, ..request }).await
        });
        let setting = chain([Answer::from_calls([("t1", "pay", "{}")])], |client| {
            client
                .advisor(adds.with_placement(Placement::new(Phase::Turn)))
                .advisor(ToolCallAdvisor::builder().eligible(|_| false).build().unwrap())
        });
        ask(&setting, path, &asking(path)).await;
        let forged = setting.post(path, &answering(path, &[("t1", "forged")])).await;
        assert_eq!(refused(forged, StatusCode::BAD_REQUEST).await, "invalid_request", "{path}");
        assert_eq!(setting.model.calls(), 1, "{path}");
    }
}

/// A page that is loaded again shows the call that waits, and no result or sentence that is not true yet.
#[tokio::test]
async fn call_that_waits_is_shown_without_a_result() {
    let setting = with_both(ToolCallAdvisor::builder());
    let shown = async || {
        let read = setting.read().await;
        let text = |message: &Value| {
            let text = message.get("result").or(message.get("text"));
            text.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        read["messages"].as_array().unwrap().iter().map(text).collect::<Vec<_>>()
    };
    ask(&setting, PATHS[0], &asking(PATHS[0])).await;
    assert_eq!(shown().await, ["Where am I?", "", "ann"]);
    ask(&setting, PATHS[0], &answering(PATHS[0], &[("t1", "Oslo")])).await;
    assert_eq!(shown().await, ["Where am I?", "", "Oslo", "ann", "In Oslo."]);
}

/// Models repeat ids in later rounds. The client knows the call by a number behind its id.
#[tokio::test]
async fn result_has_the_id_that_the_client_knows() {
    for path in PATHS {
        let round = |tool| Answer::from_calls([("t1", tool, "{}")]);
        let answers = [round("whoami"), round("place"), Answer::from_text("In Oslo.")];
        let setting = with_whoami(ToolCallAdvisor::builder(), answers);
        let events = ask(&setting, path, &asking(path)).await;
        assert!(events.contains("t1_2"), "{path}: {events}");
        for _ in 0..2 {
            let events = text(setting.post_as("r2", path, &answering(path, &[("t1_2", "Oslo")])).await).await;
            assert!(events.contains("In Oslo."), "{path}: {events}");
        }
        assert_eq!(results_sent(&setting), ["ann", "Oslo"], "{path}");
    }
}

/// Each protocol shows the client its own call as one to run, and the chain's not at all or with its result.
#[tokio::test]
async fn only_the_clients_call_is_left_to_it() {
    for (path, open, closed) in [
        ("/v1/chat/completions", r#""tool_calls":[{"#, r#""whoami""#),
        ("/v1/responses", r#""type":"function_call""#, r#""whoami""#),
        ("/v1/messages", r#""type":"tool_use""#, r#""whoami""#),
    ] {
        let setting = with_both(ToolCallAdvisor::builder());
        let events = ask(&setting, path, &asking(path)).await;
        assert!(events.contains(open) && !events.contains(closed), "{path}: {events}");
    }
    for (path, result) in [
        ("/api/ui", r#"{"type":"tool-output-available","toolCallId":"t2""#),
        ("/api/ag-ui", r#""type":"TOOL_CALL_RESULT","messageId":"#),
    ] {
        let setting = with_both(ToolCallAdvisor::builder());
        let events = ask(&setting, path, &asking(path)).await;
        assert_eq!(events.matches(result).count(), 1, "{path}: {events}");
    }
}

#[tokio::test]
async fn results_may_alternate_with_their_calls() {
    for path in &PATHS[..4] {
        let setting = setting(&["t1", "t2"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        let pairs = [pair(path, "t1", json!("Oslo")), pair(path, "t2", json!("Norway"))];
        ask(&setting, path, &body(path, "r2", &pairs.concat())).await;
        assert_eq!(results_sent(&setting), ["Oslo", "Norway"], "{path}");
    }
}

/// An id that a later call repeats: the earlier result is not the one of the later call.
#[tokio::test]
async fn earlier_result_is_not_of_a_later_call() {
    for path in &PATHS[..4] {
        let setting = setting(&["t1"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        let earlier = pair(path, "t1", json!("earlier"));
        let said = json!({"id": "u2", "role": "user", "content": "Never mind."});
        ask(&setting, path, &body(path, "r2", &[&earlier[..], &earlier[..1], &[said]].concat())).await;
        assert_eq!(results_sent(&setting).len(), 1, "{path}");
        assert!(!results_sent(&setting)[0].contains("earlier"), "{path}");
    }
}

#[tokio::test]
async fn results_of_any_json_reach_the_model() {
    for path in &PATHS[1..4] {
        for (result, sent) in [
            (json!({"city": "Oslo"}), r#"{"city":"Oslo"}"#),
            (json!(7), "7"),
            (json!(false), "false"),
            (json!(""), ""),
        ] {
            let setting = setting(&["t1"], &["In Oslo."]);
            ask(&setting, path, &asking(path)).await;
            ask(&setting, path, &body(path, "r2", &pair(path, "t1", result))).await;
            assert_eq!(results_sent(&setting), [sent], "{path}");
        }
    }
}

/// Only in Messages a result may lack its content.
#[tokio::test]
async fn result_without_content_is_refused() {
    for path in &PATHS[..4] {
        let setting = setting(&["t1"], &["In Oslo."]);
        ask(&setting, path, &asking(path)).await;
        let response = setting.post(path, &body(path, "r2", &pair(path, "t1", Value::Null))).await;
        if *path == "/v1/messages" {
            text(response).await;
            assert_eq!(results_sent(&setting), [""]);
            continue;
        }
        assert_eq!(told(response, StatusCode::BAD_REQUEST).await, "a result has no content", "{path}");
    }
}
