//! The same turns for clients of every protocol.

use advisor_core::ChatClient;
use advisor_server::{ChatServer, ServerLimits};
use advisor_sse::Frame;
use advisor_testkit::{Answer, ScriptedModel};
use axum::body::Body;
use axum::http::StatusCode;
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
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
                json!({"model": "chain", "messages": messages, "metadata": {"user_id": "c1"}, "stream": true})
            },
            validate::anthropic_messages,
        ),
    ]
}

#[tokio::test]
async fn two_turns_with_a_tool_in_every_protocol() {
    for (path, question, _) in streams() {
        let setting = two_turns();
        for (asked, shown) in [("How is it?", "It is sunny."), ("And then?", "It was sunny.")] {
            let stream = text(setting.post(path, &question(asked)).await).await;
            assert!(stream.contains(shown), "{path}:\n{stream}");
        }
        let prompts = setting.model.prompts();
        assert_eq!(prompts.len(), 3, "{path}");
        let sent: Vec<_> = prompts[2].messages.iter().map(advisor_core::Message::text).collect();
        assert_eq!(sent, ["How is it?", "", "sunny", "It is sunny.", "And then?"], "{path}");
    }
}

#[tokio::test]
async fn streams_keep_the_rules_of_their_protocol() {
    for (path, question, check) in streams() {
        let setting = two_turns();
        let stream = text(setting.post(path, &question("How is it?")).await).await;
        assert_eq!(check(&Frame::read_all(&stream)), Ok(()), "{path}:\n{stream}");
        assert!(stream.contains("sunny."), "{path}:\n{stream}");
    }
}

#[tokio::test]
async fn answers_in_one_piece_have_text_and_counts() {
    let setting = two_turns();
    let chat = json!({"model": "chain", "messages": [{"role": "user", "content": "How is it?"}]});
    let whole = json_of(setting.post("/v1/chat/completions", &chat).await).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "It is sunny.");
    assert_eq!(
        (&whole["choices"][0]["finish_reason"], &whole["object"]),
        (&json!("stop"), &json!("chat.completion"))
    );
    assert_eq!(whole["usage"]["total_tokens"], 37);

    let setting = two_turns();
    let whole = json_of(setting.post("/v1/responses", &json!({"input": "How is it?"})).await).await;
    assert_eq!(whole["output"][0]["content"][0]["text"], "It is sunny.");
    assert_eq!((&whole["status"], &whole["usage"]["total_tokens"]), (&json!("completed"), &json!(37)));

    let setting = two_turns();
    let messages = json!({"model": "chain", "messages": [{"role": "user", "content": "How is it?"}]});
    let whole = json_of(setting.post("/v1/messages", &messages).await).await;
    assert_eq!(whole["content"], json!([{"type": "text", "text": "It is sunny."}]));
    assert_eq!((&whole["stop_reason"], &whole["usage"]["output_tokens"]), (&json!("end_turn"), &json!(7)));
}

