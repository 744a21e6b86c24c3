//! Failures have their kind, and show no secret.

mod model;

use std::time::Duration;

use adapter_tests::assert_kinds;
use advisor_core::{ChatOptions, ChatRequest, ErrorKind, Message, ResponseFormat};
use advisor_testkit::{ReplayServer, answer_of};
use model_rig::RigModel;
use rig_core::providers::openai::OpenAI;

#[tokio::test]
async fn statuses_have_their_kinds() {
    assert_kinds(model::ask, ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(7)) }).await;
}

#[test]
fn model_shows_no_key() {
    let model = RigModel::new(OpenAI::new(adapter_tests::KEY).chat("m"));
    let model = model.with_secrets([adapter_tests::KEY.to_owned()]);
    assert_eq!(format!("{model:?}"), "RigModel { model: Some(\"m\"), .. }");
}

#[tokio::test]
async fn options_without_a_field_are_errors() {
    let server = ReplayServer::start([]).await.expect("a port");
    let model = model::ask(&server.url());
    for options in [
        ChatOptions { seed: Some(-1), ..ChatOptions::default() },
        ChatOptions { response_format: Some(ResponseFormat::JsonObject), ..ChatOptions::default() },
    ] {
        let request = ChatRequest { options, ..ChatRequest::new(Message::user("Hello")) };
        let error = answer_of(&model, request).await.expect_err("no field");
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error:?}");
    }
    assert!(server.requests().is_empty());
}
