//! Counters for Prometheus: off by default, protected, and true to what happened.

use std::time::Duration;

use advisor_core::{Error, ErrorKind};
use advisor_server::Tokens;
use advisor_testkit::{Answer, Gate};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;

use crate::setting::{Setting, post, refused, setting, text, until};

fn counting(answers: impl IntoIterator<Item = Answer>) -> Setting {
    let Setting { server, model } = setting(answers);
    Setting { server: server.with_metrics(), model }
}

async fn metrics(setting: &Setting) -> String {
    let response = setting.get("/metrics").await;
    assert_eq!(response.status(), StatusCode::OK);
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
    let text = text(response).await;
    assert!(text.ends_with("# EOF\n"));
    text
}

/// Returns the value of a series, or 0 if it does not exist.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn nothing_is_counted_unless_asked_for() {
    let setting = setting([]);
    assert_eq!(refused(setting.get("/metrics").await, StatusCode::NOT_FOUND).await, "not_found");
}

fn scrape(token: &str) -> Request<Body> {
    Request::get("/metrics").header("authorization", format!("Bearer {token}")).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn counters_without_tokens_are_for_this_machine() {
    let setting = counting([]);
    let from = |host: &str| Request::get("/metrics").header("host", host).body(Body::empty()).unwrap();
    assert_eq!(setting.send(from("127.0.0.1:8080")).await.status(), StatusCode::OK);
    assert_eq!(setting.send(from("example.org")).await.status(), StatusCode::FORBIDDEN);
}

/// The counters are sums over all tenants, which no tenant learns.
#[tokio::test]
async fn token_of_a_tenant_reads_no_counters() {
    let Setting { server, model } = counting([]);
    let server = server.with_tokens(Tokens::new([("the-secret-of-ann", "ann")]).unwrap());
    let setting = Setting { server: server.clone(), model: model.clone() };
    assert_eq!(setting.get("/metrics").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(setting.send(scrape("the-secret-of-ann")).await.status(), StatusCode::UNAUTHORIZED);
    let setting = Setting { server: server.with_operator_token("the-token-of-operator").unwrap(), model };
    assert_eq!(setting.send(scrape("the-secret-of-ann")).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(setting.send(scrape("the-token-of-operator")).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn token_of_the_operator_reads_only_counters() {
    let Setting { server, model } = counting([]);
    let setting = Setting { server: server.with_operator_token("the-token-of-operator").unwrap(), model };
    assert_eq!(setting.get("/metrics").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(setting.send(scrape("the-token-of-operator")).await.status(), StatusCode::OK);
    let Setting { server, model } = setting;
    let setting =
        Setting { server: server.with_tokens(Tokens::new([("the-secret-of-ann", "ann")]).unwrap()), model };
    let listing = Request::get("/api/conversations").header("authorization", "Bearer the-token-of-operator");
    let listed = setting.send(listing.body(Body::empty()).unwrap()).await;
    assert_eq!(listed.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status() {
    let setting = counting([Answer::from_text("Hi.")]);
    text(setting.post("/api/chat", &json!({"message": "Hello"})).await).await;
    for id in ["c1", "c2", "c3"] {
        setting.get(&format!("/api/conversations/{id}")).await;
    }
    for path in ["/secret-1", "/secret-2"] {
        setting.get(path).await;
    }
    let seen = metrics(&setting).await;
    for (method, route, status, count) in [
        ("POST", "/api/chat", 200, 1.0),
        ("GET", "/api/conversations/{id}", 404, 3.0),
        ("GET", "unknown", 404, 2.0),
    ] {
        let series =
            format!(r#"advisor_http_requests_total{{method="{method}",route="{route}",status="{status}"}}"#);
        assert_eq!(value(&seen, &series), count, "{series}\n{seen}");
    }
    assert!(!seen.contains("secret"), "paths of clients are no labels");
}

#[tokio::test(start_paused = true)]
async fn turns_tokens_tools_and_first_token_are_counted() {
    let call = Answer::new().call("t1", "weather", "{}").call("t2", "nothing", "{}").usage(10, 5).done();
    let slow = async { tokio::time::sleep(Duration::from_secs(3)).await };
    let sunny = Answer::new().text("It is sunny.").usage(20, 2).done();
    let failing = Answer::new().wait(slow).text("It").error(Error::new(ErrorKind::Connection, "broken"));
    let setting = counting([call, sunny, failing]);
    for message in ["How is it?", "And then?"] {
        text(setting.post("/api/chat", &json!({"message": message})).await).await;
    }
    let seen = metrics(&setting).await;
    for (series, expected) in [
        (r#"advisor_turns_total{outcome="completed"}"#, 1.0),
        (r#"advisor_turns_total{outcome="connection"}"#, 1.0),
        (r#"advisor_tool_runs_total{outcome="ok"}"#, 1.0),
        (r#"advisor_tool_runs_total{outcome="not_started"}"#, 1.0),
        (r#"advisor_tokens_total{kind="input"}"#, 30.0),
        (r#"advisor_tokens_total{kind="output"}"#, 7.0),
        (r#"advisor_time_to_first_token_seconds_count"#, 2.0),
        (r#"advisor_time_to_first_token_seconds_bucket{le="2.0"}"#, 1.0),
        (r#"advisor_time_to_first_token_seconds_bucket{le="4.0"}"#, 2.0),
        ("advisor_turns_running", 0.0),
        ("advisor_turn_readers", 0.0),
    ] {
        assert_eq!(value(&seen, series), expected, "{series}\n{seen}");
    }
}

#[tokio::test]
async fn running_turns_and_their_readers_are_counted() {
    let gate = Gate::new();
    let setting = counting([Answer::new().text("It").gate(&gate).done()]);
    let body = json!({"message": "How is it?", "conversation": "c1"});
    let (_, first) = until(setting.post("/api/chat", &body).await, "It").await;
    let second = setting.get("/api/conversations/c1/stream").await;
    let seen = metrics(&setting).await;
    assert_eq!((value(&seen, "advisor_turns_running"), value(&seen, "advisor_turn_readers")), (1.0, 2.0));
    drop(second);
    assert_eq!(value(&metrics(&setting).await, "advisor_turn_readers"), 1.0);
    let stopped = setting.send(post("/api/conversations/c1/stop").body(Body::empty()).unwrap()).await;
    assert_eq!(stopped.status(), StatusCode::NO_CONTENT);
    drop(first);
    let seen = metrics(&setting).await;
    assert_eq!(value(&seen, r#"advisor_turns_total{outcome="cancelled"}"#), 1.0, "{seen}");
    assert_eq!((value(&seen, "advisor_turns_running"), value(&seen, "advisor_turn_readers")), (0.0, 0.0));
}
