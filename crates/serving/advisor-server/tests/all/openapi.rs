//! The OpenAPI document: valid, complete, and true to what the server accepts and answers.

use std::collections::BTreeSet;

use advisor_core::{Error, ErrorKind};
use advisor_server::Inspector;
use advisor_testkit::Answer;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::setting::{Setting, json_of, post, setting, text, with_tokens};

/// One operation of the document.
struct Operation {
    method: Method,
    path: String,
    value: Value,
}

async fn document() -> Value {
    json_of(setting([]).get("/openapi.json").await).await
}

fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().unwrap().iter();
    let of_path = |(path, item): (&String, &Value)| {
        let operation = |(method, value): (&String, &Value)| Operation {
            method: method.to_uppercase().parse().unwrap(),
            path: path.clone(),
            value: value.clone(),
        };
        item.as_object().unwrap().iter().map(operation).collect::<Vec<_>>()
    };
    paths.flat_map(of_path).collect()
}

/// Returns the value behind a reference, or the value itself.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(path) => {
            document.pointer(path.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("no {path}"))
        }
        None => value,
    }
}

/// Checks a value by a schema of the document.
fn check(document: &Value, schema: &Value, value: &Value) {
    let mut schema = schema.clone();
    if let (Some(fields), components) = (schema.as_object_mut(), &document["components"]) {
        fields.insert("components".into(), components.clone());
    }
    let errors: Vec<_> = jsonschema::validator_for(&schema)
        .unwrap()
        .iter_errors(value)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{value} violates {}: {errors:?}", schema["$ref"]);
}

/// Checks that the document has this response of an operation, and that its body has the schema.
async fn check_response(document: &Value, operation: &Operation, response: Response<Body>) -> StatusCode {
    let (status, name) = (response.status(), format!("{} {}", operation.method, operation.path));
    let described = &operation.value["responses"][status.as_str()];
    assert!(described.is_object(), "{name} may answer {status}: {}", text(response).await);
    let described = resolved(document, described);
    for header in described["headers"].as_object().unwrap().keys() {
        assert!(
            ["retry-after", "x-should-retry"].contains(&header.as_str())
                || response.headers().contains_key(header),
            "{name} {status}: {header}"
        );
    }
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    let Some(kind) = kind else {
        assert!(described["content"].is_null(), "{name} {status} has content");
        return status;
    };
    let kind = kind.split(';').next().unwrap();
    let content = &described["content"][kind];
    assert!(content.is_object(), "{name} {status}: {kind}");
    let body = text(response).await;
    if kind == "application/json" && operation.path != "/openapi.json" {
        check(document, &content["schema"], &serde_json::from_str(&body).unwrap());
    }
    status
}

/// A server that has a conversation `c1` whose turn `turn-1` has a tool, and answers further turns.
async fn with_conversation() -> Setting {
    let call = Answer::new().text("Let me look.").call("t1", "weather", "{}").done();
    let setting = setting([call, Answer::from_text("Sunny."), Answer::from_text("Yes.")]);
    let setting = setting.with(|server| server.with_inspector(&Inspector::new()).unwrap());
    let body = json!({"message": "How is it?", "conversation": "c1", "turn": "turn-1"});
    text(setting.post("/api/chat", &body).await).await;
    setting
}

#[tokio::test]
async fn document_is_complete_in_itself() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = document().await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 50);
    for path in found {
        assert!(document.pointer(path.strip_prefix('#').unwrap()).is_some(), "{path}");
    }
    let operations = operations(&document);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let numbered = |name: &&String| name.ends_with(|last: char| last.is_ascii_digit());
    assert_eq!(schemas.keys().find(numbered), None, "two types have one name");
    let ids: BTreeSet<_> =
        operations.iter().map(|operation| operation.value["operationId"].as_str()).collect();
    assert_eq!(ids.len(), operations.len(), "operation ids are unique");
    for operation in &operations {
        let parameters = operation.value["parameters"].as_array().unwrap().iter();
        let in_path = parameters.filter(|parameter| resolved(&document, parameter)["in"] == "path").count();
        assert_eq!(in_path, operation.path.matches('{').count(), "{}", operation.path);
    }
}

