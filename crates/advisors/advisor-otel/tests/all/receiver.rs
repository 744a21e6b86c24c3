//! Telemetry of a turn at a real OTLP receiver: OpenTelemetry's official protobufs, in Python.
//!
//! `.ci/run` starts it. `ADVISOR_OTLP_URL` names a running one, such as `http://127.0.0.1:4318`. Without it the tests
//! are skipped, which they report; with `ADVISOR_REQUIRE_OTLP=1` they fail.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{CONTENT, client, install_layer, model, run};
use advisor_core::ChatModel;
use advisor_otel::{Otlp, OtlpError, RecordContent};
use serde_json::Value;

/// Returns the address of the receiver; or reports that its tests are left out.
fn address() -> Option<String> {
    let url = std::env::var("ADVISOR_OTLP_URL").ok().filter(|url| !url.is_empty());
    if url.is_none() {
        let required = std::env::var("ADVISOR_REQUIRE_OTLP").is_ok_and(|required| required == "1");
        assert!(!required, "ADVISOR_REQUIRE_OTLP=1, but ADVISOR_OTLP_URL names no receiver");
        // Not `eprintln!`, which the test harness keeps to itself when the test passes.
        let _ = writeln!(std::io::stderr(), "left out: ADVISOR_OTLP_URL names no receiver");
    }
    url
}

/// Returns the JSON at this path of the receiver.
fn read(address: &str, path: &str) -> Value {
    let host = address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    serde_json::from_str(body).unwrap()
}

/// Runs the turn, and returns what the receiver got of it. The runtime has one thread, which the flush blocks.
async fn received(address: &str, test: &str, model: impl ChatModel) -> Value {
    let service = format!("{test}-{}", std::process::id());
    let otlp = Otlp::new().with_endpoint(address).with_service_name(&*service).start().unwrap();
    let installed = install_layer(otlp.layer());
    run(&client(model)).await;
    drop(installed);
    otlp.shutdown().unwrap();
    read(address, &service)
}

fn list<'a>(value: &'a Value, lists: [&str; 3]) -> Vec<&'a Value> {
    let of = |value: &'a Value, list: &str| value[list].as_array().into_iter().flatten();
    let [first, second, third] = lists;
    of(value, first).flat_map(|each| of(each, second)).flat_map(|each| of(each, third)).collect()
}

/// Returns the spans in the order in which they ended.
fn spans(received: &Value) -> Vec<&Value> {
    let mut spans = list(received, ["resourceSpans", "scopeSpans", "spans"]);
    spans.sort_by_key(|span| span["endTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap());
    spans
}

fn attribute<'a>(span: &'a Value, name: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    found.map_or(&Value::Null, |attribute| &attribute["value"])
}

#[tokio::test]
async fn law_o7_r3_received_trace_has_parents_order_and_no_content() {
    let Some(address) = address() else { return };
    let received = received(&address, "trace", model()).await;
    let spans = spans(&received);
    let names: Vec<_> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    let round = ["chat grok-9", "round"];
    let mut expected = round.to_vec();
    expected.extend(["execute_tool look"; 2]);
    expected.extend(round);
    expected.push("execute_tool fail");
    expected.extend(round);
    expected.push("invoke_agent");
    assert_eq!(names, expected);

    let parent = |span: &Value| {
        let id = span["parentSpanId"].as_str()?;
        spans.iter().find(|parent| parent["spanId"] == id).map(|parent| parent["name"].as_str().unwrap())
    };
    for span in &spans {
        let (expected, kind) = match span["name"].as_str().unwrap() {
            "invoke_agent" => (None, "SPAN_KIND_INTERNAL"),
            "chat grok-9" => (Some("round"), "SPAN_KIND_CLIENT"),
            _ => (Some("invoke_agent"), "SPAN_KIND_INTERNAL"),
        };
        assert_eq!((parent(span), span["kind"].as_str()), (expected, Some(kind)), "{span}");
        assert_eq!(span["traceId"], spans[0]["traceId"]);
    }
    let parents: BTreeSet<_> = spans
        .iter()
        .filter(|span| span["name"] == "chat grok-9")
        .map(|span| span["parentSpanId"].as_str())
        .collect();
    assert_eq!(parents.len(), 3, "each model call is in its own round");

    let [first, .., turn] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(attribute(first, "gen_ai.usage.input_tokens")["intValue"], "10");
    assert_eq!(
        attribute(first, "gen_ai.response.finish_reasons")["arrayValue"]["values"][0]["stringValue"],
        "tool_calls"
    );
    assert!(attribute(first, "gen_ai.response.time_to_first_chunk")["doubleValue"].is_f64());
    assert_eq!(attribute(turn, "gen_ai.usage.input_tokens")["intValue"], "60");
    assert_eq!(attribute(turn, "gen_ai.usage.output_tokens")["intValue"], "18");
    let failed: Vec<_> = spans.iter().filter(|span| span["status"]["code"] == "STATUS_CODE_ERROR").collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["name"], "execute_tool fail");
    assert!(!received.to_string().contains(CONTENT), "{received}");
}

