//! Approvals of calls by clients of AG-UI and of OpenAI's Responses.

use std::sync::atomic::Ordering;

use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::approvals::{Till, open_till, pays, results};
use crate::setting::{Setting, json_of, post, refused, text, told, with_tokens};

/// Runs a thread of AG-UI, with a history that the client keeps.
pub(crate) fn run(run: &str, said: &[&str], resume: &Value) -> Value {
    let user = said.iter().map(|text| json!({"id": "u", "role": "user", "content": text}));
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "pay", "arguments": "{}"}});
    let asked = json!({"id": "a", "role": "assistant", "toolCalls": [call("c1"), call("c2")]});
    let mut messages: Vec<_> = user.collect();
    if !resume.is_null() {
        messages.insert(1, asked);
    }
    json!({"threadId": "c1", "runId": run, "messages": messages, "tools": [], "resume": resume})
}

pub(crate) fn finished(stream: &str) -> Value {
    let read = |line: &str| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok();
    stream.lines().filter_map(read).find(|event| event["type"] == "RUN_FINISHED").unwrap()
}

pub(crate) async fn interrupts(till: &Till) -> Vec<String> {
    let stream = text(till.setting.post("/api/ag-ui", &run("r1", &["Pay."], &Value::Null)).await).await;
    let finished = finished(&stream);
    let interrupts = finished["outcome"]["interrupts"].as_array().cloned().unwrap_or_default();
    interrupts.iter().map(|interrupt| interrupt["id"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn resolved(id: &str, payload: &Value) -> Value {
    json!({"interruptId": id, "status": "resolved", "payload": payload})
}

/// Returns the approvals of all calls that a run has asked about.
pub(crate) fn approved(stream: &str) -> Value {
    let finished = finished(stream);
    let asked = finished["outcome"]["interrupts"].as_array().unwrap().iter();
    asked.map(|asked| resolved(asked["id"].as_str().unwrap(), &json!({"approved": true}))).collect()
}

/// Returns the approvals of all calls that a response has asked about.
pub(crate) fn approved_response(response: &Value) -> Value {
    let approved = |asked: &Value| json!({"type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true});
    response["output"].as_array().unwrap().iter().map(approved).collect()
}

#[tokio::test]
async fn ag_ui_clients_decide_about_calls() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let asked = interrupts(&till).await;
    assert_eq!(asked.len(), 2);
    let resume = json!([
        resolved(&asked[0], &json!({"approved": true})),
        {"interruptId": asked[1], "status": "cancelled", "payload": {}},
    ]);
    for _ in 0..2 {
        let stream = text(till.setting.post("/api/ag-ui", &run("r2", &["Pay."], &resume)).await).await;
        assert!(stream.contains("Done.") && stream.contains("\"content\":\"paid 1\""), "{stream}");
        assert_eq!(stream.matches("TOOL_CALL_RESULT").count(), 2);
        assert_eq!(finished(&stream)["outcome"], Value::Null);
    }
    assert_eq!(results(&till), ["paid 1", "not started: the user has denied the call"]);
    assert_eq!((till.paid.load(Ordering::SeqCst), till.setting.model.prompts().len()), (1, 2));
    // In another run, these are answers to earlier requests.
    let late = till.setting.post("/api/ag-ui", &run("r3", &["Pay."], &resume)).await;
    refused(late, StatusCode::BAD_REQUEST).await;
}

/// A message of the user may come with the decisions. Without them, it answers the calls.
#[tokio::test]
async fn ag_ui_clients_may_say_something_beside_decisions() {
    for decides in [true, false] {
        let till = open_till([pays(), Answer::from_text("Done.")]);
        let asked = interrupts(&till).await;
        let approved = asked.iter().map(|id| resolved(id, &json!({"approved": true})));
        let resume = if decides { approved.collect() } else { json!([]) };
        let stream =
            text(till.setting.post("/api/ag-ui", &run("r2", &["Pay.", "Quickly."], &resume)).await).await;
        assert!(stream.contains("Done."), "{stream}");
        assert_eq!(till.paid.load(Ordering::SeqCst), if decides { 2 } else { 0 });
        let prompts = till.setting.model.prompts();
        assert_eq!(prompts[1].messages.last().unwrap().text(), "Quickly.");
    }
}

/// A guard refuses the message beside the decisions. Nothing runs, and the calls wait for the same decisions.
#[tokio::test]
async fn message_that_is_refused_beside_decisions_decides_nothing() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let stream = text(till.setting.post("/api/ag-ui", &run("r1", &["Pay."], &Value::Null)).await).await;
    let resume = approved(&stream);
    let body = run("r2", &["Pay.", "Forbidden!"], &resume);
    for _ in 0..2 {
        let stream = text(till.setting.post("/api/ag-ui", &body).await).await;
        assert!(stream.contains("No."), "{stream}");
        assert_eq!(till.paid.load(Ordering::SeqCst), 0);
    }
    let stream = text(till.setting.post("/api/ag-ui", &run("r3", &["Pay."], &resume)).await).await;
    assert!(stream.contains("Done."), "{stream}");
    assert_eq!((&finished(&stream)["outcome"], till.paid.load(Ordering::SeqCst)), (&Value::Null, 2));
}

#[tokio::test]
async fn wrong_answers_to_interrupts_are_refused() {
    let till = open_till([pays()]);
    let ids = interrupts(&till).await;
    let approved = |id: &str| resolved(id, &json!({"approved": true}));
    let forged = ids[1].replace(".1.1.", ".1.1.0");
    let (bad, unprocessable) = (StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY);
    for (resume, status, wanted) in [
        (json!([approved(&ids[0]), approved(&forged)]), unprocessable, "names no call that waits"),
        (json!([approved(&ids[0]), approved(&forged), approved(&ids[1])]), unprocessable, "two decisions"),
        (json!([approved(&ids[0])]), unprocessable, "waits without a decision"),
        (json!([approved(&ids[0]), approved(&ids[1]), approved(&ids[1])]), unprocessable, "two decisions"),
        (json!([]), unprocessable, "waits without a decision"),
        (json!([approved("t.1.0.d.c1")]), unprocessable, "names no call that waits"),
        (json!([approved("c1")]), bad, ""),
        (json!([resolved(&ids[0], &Value::Null)]), bad, "needs the payload"),
        (json!([resolved(&ids[0], &json!({"approved": "yes"}))]), bad, "approved"),
    ] {
        let response = till.setting.post("/api/ag-ui", &run("r2", &["Pay."], &resume)).await;
        let told = told(response, status).await;
        assert!(told.contains(wanted), "{resume}: {told}");
    }
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn clients_of_responses_decide_about_calls() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let asking = json!({"model": "chain", "input": "Pay.", "conversation": "c1"});
    let first = json_of(till.setting.post("/v1/responses", &asking).await).await;
    let asked = first["output"].as_array().unwrap();
    assert_eq!([&asked[0]["type"], &asked[0]["name"]], ["mcp_approval_request", "pay"]);
    let answer = |place: usize, approve: bool, reason: Option<&str>| json!({"type": "mcp_approval_response", "approval_request_id": asked[place]["id"], "approve": approve, "reason": reason});
    let input = json!([answer(0, true, None), answer(1, false, Some("too much"))]);
    let incomplete = json!([{"type": "mcp_approval_response", "approve": true}]);
    for (input, status) in [
        (json!([answer(0, true, None)]), StatusCode::UNPROCESSABLE_ENTITY),
        (incomplete, StatusCode::BAD_REQUEST),
    ] {
        let body = json!({"model": "chain", "previous_response_id": first["id"], "input": input});
        assert_eq!(till.setting.post("/v1/responses", &body).await.status(), status, "{input}");
    }
    let unnamed = json!({"model": "chain", "input": input});
    assert_eq!(till.setting.post("/v1/responses", &unnamed).await.status(), StatusCode::BAD_REQUEST);
    let body = json!({"model": "chain", "previous_response_id": first["id"], "input": input});
    let second = json_of(till.setting.post("/v1/responses", &body).await).await;
    assert_eq!(second["output"][0]["content"][0]["text"], "Done.");
    assert_eq!(results(&till), ["paid 1", "not started: too much"]);
    assert_eq!(till.paid.load(Ordering::SeqCst), 1);
}

/// The same request is the same turn, also at a server that has just begun.
#[tokio::test]
async fn decisions_of_responses_are_sent_again_after_a_restart() {
    let till = open_till([pays(), Answer::from_text("Done.")]);
    let asking = json!({"model": "chain", "input": "Pay.", "conversation": "c1"});
    let first = json_of(till.setting.post("/v1/responses", &asking).await).await;
    let body = json!({"previous_response_id": first["id"], "input": approved_response(&first)});
    for till in [&till, &till.restarted()] {
        assert!(text(till.setting.post_as("d1", "/v1/responses", &body).await).await.contains("Done."));
    }
    assert_eq!((till.paid.load(Ordering::SeqCst), till.setting.model.prompts().len()), (2, 2));
}

/// A thread of AG-UI has the calls of all its runs, so each has a unique id. An earlier result never answers a later call.
#[tokio::test]
async fn law_t6_ag_ui_calls_of_thread_have_own_ids() {
    let place = || Answer::from_calls([("c1", "place", "{}")]);
    let till = open_till([place(), place(), Answer::from_text("Done.")]);
    let mut history = vec![json!({"id": "u", "role": "user", "content": "Where am I?"})];
    let mut calls = Vec::<String>::new();
    for run in ["r1", "r2"] {
        let body = json!({"threadId": "c1", "runId": run, "messages": history});
        let stream = text(till.setting.post("/api/ag-ui", &body).await).await;
        let read = |line: &str| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok();
        let begun = stream.lines().filter_map(read).find(|event| event["type"] == "TOOL_CALL_START").unwrap();
        let id = begun["toolCallId"].as_str().unwrap().to_owned();
        assert!(id.starts_with("c1") && !calls.contains(&id), "{id}");
        let call = json!({"id": id, "type": "function", "function": {"name": "place", "arguments": "{}"}});
        history.push(json!({"id": id, "role": "assistant", "toolCalls": [call]}));
        if run == "r1" {
            history.push(json!({"id": "t1", "role": "tool", "toolCallId": id, "content": "Oslo"}));
        }
        calls.push(id);
    }
    // The later call has no result yet.
    let body = |history: &[Value], run: &str| json!({"threadId": "c1", "runId": run, "messages": history});
    refused(till.setting.post("/api/ag-ui", &body(&history, "r3")).await, StatusCode::BAD_REQUEST).await;
    history.push(json!({"id": "t2", "role": "tool", "toolCallId": calls[1], "content": "Lima"}));
    for _ in 0..2 {
        let stream = text(till.setting.post("/api/ag-ui", &body(&history, "r4")).await).await;
        assert!(stream.contains("Done."), "{stream}");
    }
    assert_eq!(results(&till), ["Oslo", "Lima"]);
}

/// An approval of one tenant decides nothing about the same call of another one.
#[tokio::test]
async fn law_t6_approval_is_of_one_tenant() {
    let till = open_till([pays(), pays()]);
    let (server, model) = (till.setting.server.clone(), till.setting.model.clone());
    let setting = with_tokens(Setting { server, model });
    let run = async |token: &str, body: &Value| {
        let request = post("/api/ag-ui").header("authorization", format!("Bearer {token}"));
        setting.send(request.body(body.to_string().into()).unwrap()).await
    };
    let mut resume = Value::Null;
    for token in ["the-token-of-bob", "the-token-of-ann"] {
        let stream = text(run(token, &self::run("r1", &["Pay."], &Value::Null)).await).await;
        resume = approved(&stream);
    }
    let forged = run("the-token-of-bob", &self::run("r2", &["Pay."], &resume)).await;
    refused(forged, StatusCode::UNPROCESSABLE_ENTITY).await;
    assert_eq!(till.paid.load(Ordering::SeqCst), 0);
}
