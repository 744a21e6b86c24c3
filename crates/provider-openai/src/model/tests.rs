//! Tests of `model`.

use advisor_core::{ErrorKind, Message};

use super::*;

fn from(vars: &[(&str, &str)]) -> Result<OpenAiModel> {
    let value =
        |name: &str| vars.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    Ok(OpenAiModel::unnamed().with_env_settings(VARIABLES.read_required(value)?))
}

#[test]
fn environment_configures_the_model() {
    let all = from(&[
        ("OPENAI_API_KEY", " sk-1\n"),
        ("OPENAI_BASE_URL", "http://localhost:11434/v1"),
        ("OPENAI_MODEL", "qwen3"),
    ])
    .expect("a model");
    let (call, ..) = all.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    assert_eq!(call.uri.to_string(), "http://localhost:11434/v1/chat/completions");
    assert_eq!(call.headers.get("authorization").and_then(|value| value.to_str().ok()), Some("Bearer sk-1"));
    assert!(String::from_utf8_lossy(&call.body).contains(r#""model":"qwen3""#));
    assert_eq!(*all.settings.profile, Profile::ollama());

    let key_only =
        from(&[("OPENAI_API_KEY", "sk-1"), ("OPENAI_BASE_URL", ""), ("OPENAI_MODEL", "m")]).expect("a model");
    let (call, ..) = key_only.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    assert_eq!(call.uri.to_string(), "https://api.openai.com/v1/chat/completions");
    assert_eq!(*key_only.settings.profile, Profile::openai());

    let local = from(&[("OPENAI_BASE_URL", "http://localhost:8080"), ("OPENAI_MODEL", "m")]).expect("no key");
    let (call, ..) = local.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    assert!(!call.headers.contains_key("authorization"));
}

#[test]
fn missing_environment_variable_is_reported() {
    for nothing in [&[][..], &[("OPENAI_API_KEY", " ")], &[("OPENAI_MODEL", "m")]] {
        let error = from(nothing).expect_err("neither a key nor a server");
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
    }
    let nameless = from(&[("OPENAI_API_KEY", "sk-1")]).expect("a model");
    let error = nameless.call(&ChatRequest::new(Message::user("x"))).expect_err("no model is named");
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("OPENAI_MODEL"), "{error}");
}

#[test]
fn given_profile_stays_inferred_profile_follows_server() {
    let groq = "https://api.groq.com/openai/v1";
    let inferred = OpenAiModel::new("m").with_base_url(groq);
    assert_eq!(*inferred.settings.profile, Profile::groq());
    assert_eq!(inferred.name(), "groq");
    assert_eq!(*inferred.with_base_url("http://127.0.0.1:8080").settings.profile, Profile::compatible());
    let given = OpenAiModel::new("m").with_profile(Profile::vllm()).with_base_url(groq);
    assert_eq!(*given.settings.profile, Profile::vllm());
}

#[test]
fn endpoint_and_key_follow_the_profile() {
    let request = ChatRequest::new(Message::user("x"));
    let at = |base_url: &str, profile: Profile| {
        let model =
            OpenAiModel::new("my gpt").with_api_key("k").with_profile(profile).with_base_url(base_url);
        let (call, ..) = model.call(&request).expect("a call");
        (call.uri.to_string(), call.headers.contains_key("api-key"))
    };
    let plain = at("https://x.example/v1", Profile::compatible());
    assert_eq!(plain, ("https://x.example/v1/chat/completions".to_owned(), false));
    let azure = at("https://r.openai.azure.com", Profile::azure_deployment("2024-10-21"));
    let path = "openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21";
    assert_eq!(azure, (format!("https://r.openai.azure.com/{path}"), true));
    let model = OpenAiModel::new("m").with_api_key("k").with_base_url("https://r.openai.azure.com/openai/v1");
    assert!(model.call(&request).expect("a call").0.headers.contains_key("api-key"));
}

#[test]
fn law_r3_debug_shows_where_and_not_with_what() {
    let model = OpenAiModel::new("gpt")
        .with_base_url("https://canary:canary@host.example:8443/canary?key=canary")
        .with_api_key("canary")
        .with_header("x", "canary");
    let shown = format!("{model:?}");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("gpt") && shown.contains("host.example:8443"), "{shown}");
}
