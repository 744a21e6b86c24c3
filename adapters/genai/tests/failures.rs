//! Failures have their kind, and show no secret.

mod model;

use std::sync::Arc;
use std::time::Duration;

use adapter_tests::assert_kinds;
use advisor_core::{ChatModel, ChatOptions, ChatRequest, ErrorKind, Message, text_with_sources};
use advisor_test_support::ResponsesTranscript;
use advisor_testkit::{ReplayServer, Reply, answer_of};
use genai::Client;
use genai::adapter::AdapterKind;
use genai::chat::ChatOptions as GenaiOptions;
use genai::resolver::{AuthData, Endpoint};
use genai::{ModelIden, ServiceTarget};
use model_genai::GenaiModel;
use serde_json::json;

#[tokio::test]
async fn statuses_have_their_kinds() {
    assert_kinds(model::ask, ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(7)) }).await;
}

#[tokio::test]
async fn slow_server_is_a_timeout() {
    let server = ReplayServer::start([Reply::hang()]).await.expect("a port");
    let options = GenaiOptions::default().with_stream_header_timeout(Duration::from_millis(50));
    let client = Client::builder().with_chat_options(options).build().expect("a client");
    let target = ServiceTarget {
        endpoint: Endpoint::from_owned(format!("{}/", server.url())),
        auth: AuthData::from_single("none"),
        model: ModelIden::new(AdapterKind::OpenAI, "m"),
    };
    let model: Arc<dyn ChatModel> = Arc::new(GenaiModel::new(client, target));
    let error = answer_of(&model, ChatRequest::new(Message::user("Hello"))).await.expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
}

/// The client reports such an answer as malformed.
#[tokio::test]
async fn failed_answer_of_responses_is_no_malformed_one() {
    let failure = json!({"code": "server_error", "message": "the machine is on fire"});
    let response = json!({"id": "resp_1", "model": "m", "status": "failed", "output": [], "error": failure});
    let failed = json!({"type": "response.failed", "response": response});
    let body = ResponsesTranscript::new("m").text("So").event(&failed).without_end();
    let ask = |url: &str| -> Arc<dyn ChatModel> {
        Arc::new(model::model_of(url, AdapterKind::OpenAIResp, "example-model"))
    };
    let error = adapter_tests::failure_of(ask, Reply::sse(body)).await;
    assert_eq!(error.kind(), ErrorKind::Provider { status: None }, "{error:?}");
    assert!(text_with_sources(&error).contains("the machine is on fire"), "{error:?}");
    assert_eq!(error.partial().map(|partial| partial.text()).as_deref(), Some("So"));
}

#[test]
fn model_shows_no_key() {
    let model = model::model("http://127.0.0.1:1");
    assert_eq!(format!("{model:?}"), "GenaiModel { model: \"example-model\", .. }");
}

#[tokio::test]
async fn options_without_a_field_are_errors() {
    let server = ReplayServer::start([]).await.expect("a port");
    let model = model::ask(&server.url());
    for options in [
        ChatOptions { seed: Some(-1), ..ChatOptions::default() },
        ChatOptions { parallel_tool_calls: Some(false), ..ChatOptions::default() },
    ] {
        let request = ChatRequest { options, ..ChatRequest::new(Message::user("Hello")) };
        let error = answer_of(&model, request).await.expect_err("no field");
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    }
    assert!(server.requests().is_empty());
}
