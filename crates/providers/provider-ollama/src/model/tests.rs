//! Tests of `model`.

use advisor_core::{ChatOptions, ErrorKind, Message};

use super::*;

fn from(vars: &[(&str, &str)]) -> Result<OllamaModel> {
    let value =
        |name: &str| vars.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    OllamaModel::from_settings(VARIABLES.read(value))
}

fn call(model: &OllamaModel) -> Call {
    model.call(&ChatRequest::new(Message::user("x"))).expect("a call")
}

#[test]
fn environment_names_host_key_and_model() {
    let all = [
        ("OLLAMA_HOST", "10.0.0.7:8080"),
        ("OLLAMA_API_KEY", " key-0123456789\n"),
        ("OLLAMA_MODEL", "qwen3"),
    ];
    let call_of_all = call(&from(&all).expect("a model"));
    assert_eq!(call_of_all.uri.to_string(), "http://10.0.0.7:8080/api/chat");
    let header = call_of_all.headers.get("authorization").and_then(|value| value.to_str().ok());
    assert_eq!(header, Some("Bearer key-0123456789"));
    assert!(String::from_utf8_lossy(&call_of_all.body).contains(r#""model":"qwen3""#));

    let nothing = from(&[("OLLAMA_HOST", " ")]).expect("a local server needs nothing");
    let named = ChatRequest {
        options: ChatOptions { model: Some("m".into()), ..ChatOptions::default() },
        ..ChatRequest::new(Message::user("x"))
    };
    let local = nothing.call(&named).expect("a call");
    assert_eq!(local.uri.to_string(), "http://127.0.0.1:11434/api/chat");
    assert!(local.headers.get("authorization").is_none());
    let nameless = nothing.call(&ChatRequest::new(Message::user("x"))).expect_err("no model is named");
    assert_eq!(nameless.kind(), ErrorKind::Configuration);
    assert!(nameless.to_string().contains("OLLAMA_MODEL"), "{nameless}");

    let unusable = from(&[("OLLAMA_HOST", "a host:8080")]).expect_err("no host");
    assert_eq!(unusable.kind(), ErrorKind::Configuration);
}

#[test]
fn base_url_may_have_a_path() {
    let uri = |base_url: &str| call(&OllamaModel::new("m").with_base_url(base_url)).uri.to_string();
    assert_eq!(uri("https://models.example/ollama/"), "https://models.example/ollama/api/chat");
    assert_eq!(uri("https://models.example/api/chat"), "https://models.example/api/chat");
}

#[test]
fn law_r3_debug_shows_no_key() {
    let model =
        OllamaModel::new("m").with_api_key("canary-0123456789").with_header("x-a", "canary-header-0123");
    let shown = format!("{model:?}");
    assert!(shown.contains("127.0.0.1:11434") && !shown.contains("canary"), "{shown}");
}