/// An answer in one piece is bounded. The same answer can be streamed.
#[tokio::test]
async fn law_r1_answer_in_one_piece_is_bounded() {
    let mut limits = ServerLimits::default();
    limits.whole_answer_bytes = 10_000;
    let messages = json!([{"role": "user", "content": "Hello"}]);
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        let field = if path == "/v1/responses" { "input" } else { "messages" };
        let endless = Answer::new().text("x".repeat(10_000)).hang();
        let long = Answer::from_text("x".repeat(10_000));
        let Setting { server, model } = setting([endless, long, Answer::from_text("Hi.")]);
        let setting = Setting { server: server.with_limits(limits), model };
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

/// So is a turn whose chunks come faster than they are read.
#[tokio::test]
async fn answer_whose_beginning_is_not_kept_is_too_large_for_one_piece() {
    let answer = || (0..20).fold(Answer::new(), |answer, _| answer.text("It is. ")).done();
    let Setting { server, model } = setting([answer()]);
    let setting = Setting {
        server: {
            let mut limits = ServerLimits::default();
            limits.kept_chunks = 4;
            server.with_limits(limits)
        },
        model,
    };
    let body = json!({"messages": [{"role": "user", "content": "Hello"}], "user": "c1"}).to_string();
    for _ in 0..2 {
        let request = post("/v1/chat/completions").header("idempotency-key", "k1");
        let response = setting.send(request.body(Body::from(body.clone())).unwrap()).await;
        assert_eq!(refused(response, StatusCode::UNPROCESSABLE_ENTITY).await, "answer_too_large");
    }
}

#[tokio::test]
async fn only_the_listed_model_is_accepted() {
    let Setting { server, model } = setting((0..6).map(|_| Answer::from_text("Hi.")));
    let setting = Setting { server: server.with_name("helper"), model };
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
async fn chain_is_listed_as_a_model() {
    let Setting { server, model } = setting([]);
    let setting = Setting { server: server.with_name("helper"), model };
    assert_eq!(json_of(setting.get("/v1/models").await).await["data"][0]["id"], "helper");
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
        ("/api/ui", json!({"id": "c", "messages": [{"role": "assistant", "parts": []}]})),
        ("/api/ui", json!({"id": "c", "messages": [], "trigger": "regenerate-message"})),
    ] {
        let code = refused(setting.post(path, &body).await, StatusCode::BAD_REQUEST).await;
        assert_eq!(code, "invalid_request", "{path} {body}");
    }
    assert_eq!(setting.model.calls(), 0);
}

/// The conversation of an OpenAI client is in a header, as its library can send one with each request.
#[tokio::test]
async fn header_names_the_conversation() {
    let setting = two_turns();
    let body = json!({"messages": [{"role": "user", "content": "How is it?"}]}).to_string();
    let request =
        post("/v1/chat/completions").header("x-conversation-id", "c7").body(Body::from(body)).unwrap();
    text(setting.send(request).await).await;
    assert_eq!(json_of(setting.get("/api/conversations").await).await["conversations"], json!(["c7"]));
}

/// OpenAI and Anthropic have the end user in these fields, who may have many conversations.
#[tokio::test]
async fn end_user_is_no_conversation_unless_the_server_is_set_so() {
    let body = json!({
        "messages": [{"role": "user", "content": "How is it?"}], "input": "How is it?", "user": "ann",
        "metadata": {"user_id": "ann"},
    });
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
        for is_set in [false, true] {
            let model = ScriptedModel::new(["One.", "Two."].map(Answer::from_text));
            let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
            let client = ChatClient::builder(model.clone()).advisor(memory.clone()).build().unwrap();
            let server = ChatServer::new(client, memory);
            let server = if is_set { server.with_conversation_by_user() } else { server };
            let setting = Setting { server, model };
            for _ in 0..2 {
                text(setting.post(path, &body).await).await;
            }
            let listed = json_of(setting.get("/api/conversations").await).await["conversations"].clone();
            let expected = if is_set { 1 } else { 2 };
            assert_eq!(listed.as_array().unwrap().len(), expected, "{path} {is_set}: {listed}");
            assert_eq!(listed[0] == "ann", is_set, "{path}: {listed}");
            assert_eq!(setting.model.prompts()[1].messages.len(), if is_set { 3 } else { 1 }, "{path}");
        }
    }
}

/// `regenerate` and an edited message of the AI SDK replace the turn that they name.
#[tokio::test]
async fn ui_answers_are_regenerated_and_messages_edited() {
    let setting = setting(["One.", "Two.", "Three.", "Four."].map(Answer::from_text));
    let ask = |text: &str, trigger: &str, id: Option<&str>| {
        let message = json!({"id": "u1", "role": "user", "parts": [{"type": "text", "text": text}]});
        json!({"id": "c1", "messages": [message], "trigger": trigger, "messageId": id})
    };
    let answer_id =
        |stream: &str| Frame::read_all(stream)[0].json().unwrap()["messageId"].as_str().unwrap().to_owned();
    let first = text(setting.post("/api/ui", &ask("How?", "submit-message", None)).await).await;
    assert_eq!(answer_id(&first), "answer-u1");
    let second =
        text(setting.post("/api/ui", &ask("How?", "regenerate-message", Some("answer-u1"))).await).await;
    assert!(second.contains("Two."), "{second}");
    let third = ask("How?", "regenerate-message", Some(&answer_id(&second)));
    assert!(text(setting.post("/api/ui", &third).await).await.contains("Three."));
    let edited = text(setting.post("/api/ui", &ask("Why?", "submit-message", Some("u1"))).await).await;
    assert!(edited.contains("Four."), "{edited}");
    let read = json_of(setting.get("/api/conversations/c1").await).await;
    let texts: Vec<_> = read["messages"].as_array().unwrap().iter().map(|message| &message["text"]).collect();
    assert_eq!(texts, ["Why?", "Four."]);
}
