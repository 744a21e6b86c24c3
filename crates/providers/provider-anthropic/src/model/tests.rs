//! Tests of `model`.

use super::*;

const KEY: &str = "sk-ant-canary-0123456789";

fn vars(pairs: &'static [(&'static str, &'static str)]) -> Result<AnthropicModel> {
    let find =
        |name: &str| pairs.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    VARIABLES.read_required(find).map(AnthropicModel::from_settings)
}

fn headers(model: &AnthropicModel) -> http::HeaderMap {
    model.server.call(PATH, &[], Bytes::new()).expect("a call").headers
}

fn address(model: &AnthropicModel) -> String {
    model.server.call(PATH, &[], Bytes::new()).expect("a call").uri.to_string()
}

#[test]
fn environment_gives_key_token_address_and_model() {
    let by_key =
        vars(&[("ANTHROPIC_API_KEY", " k1 "), ("ANTHROPIC_AUTH_TOKEN", "t1"), ("ANTHROPIC_MODEL", "m")])
            .expect("a model");
    assert_eq!(headers(&by_key)["x-api-key"], "k1");
    assert_eq!(headers(&by_key).get("authorization"), None);
    assert_eq!((by_key.model_name(), by_key.name()), (Some("m"), "anthropic"));
    assert_eq!(address(&by_key), "https://api.anthropic.com/v1/messages");
    let by_token = vars(&[("ANTHROPIC_AUTH_TOKEN", "t1"), ("ANTHROPIC_API_KEY", "")]).expect("a model");
    assert_eq!(headers(&by_token)["authorization"], "Bearer t1");
    assert_eq!(headers(&by_token).get("x-api-key"), None);
    let without_key = vars(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:1/v1/")]).expect("a model");
    assert_eq!(address(&without_key), "http://127.0.0.1:1/v1/messages");
    assert!(vars(&[("ANTHROPIC_MODEL", "m")]).is_err());
}

#[test]
fn headers_name_version_and_token() {
    let model = AnthropicModel::new("m").with_api_key(KEY);
    assert_eq!(headers(&model)["anthropic-version"], "2023-06-01");
    let other = model.with_header("anthropic-version", "2024-01-01").with_auth_token("t");
    assert_eq!(headers(&other)["anthropic-version"], "2024-01-01");
    assert_eq!(
        (&headers(&other)["authorization"], headers(&other).get("x-api-key")),
        (&"Bearer t".parse().expect("a value"), None)
    );
}

#[test]
fn schema_is_enforced_at_anthropic() {
    let model = AnthropicModel::new("m");
    assert_eq!(model.schema_support(), SchemaSupport::JsonSchema);
    let elsewhere = model.with_base_url("http://127.0.0.1:1");
    assert_eq!(elsewhere.schema_support(), SchemaSupport::None);
}

#[test]
fn law_r3_debug_of_anthropic_model_shows_no_key() {
    let model = AnthropicModel::new("m").with_base_url(format!("http://127.0.0.1:1/{KEY}")).with_api_key(KEY);
    let shown = format!("{model:?} {:?}", model.clone().with_header("x-\n", KEY).validate());
    assert!(!shown.contains("canary") && shown.contains("127.0.0.1:1"), "{shown}");
}

#[tokio::test]
async fn request_without_a_model_is_refused() {
    let model = vars(&[("ANTHROPIC_API_KEY", "k")]).expect("a model");
    let error =
        model.stream(ChatRequest::new(advisor_core::Message::user("Hi"))).await.expect_err("no model");
    assert_eq!(error.kind(), advisor_core::ErrorKind::Configuration);
}
