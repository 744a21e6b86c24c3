//! Tests of `model`.

use advisor_core::{ErrorKind, Message};

use super::*;

fn from(vars: &[(&str, &str)]) -> Result<GeminiModel> {
    let value =
        |name: &str| vars.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    Ok(GeminiModel::unnamed().with_env_settings(VARIABLES.read_required(value)?))
}

fn uri(model: &GeminiModel) -> String {
    model.call(&ChatRequest::new(Message::user("x"))).expect("a call").0.uri.to_string()
}

#[test]
fn the_environment_names_key_server_and_model() {
    let all = from(&[
        ("GEMINI_API_KEY", " key-1\n"),
        ("GOOGLE_API_KEY", "key-2"),
        ("GOOGLE_GEMINI_BASE_URL", "http://localhost:8080/"),
        ("GEMINI_MODEL", "gemini-3-pro"),
    ])
    .expect("a model");
    let (call, ..) = all.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    let expected = "http://localhost:8080/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse";
    assert_eq!(call.uri.to_string(), expected);
    assert_eq!(call.headers.get("x-goog-api-key").and_then(|value| value.to_str().ok()), Some("key-1"));
    assert!(call.headers.get("authorization").is_none());

    let other = from(&[("GEMINI_API_KEY", ""), ("GOOGLE_API_KEY", "key-2"), ("GEMINI_MODEL", "m")]);
    let (call, ..) = other.expect("a model").call(&ChatRequest::new(Message::user("x"))).expect("a call");
    assert_eq!(call.headers.get("x-goog-api-key").and_then(|value| value.to_str().ok()), Some("key-2"));

    for nothing in [&[][..], &[("GEMINI_API_KEY", " ")], &[("GEMINI_MODEL", "m")]] {
        let error = from(nothing).expect_err("neither a key nor a server");
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("GEMINI_API_KEY"), "{error}");
    }
    let nameless = from(&[("GEMINI_API_KEY", "key-1")]).expect("a model");
    let error = nameless.call(&ChatRequest::new(Message::user("x"))).expect_err("no model is named");
    assert!(error.to_string().contains("GEMINI_MODEL"), "{error}");
}

#[test]
fn model_is_a_segment_of_the_path_or_a_path() {
    let base = "https://generativelanguage.googleapis.com/v1beta";
    for (model, expected) in [
        (GeminiModel::new("gemini-2.5-flash"), "models/gemini-2.5-flash:streamGenerateContent?alt=sse"),
        (GeminiModel::new("models/g").with_streaming(false), "models/g:generateContent"),
        (GeminiModel::new("tunedModels/mine"), "tunedModels/mine:streamGenerateContent?alt=sse"),
        (GeminiModel::new("a?b#c d:e%2F"), "models/a%3Fb%23c%20d%3Ae%252F:streamGenerateContent?alt=sse"),
    ] {
        assert_eq!(uri(&model), format!("{base}/{expected}"));
    }
    for name in ["", "a/../b", "/etc", "models/", "."] {
        let request = ChatRequest::new(Message::user("x"));
        let error = GeminiModel::new(name).call(&request).expect_err("no name");
        assert_eq!(error.kind(), ErrorKind::Configuration, "{name}");
    }
}

#[test]
fn vertex_ai_has_another_path_and_header() {
    let base =
        "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google";
    let model = GeminiModel::new("gemini-2.5-flash")
        .with_base_url(base)
        .at_vertex_ai()
        .with_api_key("token-0123456789");
    assert_eq!(uri(&model), format!("{base}/models/gemini-2.5-flash:streamGenerateContent?alt=sse"));
    let (call, ..) = model.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    let header = call.headers.get("authorization").and_then(|value| value.to_str().ok());
    assert_eq!((header, model.name()), (Some("Bearer token-0123456789"), "vertex-ai"));
}

#[test]
fn law_r3_debug_shows_where_and_not_with_what() {
    let model = GeminiModel::new("gemini")
        .with_base_url("https://host.example:8443/canary?key=canary")
        .with_api_key("canary")
        .with_header("x", "canary");
    let shown = format!("{model:?}");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("gemini") && shown.contains("host.example:8443"), "{shown}");
}

#[test]
fn schema_support_follows_the_name() {
    for (model, is_early) in [
        ("gemini-2.5-flash", true),
        ("models/Gemini-1.5-pro", true),
        ("gemma-3-27b-it", true),
        ("gemini-3-flash-preview", false),
        ("gemini-flash-latest", false),
    ] {
        let expected =
            if is_early { SchemaSupport::JsonSchemaWithoutTools } else { SchemaSupport::JsonSchema };
        assert_eq!(GeminiModel::new(model).schema_support(), expected, "{model}");
    }
}

#[test]
fn data_is_named_after_the_service_it_came_from() {
    for (host, format) in [
        ("generativelanguage.googleapis.com", "gemini"),
        ("Generativelanguage.Googleapis.com", "gemini"),
        ("aiplatform.googleapis.com", "gemini@aiplatform.googleapis.com"),
        ("us-east1-aiplatform.googleapis.com", "gemini@aiplatform.googleapis.com"),
        ("127.0.0.1", "gemini@127.0.0.1"),
    ] {
        assert_eq!(format_of(host), format, "{host}");
    }
}