/// A route that the description lacks would be found by nobody.
#[tokio::test]
async fn description_has_every_route_of_this_version() {
    const ROUTES: &str = include_str!("../../src/routes/mod.rs");
    let document = document().await;
    let described: BTreeSet<_> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let routes = ROUTES.split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    assert_eq!(routes.collect::<BTreeSet<_>>(), described);
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn every_route_answers_as_described() {
    let document = document().await;
    for operation in operations(&document) {
        let setting = with_conversation().await;
        let path =
            operation.path.replace("{id}", "c1").replace("{turn}", "turn-1").replace("{model}", "chain");
        let example = operation.value.pointer("/requestBody/content/application~1json");
        let request = Request::builder().method(operation.method.clone()).uri(path);
        let request = match example {
            Some(content) => {
                check(&document, &content["schema"], &content["example"]);
                let body = Body::from(content["example"].to_string());
                request.header("content-type", "application/json").body(body)
            }
            None => request.body(Body::empty()),
        };
        let status = check_response(&document, &operation, setting.send(request.unwrap()).await).await;
        assert!(status.is_success(), "{} {}: {status}", operation.method, operation.path);
    }
}

#[tokio::test]
async fn every_error_is_described() {
    let document = document().await;
    let operations = operations(&document);
    let get = |path: &str| {
        let mut found = operations.iter().filter(|operation| operation.method == Method::GET);
        found.find(|operation| operation.path == path).unwrap()
    };
    let failures = [
        ErrorKind::RateLimited { retry_after: None },
        ErrorKind::ConversationBusy,
        ErrorKind::ContextOverflow,
        ErrorKind::Store,
        ErrorKind::Timeout,
        ErrorKind::Connection,
        ErrorKind::Advisor,
        ErrorKind::TurnIdReused,
        ErrorKind::Cancelled,
    ];
    for operation in operations.iter().filter(|operation| operation.value["requestBody"].is_object()) {
        let example = &operation.value["requestBody"]["content"]["application/json"]["example"];
        for kind in failures {
            let setting = setting([Answer::refused(Error::new(kind, "canary"))]);
            check_response(&document, operation, setting.post(&operation.path, example).await).await;
        }
        // A turn whose beginning is no longer kept.
        let short = setting([Answer::from_text("Yes.")]).limited(|limits| limits.kept_chunks = 1);
        for _ in 0..2 {
            let request = post(&operation.path).header("idempotency-key", "k1");
            let response = short.send(request.body(Body::from(example.to_string())).unwrap()).await;
            check_response(&document, operation, response).await;
        }
        for body in ["{", "{}", "[]", "1"] {
            let request = post(&operation.path).body(Body::from(body)).unwrap();
            check_response(&document, operation, setting([]).send(request).await).await;
        }
    }
    // A turn that has failed before its first chunk is read again.
    let read = get("/api/conversations/{id}/stream");
    for kind in failures {
        let setting = setting([Answer::refused(Error::new(kind, "canary"))]);
        setting.post("/api/chat", &json!({"message": "Hi", "conversation": "c1", "turn": "t1"})).await;
        let request = Request::get("/api/conversations/c1/stream").header("x-turn-id", "t1");
        let response = setting.send(request.body(Body::empty()).unwrap()).await;
        assert!(!response.status().is_success(), "{kind:?}");
        check_response(&document, read, response).await;
    }
    for (path, id) in [("/api/conversations/{id}", "unknown"), ("/api/conversations/{id}/stream", "a%00b")] {
        let response = setting([]).get(&path.replace("{id}", id)).await;
        check_response(&document, get(path), response).await;
    }
}

/// A route that says it is open is, and every other one needs a token.
#[tokio::test]
async fn only_open_routes_need_no_token() {
    let document = document().await;
    let mut open = Vec::new();
    for operation in operations(&document) {
        let setting = with_tokens(with_conversation().await);
        let tokens = ["Bearer wrong", "Bearer ", "the-token-of-ann", "Basic the-token-of-ann"];
        for token in tokens.map(Some).into_iter().chain([None]) {
            let request = Request::builder().method(operation.method.clone());
            let request = request.uri(operation.path.replace("{id}", "c1").replace("{turn}", "turn-1"));
            let request =
                token.iter().fold(request, |request, token| request.header("authorization", *token));
            let status = setting.send(request.body(Body::empty()).unwrap()).await.status();
            if operation.value["security"] == json!([]) {
                assert_eq!(status, StatusCode::OK, "{}", operation.path);
                open.push(operation.path.clone());
            } else {
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{} {}", operation.method, operation.path);
            }
        }
    }
    open.dedup();
    assert_eq!(open, ["/healthz", "/openapi.json", "/readyz"]);
    // The README lists them, beside the files of the page.
    let readme = include_str!("../../README.md").lines().find(|line| line.contains("need no token")).unwrap();
    assert!(open.iter().all(|path| readme.contains(&format!("`{path}`"))), "{readme}");
}
