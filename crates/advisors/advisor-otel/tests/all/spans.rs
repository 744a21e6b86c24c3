//! Tests of the spans of a turn.

use std::fmt::Write;

use crate::support::{CONTENT, Grok, assert_golden, client, model, run, spans_of};
use advisor_core::{AdvisorChain, ChatRequest, Error, ErrorKind, Phase, from_fn};
use advisor_testkit::{Answer, ScriptedModel};
use opentelemetry::trace::Status;
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::trace::SpanData;

/// Writes the spans without ids and times.
fn written(spans: &[SpanData]) -> String {
    let mut text = String::new();
    for span in spans {
        let parent = spans.iter().find(|parent| parent.span_context.span_id() == span.parent_span_id);
        let parent = parent.map_or("-", |parent| &parent.name);
        writeln!(text, "{} ({:?}, {:?}) in {parent}", span.name, span.span_kind, span.status).unwrap();
        let mut attributes: Vec<_> = span.attributes.iter().map(attribute).collect();
        attributes.sort();
        for attribute in attributes {
            writeln!(text, "  {attribute}").unwrap();
        }
    }
    text
}

fn attribute(attribute: &KeyValue) -> String {
    let value = match (&attribute.value, attribute.key.as_str()) {
        (Value::F64(_), name) if name.ends_with("time_to_first_chunk") => "F64(a time)".to_owned(),
        (Value::String(text), _) => format!("{:?}", text.as_str()),
        (Value::Array(list), _) => list.to_string(),
        (value, _) => format!("{value:?}"),
    };
    format!("{} = {value}", attribute.key)
}

#[tokio::test]
async fn spans_have_names_of_the_conventions() {
    assert_golden("spans.txt", &written(&spans_of(run(&client(model()))).await));
}

/// A repeated call of a round has the next number; the round keeps its own.
#[tokio::test]
async fn numbers_of_rounds_and_of_model_calls_are_apart() {
    let twice = from_fn("twice", |request: ChatRequest, next: AdvisorChain| async move {
        next.next_call(request.clone()).await?;
        next.next_stream(request).await
    });
    let call = || Answer::from_calls([("c1", "look", "{}")]);
    let answers = [call(), call(), Answer::from_text("a"), Answer::from_text("b")];
    let client = client(Grok(ScriptedModel::new(answers))).to_builder();
    let client = client.advisor_in(Phase::ModelCall, twice).build().unwrap();
    let spans = spans_of(async { client.prompt().user(CONTENT).call().await.unwrap() }).await;
    let number = |span: &SpanData, name| {
        let known = span.attributes.iter().find(|attribute| attribute.key.as_str() == name)?;
        Some(format!("{} {}", span.name, known.value))
    };
    let numbers = |name| spans.iter().filter_map(|span| number(span, name)).collect::<Vec<_>>();
    let calls = ["chat grok-9 1", "chat grok-9 2", "chat grok-9 3", "chat grok-9 4"];
    assert_eq!(numbers("advisor.model_call"), calls);
    assert_eq!(numbers("advisor.round"), ["round 1", "round 2"]);
}

#[tokio::test]
async fn law_o7_exported_spans_end_in_order_of_the_turn() {
    let spans = spans_of(run(&client(model()))).await;
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    let round = ["chat grok-9", "round"];
    let mut expected = round.to_vec();
    expected.extend(["execute_tool look"; 2]);
    expected.extend(round);
    expected.push("execute_tool fail");
    expected.extend(round);
    expected.push("invoke_agent");
    assert_eq!(names, expected);
    assert!(spans.iter().all(|span| span.span_context.trace_id() == spans[0].span_context.trace_id()));
}

#[tokio::test]
async fn law_r3_failed_turn_has_kind_of_error_and_no_text() {
    let refused = Answer::refused(Error::new(ErrorKind::Authentication, CONTENT));
    let client = client(Grok(ScriptedModel::new([refused])));
    let spans = spans_of(async { client.prompt().user(CONTENT).call().await.unwrap_err() }).await;
    assert!(!format!("{spans:?}").contains(CONTENT), "{spans:?}");
    let failed = |span: &SpanData| {
        let kind = span.attributes.iter().find(|attribute| attribute.key.as_str() == "error.type")?;
        Some((span.name.to_string(), span.status.clone(), kind.value.to_string()))
    };
    let failed: Vec<_> = spans.iter().filter_map(failed).collect();
    let expected = |name: &str| (name.to_owned(), Status::error(""), "authentication".to_owned());
    assert_eq!(failed, [expected("chat grok-9"), expected("invoke_agent")]);
}

/// A span of the application that happens to have the name of one of ours.
#[tokio::test]
async fn spans_of_others_stay_as_they_are() {
    let named =
        async { tracing::info_span!("turn", gen_ai.provider.name = "xai", turn.id = 7).in_scope(|| ()) };
    let span = spans_of(named).await.pop().unwrap();
    assert_eq!(&*span.name, "turn");
    let names: Vec<_> = span.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    assert_eq!(names, ["gen_ai.provider.name", "turn.id"]);
}

/// Spans of HTTP clients would cause further telemetry when it is sent.
#[tokio::test]
async fn spans_of_senders_are_left_out() {
    let spans = spans_of(async {
        tracing::info_span!(target: "hyper", "a").in_scope(|| ());
        tracing::info_span!(target: "hyper_util::client", "b").in_scope(|| ());
        tracing::info_span!(target: "h2o", "c").in_scope(|| ());
        tracing::debug_span!("d").in_scope(|| ());
    });
    let spans = spans.await;
    assert_eq!(spans.iter().map(|span| &*span.name).collect::<Vec<_>>(), ["c"]);
}

/// Events within a span may have texts of errors, and messages of the servers that an advisor asks.
#[tokio::test]
async fn law_r3_events_are_not_exported() {
    let events = || {
        tracing::warn!(error = CONTENT, "an advisor failed");
        tracing::info!(target: "rmcp::service", notification = CONTENT, "received notification");
    };
    let spans = spans_of(async { tracing::info_span!("turn").in_scope(events) }).await;
    assert_eq!(spans.len(), 1);
    assert!(!format!("{spans:?}").contains(CONTENT), "{spans:?}");
}