#[tokio::test]
async fn law_r3_received_content_is_on_model_calls_only() {
    let Some(address) = address() else { return };
    let received = received(&address, "content", RecordContent::new(model())).await;
    let (calls, others): (Vec<_>, Vec<_>) =
        spans(&received).into_iter().partition(|span| span["name"] == "chat grok-9");
    assert_eq!((calls.len(), others.len()), (3, 7));
    for call in calls {
        for name in ["gen_ai.input.messages", "gen_ai.output.messages"] {
            let messages = attribute(call, name)["stringValue"].as_str().unwrap();
            assert!(serde_json::from_str::<Value>(messages).unwrap().is_array());
            assert!(
                messages.contains(if name.contains("input") { CONTENT } else { "assistant" }),
                "{messages}"
            );
        }
    }
    assert!(!format!("{others:?}").contains(CONTENT), "{others:?}");
    assert!(!received["resourceMetrics"].to_string().contains(CONTENT));
    assert_eq!(received["problems"], serde_json::json!([]), "messages fit the published types");
}

#[tokio::test]
async fn metrics_are_received() {
    let Some(address) = address() else { return };
    let received = received(&address, "metrics", model()).await;
    let metrics = list(&received, ["resourceMetrics", "scopeMetrics", "metrics"]);
    let named = |name: &str| *metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let call = named("gen_ai.client.inference.duration");
    assert_eq!(call["unit"], "s");
    assert_eq!(call["histogram"]["dataPoints"][0]["count"], "3");
    assert_eq!(call["histogram"]["dataPoints"][0]["explicitBounds"].as_array().unwrap().len(), 14);
    let tokens = named("gen_ai.client.inference.usage.input_tokens");
    assert_eq!(tokens["sum"]["dataPoints"][0]["asInt"], "60");
    assert_eq!(tokens["sum"]["isMonotonic"], true);
}

/// Names of version 0.1 that no published package has yet.
const NEW: [&str; 8] = [
    "gen_ai.client.inference.duration",
    "gen_ai.client.inference.time_to_first_chunk",
    "gen_ai.client.inference.usage.cache_read.input_tokens",
    "gen_ai.client.inference.usage.cache_write.input_tokens",
    "gen_ai.client.inference.usage.input_tokens",
    "gen_ai.client.inference.usage.output_tokens",
    "gen_ai.client.inference.usage.reasoning.output_tokens",
    "gen_ai.token.modality",
];

/// The golden files have all names that leave the process.
#[test]
fn names_are_those_of_published_conventions() {
    let Some(address) = address() else { return };
    let published: BTreeSet<String> = serde_json::from_value(read(&address, "")).unwrap();
    let known: BTreeSet<&str> = NEW.into_iter().chain(published.iter().map(String::as_str)).collect();
    let mut seen = 0;
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let names = text
            .split([' ', '=', '\n', ','])
            .filter(|word| word.starts_with("gen_ai.") || word.starts_with("error."));
        for name in names {
            assert!(known.contains(name), "{name} is not published");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} names");
}

#[test]
fn addresses_that_need_tls_are_refused() {
    let refused = Otlp::new().with_endpoint("https://127.0.0.1:1").start().unwrap_err();
    assert!(matches!(refused, OtlpError::Tls), "{refused}");
}

/// In async code, too, where the drop of a runtime would panic.
#[tokio::test]
async fn law_r3_invalid_address_is_an_error_without_it() {
    let error = Otlp::new().with_endpoint("http://user:s3cret@no address").start().unwrap_err();
    let OtlpError::Setup(source) = &error else { panic!("{error}") };
    assert_eq!(source.to_string(), "the setting `endpoint` is invalid");
    assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
}

/// A collector that is away costs an error at the end, and nothing before.
#[tokio::test]
async fn absent_collector_is_an_error_of_the_flush() {
    let otlp = Otlp::new().with_endpoint("http://127.0.0.1:1").start().unwrap();
    let installed = install_layer(otlp.layer());
    run(&client(model())).await;
    drop(installed);
    assert!(matches!(otlp.flush().unwrap_err(), OtlpError::Send(_)));
}
