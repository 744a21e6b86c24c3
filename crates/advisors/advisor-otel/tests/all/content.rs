//! Tests of content in traces: none unless asked for, and then only on model calls.

use crate::support::{CONTENT, client, model, run, spans_of, spans_with};
use advisor_core::ChatModel;
use advisor_otel::RecordContent;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
use serde_json::{Value, json};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;

async fn spans(model: impl ChatModel) -> Vec<SpanData> {
    let spans = spans_of(run(&client(model))).await;
    assert_eq!(spans.len(), 10);
    spans
}

fn messages(span: &SpanData, name: &str) -> Value {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name).unwrap();
    serde_json::from_str(&found.value.as_str()).unwrap()
}

#[tokio::test]
async fn law_r3_content_is_recorded_only_if_asked_for() {
    assert!(!format!("{:?}", spans(model()).await).contains(CONTENT));
    for span in spans(RecordContent::new(model())).await {
        assert_eq!(format!("{span:?}").contains(CONTENT), span.name.starts_with("chat"), "{span:?}");
    }
}

#[tokio::test]
async fn content_is_messages_of_request_and_answer() {
    let spans = spans(RecordContent::new(model())).await;
    let calls: Vec<_> = spans.iter().filter(|span| span.name.starts_with("chat")).collect();
    let text = |content: &str| json!({"type": "text", "content": content});
    let call =
        |id, name| json!({"type": "tool_call", "id": id, "name": name, "arguments": {"place": CONTENT}});
    let result = |id| json!({"role": "tool", "parts": [{"type": "tool_call_response", "id": id, "response": CONTENT}]});
    let asked = [
        json!({"role": "system", "parts": [text(CONTENT)]}),
        json!({"role": "user", "parts": [text(CONTENT)]}),
    ];
    assert_eq!(messages(calls[0], "gen_ai.input.messages"), json!(asked));
    let parts = json!([text("canary, let me look."), call("c1", "look"), call("c2", "look")]);
    let answer = json!([{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}]);
    assert_eq!(messages(calls[0], "gen_ai.output.messages"), answer);

    let mut asked = asked.to_vec();
    asked.extend([json!({"role": "assistant", "parts": parts}), result("c1"), result("c2")]);
    asked.extend([json!({"role": "assistant", "parts": [call("c3", "fail")]}), result("c3")]);
    assert_eq!(messages(calls[2], "gen_ai.input.messages"), json!(asked));
    let last = json!([{"role": "assistant", "parts": [text("canary it is.")], "finish_reason": "stop"}]);
    assert_eq!(messages(calls[2], "gen_ai.output.messages"), last);
}

/// If nobody listens to model calls, the content does not go to the span around them.
#[tokio::test]
async fn law_r3_content_goes_to_no_other_span() {
    let without_calls = filter_fn(|metadata| metadata.name() != "model_call");
    let layer = |tracers: &SdkTracerProvider| without_calls.and_then(advisor_otel::layer(tracers)).boxed();
    let spans = spans_with(layer, run(&client(RecordContent::new(model())))).await;
    assert_eq!(spans.len(), 7, "{spans:?}");
    assert!(!format!("{spans:?}").contains(CONTENT), "{spans:?}");
}

#[tokio::test]
async fn wrapped_model_keeps_its_names() {
    let wrapped = RecordContent::new(model()).with_max_bytes(100);
    assert_eq!((wrapped.name(), wrapped.model_name()), ("xai", Some("grok-9")));
    assert_eq!(wrapped.schema_support(), model().schema_support());
}
