//! Failures have their kind, and show no secret.

mod model;

use std::sync::Arc;
use std::time::Duration;

use adapter_tests::{assert_kinds, failure_of};
use advisor_core::{ChatModel, ChatOptions, ChatRequest, ErrorKind, Message};
use advisor_testkit::{ReplayServer, Reply, answer_of};
use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::middleware::ReqwestService;
use model_async_openai::AsyncOpenAiModel;
use serde_json::json;

#[tokio::test]
async fn statuses_have_their_kinds() {
    assert_kinds(model::ask, ErrorKind::RateLimited { retry_after: None }).await;
}

#[tokio::test]
async fn refusals_that_the_client_cannot_read_have_their_kinds() {
    let html = "<h1>Not allowed</h1>";
    for (reply, kind) in [
        // OpenRouter's codes are numbers.
        (Reply::json(401, json!({"error": {"message": "No", "code": 401}})), ErrorKind::Authentication),
        (
            Reply::json(429, json!({"error": {"message": "No", "code": 429}})),
            ErrorKind::RateLimited { retry_after: None },
        ),
        (Reply::json(400, json!({"detail": "unknown field"})), ErrorKind::InvalidRequest),
        (Reply::html(403, html), ErrorKind::InvalidRequest),
        (Reply::html(502, html), ErrorKind::Provider { status: Some(502) }),
    ] {
        let error = failure_of(model::ask, reply).await;
        assert_eq!(error.kind(), kind, "{error:?}");
    }
}

#[tokio::test]
async fn slow_server_is_a_timeout() {
    let server = ReplayServer::start([Reply::hang()]).await.expect("a port");
    let http = reqwest::Client::builder().timeout(Duration::from_millis(50)).build().expect("a client");
    let config = OpenAIConfig::new().with_api_base(server.url()).with_api_key("none");
    let client = Client::with_config(config).with_http_service(ReqwestService::new(http));
    let model: Arc<dyn ChatModel> = Arc::new(AsyncOpenAiModel::new(client, "m"));
    let error = answer_of(&model, ChatRequest::new(Message::user("Hello"))).await.expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
}

#[test]
fn model_shows_no_key() {
    let config = OpenAIConfig::new().with_api_key("canary-key-0123456789");
    let model = AsyncOpenAiModel::new(Client::with_config(config), "m");
    assert_eq!(format!("{model:?}"), "AsyncOpenAiModel { model: \"m\", .. }");
}

#[cfg(not(feature = "byot"))]
#[tokio::test]
async fn options_without_a_field_are_errors() {
    let server = ReplayServer::start([]).await.expect("a port");
    let options = ChatOptions::default().with_extra("top_k", 4);
    let request = ChatRequest { options, ..ChatRequest::new(Message::user("Hello")) };
    let error = answer_of(&model::ask(&server.url()), request).await.expect_err("no field");
    assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    assert!(server.requests().is_empty());
}

#[cfg(feature = "byot")]
#[tokio::test]
async fn extra_fields_are_sent_and_override() {
    let options = ChatOptions::default().with_extra("top_k", 4).with_extra("max_completion_tokens", 9);
    let fields = [("/top_k", json!(4)), ("/max_completion_tokens", json!(9))];
    adapter_tests::assert_options(model::ask, options, &fields).await;
}
