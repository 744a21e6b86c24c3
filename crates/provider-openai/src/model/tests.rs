use advisor_core::{ErrorKind, Message};

use super::*;

fn from(vars: &[(&str, &str)]) -> Result<OpenAiModel> {
    OpenAiModel::from_vars(|name| {
        vars.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn the_environment_says_what_to_ask() {
    let all = from(&[
        ("OPENAI_API_KEY", " sk-1\n"),
        ("OPENAI_BASE_URL", "http://localhost:11434/v1"),
        ("OPENAI_MODEL", "qwen3"),
    ])
    .expect("a model");
    let (call, _, _) = all.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    assert_eq!(call.uri.to_string(), "http://localhost:11434/v1/chat/completions");
    assert_eq!(call.headers.get("authorization").and_then(|value| value.to_str().ok()), Some("Bearer sk-1"));
    assert!(String::from_utf8_lossy(&call.body.concat()).contains(r#""model":"qwen3""#));
    assert_eq!(all.profile(), &Profile::ollama());

    let key_only =
        from(&[("OPENAI_API_KEY", "sk-1"), ("OPENAI_BASE_URL", ""), ("OPENAI_MODEL", "m")]).expect("a model");
    let (call, _, _) = key_only.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    assert_eq!(call.uri.to_string(), "https://api.openai.com/v1/chat/completions");
    assert_eq!(key_only.profile(), &Profile::openai());

    let local = from(&[("OPENAI_BASE_URL", "http://localhost:8080")]).expect("a server that needs no key");
    assert!(local.api_key.is_none());
}

#[test]
fn what_the_environment_does_not_say_is_told() {
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
    assert_eq!(inferred.profile(), &Profile::groq());
    assert_eq!(inferred.name(), "groq");
    assert_eq!(inferred.with_base_url("http://127.0.0.1:8080").profile(), &Profile::compatible());
    let given = OpenAiModel::new("m").with_profile(Profile::vllm()).with_base_url(groq);
    assert_eq!(given.profile(), &Profile::vllm());
}

#[test]
fn headers_replace_their_namesakes() {
    let model =
        OpenAiModel::new("m").with_header("X-A", "one").with_header("x-a", "two").with_header("x-b", "three");
    let (call, _, _) = model.call(&ChatRequest::new(Message::user("x"))).expect("a call");
    let values = |name: &str| {
        call.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>()
    };
    assert_eq!((values("x-a"), values("x-b")), (vec!["two"], vec!["three"]));
}

/// The first request creates the redaction, and clones share it.
#[test]
fn law_r3_changed_model_copy_knows_its_own_secrets() {
    let model = OpenAiModel::new("m").with_api_key("sk-first-key-0123456789");
    let known = |model: &OpenAiModel| model.redaction.get().is_some();
    model.redaction.get_or_init(|| secrets::of(&model));
    assert!(known(&model.clone()) && known(&model.clone().with_retries(Backoff::none())));
    assert!(!known(&model.clone().with_api_key("sk-second-key-0123456789")));
    assert!(!known(&model.clone().with_header("x-key", "canary-header-0123")));
    assert!(!known(&model.with_base_url("https://host.example/canary-part-0123")));
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

#[test]
fn d17_base_url_and_header_contents_are_secret() {
    let model = OpenAiModel::new("m")
        .with_base_url("https://gateway.example/v1/acct0123456789abcdef0/chat?key=abc%2Fdef%2B123456789&api-version=2024-10-21")
        .with_api_key("key-0123456789")
        .with_header("Authorization", "Token tok-0123456789");
    let words = "POST /v1/acct0123456789abcdef0/chat?key=abc%2Fdef%2B123456789&api-version=2024-10-21 abc/def+123456789 \
        key-0123456789 tok-0123456789";
    let shown = secrets::of(&model).show(&words.into(), 2048).to_string();
    assert_eq!(
        shown,
        "POST /v1/[secret]/chat?key=[secret]&api-version=2024-10-21 [secret] [secret] [secret]"
    );
}

#[test]
fn law_r3_possible_keys_in_headers_and_url_are_secret() {
    let shown = |model: OpenAiModel, words: &str| secrets::of(&model).show(&words.into(), 2048).to_string();
    let at = |url: &str| OpenAiModel::new("m").with_base_url(format!("https://gateway.example/{url}"));
    let with = |value: &str| at("v1").with_header("x", value.to_owned());
    let basic = |padding: &str| with(&format!("basic Ym9iOmNvcnJlY3Rob3JzZWJhdHRlcnk{padding}"));
    for (model, words) in [
        (at("v1?canarywithoutequals"), "canarywithoutequals"),
        (at("v1?canary%2Fnoequals&a=b"), "canary/noequals"),
        (at("canarypart77/v1"), "canarypart77"),
        (at("v1/models/m/canarypathpartwithoutanydigit"), "canarypathpartwithoutanydigit"),
        (basic("="), "bob:correcthorsebattery"),
        (basic(""), "correcthorsebattery"),
        (with("a=b; session=canarysession0123; theme=dark"), "canarysession0123"),
        (with("Custom id=7, token=\"canarysession0123\""), "canarysession0123"),
        (with("Custom one canarysession0123"), "canarysession0123"),
        (with("one,canarysession0123=="), "canarysession0123"),
    ] {
        let text = shown(model, &format!("no route for {words} here"));
        assert!(text == "no route for [secret] here", "{words}: {text}");
    }
    // Names and usual words stay readable.
    let usual = at("openai/deployments/gpt-4o-mini-2024/chat/completions/compatible-mode/v1beta/organizations?api-version=2024-10-21-preview")
        .with_header("accept", "text/event-stream, application/json; refresh_token_name=1")
        .with_header("x-title", "My authentication helper");
    let words = "gpt-4o-mini-2024 refused at /openai/deployments: chat completions, compatible-mode, organizations, \
        application/json, text/event-stream, authentication, refresh_token_name, 2024-10-21-preview";
    assert_eq!(shown(usual, words), words);
}

#[test]
fn ordinary_words_in_headers_and_url_stay_readable() {
    let shown = |model: &OpenAiModel, words: &str| secrets::of(model).show(&words.into(), 2048).to_string();
    let at = |url: &str| OpenAiModel::new("m").with_base_url(format!("https://gateway.example/{url}"));
    for (model, words) in [
        (at("v1").with_header("X-Title", "Documentation Assistant"), "Bad request; see the documentation."),
        (at("v1").with_header("x-title", "Conversation starter"), "the conversation is too long"),
        (at("v1").with_header("X-Title", "My Assistant4Everyone"), "Assistant4Everyone is unknown"),
        (at("v1").with_header("User-Agent", "shop assistant/2024.1"), "assistant/2024.1 is too old"),
        (at("v1").with_header("X-Team", "handled by Customer-Support"), "customer-support is over its quota"),
        (
            at("v1/projects/project-0123456789/locations/europe-west4/endpoints"),
            "no project-0123456789 in europe-west4",
        ),
        (at("regions/australia-southeast2/v1"), "nothing in australia-southeast2"),
        (at("hf-inference/v1"), "hf-inference does not support m"),
        (at("transcriptions/v1"), "no route /audio/transcriptions"),
        (at("customer-support/v1"), "Customer-Support is over its quota"),
    ] {
        assert_eq!(shown(&model, words), words);
    }
    for (model, words) in [
        (at("v1").with_header("X-Title", "Documentation Assistant"), "documentation assistant"),
        (at("v1").with_header("X-Team", "a, canarySupport"), "canarySupport"),
        (at("CanaryMixedUp/v1"), "CanaryMixedUp"),
        (at("canary-with-no-digits/v1"), "canary-with-no-digits"),
        (at("canary.with~dots/v1"), "canary.with~dots"),
        (at("europe-west4/v1"), "europe-west4"),
    ] {
        assert_eq!(shown(&model, &format!("no {words} here")), "no [secret] here", "{words}");
    }
}

#[test]
fn d17_key_used_as_header_name_is_hidden() {
    let mixed_up = OpenAiModel::new("m").with_header("Bearer sk-0123456789abcdef", "authorization");
    let error = mixed_up.call(&ChatRequest::new(Message::user("x"))).expect_err("no such name");
    assert_eq!(error.to_string(), "`Bearer [secret]` is no name for a header");
}
