//! The same turns for clients of every protocol.

use advisor_sse::Frame;
use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::setting::{Setting, json_of, post, refused, setting, text};
use crate::validate;

/// Two turns, of which the first has a tool.
fn two_turns() -> Setting {
    let call = Answer::new().call("t1", "weather", "{}").usage(10, 2).done();
    setting([
        call,
        Answer::new().text("It is sunny.").usage(20, 5).done(),
        Answer::from_text("It was sunny."),
    ])
}

type Check = fn(&[Frame]) -> Result<(), String>;
type Question = fn(&str) -> Value;

/// The routes with streams, the body of a question, and the check of the stream.
fn streams() -> Vec<(&'static str, Question, Check)> {
    let chat = |text: &str| json!({"model": "chain", "messages": [{"role": "user", "content": text}], "user": "c1", "stream": true});
    vec![
        ("/api/chat", |text| json!({"message": text, "conversation": "c1"}), validate::chat_events),
        (
            "/api/ui",
            |text| json!({"id": "c1", "messages": [{"id": text, "role": "user", "parts": [{"type": "text", "text": text}]}]}),
            validate::ui_messages,
        ),
        (
            "/api/ag-ui",
            |text| json!({"threadId": "c1", "runId": text, "messages": [{"id": "1", "role": "user", "content": text}]}),
            validate::ag_ui,
        ),
        ("/v1/chat/completions", chat, validate::openai_chat),
        (
            "/v1/responses",
            |text| json!({"input": text, "conversation": "c1", "stream": true}),
            validate::openai_responses,
        ),
        (
            "/v1/messages",
            |text| {
                let messages = json!([{"role": "user", "content": [{"type": "text", "text": text}]}]);
                json!({"model": "chain", "messages": messages, "user": "c1", "stream": true})
            },
            validate::anthropic_messages,
        ),
    ]
}

#[tokio::test]
async fn two_turns_with_a_tool_in_every_protocol() {
    for (path, question, check) in streams() {
        let setting = two_turns();
        for (asked, shown) in [("How is it?", "It is sunny."), ("And then?", "It was sunny.")] {
            let stream = text(setting.post(path, &question(asked)).await).await;
            assert!(stream.contains(shown), "{path}:\n{stream}");
            assert_eq!(check(&Frame::read_all(&stream)), Ok(()), "{path}:\n{stream}");
        }
        let prompts = setting.model.prompts();
        assert_eq!(prompts.len(), 3, "{path}");
        let sent: Vec<_> = prompts[2].messages.iter().map(advisor_core::Message::text).collect();
        assert_eq!(sent, ["How is it?", "", "sunny", "It is sunny.", "And then?"], "{path}");
    }
}

#[tokio::test]
async fn answers_in_one_piece_have_text_and_counts() {
    let body = json!({"messages": [{"role": "user", "content": "How is it?"}], "input": "How is it?"});
    for (path, text, counted, count) in [
        ("/v1/chat/completions", "/choices/0/message/content", "/usage/total_tokens", 37),
        ("/v1/responses", "/output/0/content/0/text", "/usage/total_tokens", 37),
        ("/v1/messages", "/content/0/text", "/usage/output_tokens", 7),
    ] {
        let whole = json_of(two_turns().post(path, &body).await).await;
        assert_eq!(whole.pointer(text), Some(&json!("It is sunny.")), "{path}: {whole}");
        assert_eq!(whole.pointer(counted), Some(&json!(count)), "{path}: {whole}");
    }
}

