//! What clients of OpenAI and Anthropic find beside their turns: models, absent routes, and words about a body. Whole answers
//! with citations.

use advisor_core::{Citation, Delta, DeltaKind};
use advisor_testkit::Answer;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::setting::{json_of, setting, told};

async fn message_of(path: &str, body: &Value, status: StatusCode) -> String {
    told(setting([]).post(path, body).await, status).await
}

#[tokio::test]
async fn model_has_the_fields_of_both_apis() {
    let models = json_of(setting([]).get("/v1/models").await).await;
    let [model] = models["data"].as_array().unwrap().as_slice() else { panic!("{models}") };
    assert_eq!(
        (&models["object"], &models["has_more"], &models["last_id"]),
        (&json!("list"), &json!(false), &json!("chain"))
    );
    assert_eq!((&model["object"], &model["owned_by"]), (&json!("model"), &json!("advisor-chain")));
    assert_eq!((&model["type"], &model["display_name"]), (&json!("model"), &json!("chain")));
    assert_eq!(&json_of(setting([]).get("/v1/models/chain").await).await, model);
    let unknown = setting([]).get("/v1/models/gpt").await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    assert_eq!(json_of(unknown).await["error"]["code"], "model_not_found");
}

#[tokio::test]
async fn absent_routes_of_the_apis_say_what_to_do() {
    for (path, words) in [
        ("/v1/messages/count_tokens", "count in the client"),
        ("/v1/conversations", "/api/conversations"),
        ("/v1/responses/r1", "/api/conversations"),
        ("/v1/other", "/openapi.json"),
    ] {
        let message = message_of(path, &json!({}), StatusCode::NOT_FOUND).await;
        assert!(message.contains(words), "{path}: {message}");
    }
}

#[tokio::test]
async fn body_of_another_form_is_told_in_plain_words() {
    let said = |message: Value| json!({"messages": [message]});
    for (path, body, words) in [
        ("/v1/chat/completions", json!({}), "`messages` is missing"),
        ("/v1/chat/completions", json!({"messages": "Hi"}), "`messages` is a text, and not a list"),
        ("/v1/chat/completions", said(json!({"content": "Hi"})), "`messages[0].role` is missing"),
        (
            "/v1/messages",
            said(json!({"role": "user", "content": 5})),
            "`messages[0].content`: it is a text, or a list of parts",
        ),
        ("/v1/responses", json!({"input": 5}), "`input`: it is a text, or a list of messages"),
        ("/v1/responses", json!({}), "`input` is missing"),
        ("/v1/responses", Value::Null, "the body is null, and not an object"),
        (
            "/v1/messages",
            json!({"messages": [], "stream": 5}),
            "a setting is a number, and not true or false",
        ),
        ("/v1/responses", json!({"prompt": {"id": "p1"}}), "`prompt` is not supported"),
    ] {
        let message = message_of(path, &body, StatusCode::BAD_REQUEST).await;
        assert!(message.starts_with(words), "{path} {body}: {message}");
    }
}

#[tokio::test]
async fn whole_answers_have_citations() {
    let mut citation = Citation::default();
    (citation.url, citation.title) = (Some("https://example.org/rain".into()), Some("Rain".into()));
    let source = Delta::from(DeltaKind::Citation(Box::new(citation)));
    let setting = || setting([Answer::new().text("It rains.").delta(source.clone()).done()]);
    let body = json!({"messages": [{"role": "user", "content": "Hi"}], "input": "Hi", "max_tokens": 9});
    let place = json!({"url": "https://example.org/rain", "title": "Rain", "start_index": 0, "end_index": 9});
    let chat = json_of(setting().post("/v1/chat/completions", &body).await).await;
    let annotation = &chat["choices"][0]["message"]["annotations"][0];
    assert_eq!(annotation, &json!({"type": "url_citation", "url_citation": place}));
    let response = json_of(setting().post("/v1/responses", &body).await).await;
    assert_eq!(response["output"][0]["content"][0]["annotations"][0]["end_index"], 9, "{response}");
    let message = json_of(setting().post("/v1/messages", &body).await).await;
    let [block] = message["content"].as_array().unwrap().as_slice() else { panic!("{message}") };
    assert_eq!((&block["text"], &block["citations"][0]["title"]), (&json!("It rains."), &json!("Rain")));
}
