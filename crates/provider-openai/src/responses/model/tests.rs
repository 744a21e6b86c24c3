//! Tests of `responses::model`.

use advisor_core::{ChatOptions, ErrorKind, Message};
use serde_json::json;

use super::*;

fn from(vars: &[(&str, &str)]) -> Result<OpenAiResponsesModel> {
    let value =
        |name: &str| vars.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    Ok(OpenAiResponsesModel::unnamed().with_env_settings(VARIABLES.read_required(value)?))
}

#[test]
fn environment_configures_the_model() {
    let model = from(&[
        ("OPENAI_API_KEY", "sk-example"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"),
        ("OPENAI_MODEL", "gpt-5"),
    ])
    .expect("a model");
    assert_eq!(model.model_name(), Some("gpt-5"));
    let (call, format) = model.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    assert_eq!(call.uri.to_string(), "http://127.0.0.1:8080/v1/responses");
    assert_eq!(format, "openai-responses@127.0.0.1");
    let error = from(&[]).expect_err("no key");
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

#[test]
fn model_needs_a_name() {
    let unnamed = from(&[("OPENAI_API_KEY", "k")]).expect("a model");
    let request = ChatRequest::new(Message::user("x"));
    assert_eq!(unnamed.call(&request).expect_err("no name").kind(), ErrorKind::Configuration);
    let named =
        ChatRequest { options: ChatOptions { model: Some("m".into()), ..ChatOptions::default() }, ..request };
    let (call, _) = unnamed.call(&named).expect("a call");
    assert_eq!(call.uri.to_string(), "https://api.openai.com/v1/responses");
}

#[test]
fn law_r3_debug_of_responses_model_hides_secrets() {
    let model = OpenAiResponsesModel::new("m")
        .with_base_url("http://127.0.0.1:8080/canary/v1")
        .with_api_key("sk-canary")
        .with_header("x-proxy", "canary");
    let shown = format!("{model:?}");
    assert!(shown.contains("127.0.0.1") && !shown.contains("canary"), "{shown}");
}

/// The tool of an MCP server may have a token.
#[test]
fn law_r3_debug_shows_no_tool_of_the_server() {
    let tool = json!({"type": "mcp", "server_label": "wiki", "authorization": "canary"});
    let model = OpenAiResponsesModel::new("m").with_server_tools([tool]);
    assert!(!format!("{model:?} {model:#?}").contains("canary"));
}