/// An answer in one piece is bounded. The same answer can be streamed.
#[tokio::test]
async fn law_r1_answer_in_one_piece_is_bounded() {
    let messages = json!([{"role": "user", "content": "Hello"}]);
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        let field = if path == "/v1/responses" { "input" } else { "messages" };
        let endless = Answer::new().text("x".repeat(10_000)).hang();
        let long = Answer::from_text("x".repeat(10_000));
        let setting = setting([endless, long, Answer::from_text("Hi.")]);
        let setting = setting.limited(|limits| limits.whole_answer_bytes = 10_000);
        let refused = setting.post(path, &json!({field: messages})).await;
        assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        let error = json_of(refused).await["error"].clone();
        assert_eq!(error["type"], "invalid_request_error", "{path}");
        assert_eq!(error["code"], "answer_too_large", "{path}");
        let streamed = text(setting.post(path, &json!({field: messages, "stream": true})).await).await;
        assert!(streamed.contains(&"x".repeat(10_000)), "{path}");
        assert_eq!(setting.post(path, &json!({field: messages})).await.status(), StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn only_the_listed_model_is_accepted() {
    let setting = setting((0..6).map(|_| Answer::from_text("Hi.")));
    let setting = setting.with(|server| server.with_name("helper"));
    let messages = json!([{"role": "user", "content": "Hello"}]);
    for (path, kind, code) in [
        ("/v1/chat/completions", "invalid_request_error", "model_not_found"),
        ("/v1/responses", "invalid_request_error", "model_not_found"),
        ("/v1/messages", "not_found_error", "model_not_found"),
    ] {
        let field = if path == "/v1/responses" { "input" } else { "messages" };
        for name in ["gpt-5", "chain", &"m".repeat(9_999)] {
            let response = setting.post(path, &json!({"model": name, field: messages})).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
            let error = json_of(response).await["error"].clone();
            assert_eq!((&error["type"], &error["code"]), (&json!(kind), &json!(code)), "{path}");
            assert!(error["message"].as_str().unwrap().contains("`helper`"), "{error}");
            assert!(error["message"].as_str().unwrap().len() < 999, "the name is not repeated");
        }
        // A request without a model is for the only one.
        for body in [json!({"model": "helper", field: messages}), json!({field: messages})] {
            assert_eq!(json_of(setting.post(path, &body).await).await["model"], "helper", "{path}");
        }
    }
}

#[tokio::test]
async fn other_roles_tools_and_nameless_history_are_refused() {
    let setting = setting([]);
    let user = json!({"role": "user", "content": "Hi"});
    for (path, body) in [
        ("/v1/chat/completions", json!({"messages": [{"role": "system", "content": "Obey."}, user]})),
        ("/v1/chat/completions", json!({"messages": [user, {"role": "assistant", "content": "Yes."}, user]})),
        ("/v1/chat/completions", json!({"messages": [user], "tools": [{"type": "function"}]})),
        ("/v1/chat/completions", json!({"messages": []})),
        ("/v1/responses", json!({"input": "Hi", "instructions": "Obey."})),
        ("/v1/messages", json!({"messages": [user], "system": "Obey."})),
        (
            "/api/ag-ui",
            json!({"threadId": "c", "runId": "r", "messages": [{"role": "system", "content": "Obey."}]}),
        ),
        (
            "/api/ag-ui",
            json!({"threadId": "c", "runId": "r", "messages": [user], "tools": [{"name": "weather"}]}),
        ),
        ("/api/ui", json!({"id": "c", "messages": [], "trigger": "regenerate-message"})),
    ] {
        let code = refused(setting.post(path, &body).await, StatusCode::BAD_REQUEST).await;
        assert_eq!(code, "invalid_request", "{path} {body}");
    }
    assert_eq!(setting.model.calls(), 0);
}

/// OpenAI and Anthropic have the end user in these fields, who may have many conversations.
#[tokio::test]
async fn end_user_is_no_conversation() {
    let body = json!({
        "messages": [{"role": "user", "content": "How is it?"}], "input": "How is it?", "user": "ann",
        "metadata": {"user_id": "ann"},
    });
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        let setting = setting(["One.", "Two."].map(Answer::from_text));
        for _ in 0..2 {
            text(setting.send(post(path).body(body.to_string().into()).unwrap()).await).await;
        }
        let listed = json_of(setting.get("/api/conversations").await).await["conversations"].clone();
        let listed = listed.as_array().unwrap();
        assert!(listed.len() == 2 && listed.iter().all(|id| id != "ann"), "{path}: {listed:?}");
        assert_eq!(setting.model.prompts()[1].messages.len(), 1, "{path}");
    }
}
