//! Values that are `null` or empty, as clients of other APIs send them, and what answers in one piece have.

use advisor_core::Message;
use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::setting::{Setting, json_of, post, setting, text};

fn sent(setting: &Setting) -> Vec<String> {
    setting.model.prompts().last().unwrap().messages.iter().map(Message::text).collect()
}

/// The APIs of the providers allow `null` for what is not set.
#[tokio::test]
async fn null_and_empty_settings_are_absent() {
    let hi = json!([{"id": "u1", "role": "user", "content": "Hi"}]);
    for (path, body) in [
        (
            "/v1/chat/completions",
            json!({
                "model": null, "messages": hi, "stream": null, "stream_options": {"include_usage": null},
                "tools": null, "user": "",
            }),
        ),
        (
            "/v1/responses",
            json!({
                "model": null, "input": "Hi", "stream": null, "tools": null, "user": "", "instructions": "",
                "conversation": null, "previous_response_id": null,
            }),
        ),
        (
            "/v1/messages",
            json!({
                "model": null, "messages": hi, "stream": null, "tools": null, "metadata": null, "system": "",
            }),
        ),
        ("/v1/messages", json!({"messages": hi, "metadata": {"user_id": ""}, "system": []})),
        ("/api/ag-ui", json!({"threadId": "c1", "runId": "r1", "messages": hi, "tools": null})),
    ] {
        let setting = setting([Answer::from_text("Yes.")]);
        let response = setting.post(path, &body).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert!(text(response).await.contains("Yes."), "{path}");
        assert_eq!(sent(&setting), ["Hi"], "{path}");
    }
    for body in [json!({"input": "Hi", "instructions": "Obey."}), json!({"input": "Hi", "stream": "yes"})] {
        assert_eq!(setting([]).post("/v1/responses", &body).await.status(), StatusCode::BAD_REQUEST);
    }
}

/// An id that is empty by mistake begins no new conversation.
#[tokio::test]
async fn empty_ids_are_refused() {
    let setting = setting([]);
    for field in ["previous_response_id", "conversation"] {
        let response = setting.post("/v1/responses", &json!({"input": "Hi", field: ""})).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{field}");
    }
    let hi = json!({"messages": [{"role": "user", "content": "Hi"}], "input": "Hi"}).to_string();
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        for header in ["x-conversation-id", "idempotency-key"] {
            let response = setting.send(post(path).header(header, "").body(hi.clone().into()).unwrap()).await;
            assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path} {header}");
        }
    }
    let run =
        json!({"threadId": "c1", "runId": "", "messages": [{"id": "u1", "role": "user", "content": "Hi"}]});
    for (path, body) in [("/api/ag-ui", run), ("/api/chat", json!({"message": "Hi", "turn": ""}))] {
        assert_eq!(setting.post(path, &body).await.status(), StatusCode::BAD_REQUEST, "{path}");
    }
}

/// A provider refuses an empty message, also in each later turn.
#[tokio::test]
async fn empty_message_beside_another_is_left_out() {
    let setting = setting([Answer::from_text("Yes.")]);
    let said = |content: Value| json!({"role": "user", "content": content});
    let messages = [said(json!("")), said(json!("Hi")), said(json!([])), said(json!(" "))];
    text(setting.post("/v1/chat/completions", &json!({"messages": messages, "user": "c1"})).await).await;
    assert_eq!(sent(&setting), ["Hi"]);
    let read = setting.read().await;
    assert_eq!(read["messages"].as_array().unwrap().len(), 2, "{read}");
}

/// The stream has it in the same field.
#[tokio::test]
async fn answer_in_one_piece_has_its_reasoning() {
    let answer = || Answer::new().reasoning("Let me ").reasoning("think.").text("Yes.").done();
    let setting = setting([answer(), Answer::from_text("Yes.")]);
    let body = json!({"messages": [{"role": "user", "content": "Hi"}]});
    let message = |answer: Value| answer["choices"][0]["message"].clone();
    let with = message(json_of(setting.post("/v1/chat/completions", &body).await).await);
    assert_eq!(with["reasoning_content"], "Let me think.", "{with}");
    assert_eq!(with["content"], "Yes.");
    let without = message(json_of(setting.post("/v1/chat/completions", &body).await).await);
    assert!(without.get("reasoning_content").is_none(), "{without}");
}
