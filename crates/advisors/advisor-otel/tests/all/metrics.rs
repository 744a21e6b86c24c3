//! Tests of the metrics of a turn.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::support::{CONTENT, assert_golden, client, install, model, run};
use advisor_core::{ChatClient, Delta, FinishReason, ToolDefinition};
use advisor_otel::GenAiMetrics;
use advisor_testkit::{Answer, ScriptedModel};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde_json::Value;
use tool_call_advisor::{FnTool, ToolCallAdvisor};

/// Runs the turn and returns its metrics.
async fn metrics() -> Vec<ResourceMetrics> {
    measured(GenAiMetrics::new, run(&client(model()))).await
}

/// Returns the metrics of a turn.
async fn measured(
    create: impl FnOnce(&Meter) -> GenAiMetrics,
    turn: impl Future<Output = ()>,
) -> Vec<ResourceMetrics> {
    let exported = InMemoryMetricExporter::default();
    let meters = SdkMeterProvider::builder().with_periodic_exporter(exported.clone()).build();
    let metrics = create(&meters.meter("test"));
    let provider = SdkTracerProvider::builder().with_span_processor(metrics).build();
    let installed = install(&provider);
    turn.await;
    drop(installed);
    meters.force_flush().unwrap();
    exported.get_finished_metrics().unwrap()
}

fn labels<'a>(labels: impl Iterator<Item = &'a KeyValue>) -> String {
    let mut labels: Vec<_> = labels.map(|label| format!("{}={}", label.key, label.value)).collect();
    labels.sort();
    labels.join(" ")
}

/// Writes each point: its count and, unless it is a time, its sum.
fn points(metric: &Metric) -> Vec<String> {
    match metric.data() {
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => histogram
            .data_points()
            .map(|point| format!("{} times, {}", point.count(), labels(point.attributes())))
            .collect(),
        AggregatedMetrics::U64(MetricData::Histogram(histogram)) => histogram
            .data_points()
            .map(|point| format!("{} in {}, {}", point.sum(), point.count(), labels(point.attributes())))
            .collect(),
        AggregatedMetrics::U64(MetricData::Sum(sum)) => sum
            .data_points()
            .map(|point| format!("{}, {}", point.value(), labels(point.attributes())))
            .collect(),
        other => vec![format!("{other:?}")],
    }
}

fn written(metrics: &[ResourceMetrics]) -> String {
    let metrics = metrics.iter().flat_map(ResourceMetrics::scope_metrics).flat_map(|scope| scope.metrics());
    let mut metrics: Vec<_> = metrics.collect();
    metrics.sort_by_key(|metric| metric.name().to_owned());
    let mut text = String::new();
    for metric in metrics {
        writeln!(text, "{} [{}]", metric.name(), metric.unit()).unwrap();
        let mut points = points(metric);
        points.sort();
        for point in points {
            writeln!(text, "  {point}").unwrap();
        }
    }
    text
}

#[tokio::test]
async fn metrics_have_names_of_the_conventions() {
    assert_golden("metrics.txt", &written(&metrics().await));
}

#[tokio::test]
async fn law_r3_metrics_have_no_content() {
    let metrics = metrics().await;
    assert!(!format!("{metrics:?}").contains(CONTENT), "{metrics:?}");
}

/// A model that calls these tools, one in each round, and names itself after the round.
fn calling<'a>(tools: impl IntoIterator<Item = &'a str>) -> ScriptedModel {
    let calls = tools.into_iter().zip(1..).map(|(tool, round)| {
        let origin = Delta::origin(None, Some(format!("model-{round}").into()));
        let id = format!("c{round}");
        Answer::new().delta(origin).call(&id, tool, "{}").finish(FinishReason::ToolCalls)
    });
    ScriptedModel::new(calls.chain([Answer::from_text("Done.")]))
}

/// Runs a turn with the tools `a`, `b` and `c`, and returns the values of an attribute in its metrics.
async fn values_of(attribute: &str, model: ScriptedModel, max_names: usize) -> BTreeSet<String> {
    let tool =
        |name: &str| FnTool::new(ToolDefinition::new(name, "", Value::Null), |_: Value| async { Ok("done") });
    let client = ChatClient::builder(model).advisor(ToolCallAdvisor::new());
    let client = ["a", "b", "c"].into_iter().fold(client, |client, name| client.tool(tool(name)));
    let client = client.build().unwrap();
    let create = |meter: &Meter| GenAiMetrics::new(meter).with_max_names(max_names);
    let turn = async { assert_eq!(client.prompt().user("Go.").call().await.unwrap().text(), "Done.") };
    let text = written(&measured(create, turn).await);
    let labels = text.split_whitespace().filter_map(|label| label.strip_prefix(attribute)?.strip_prefix('='));
    labels.map(str::to_owned).collect()
}

#[tokio::test]
async fn law_r1_invented_tools_have_no_series() {
    let model = calling(["invented", "a", "other", "another"]);
    assert_eq!(values_of("gen_ai.tool.name", model, 10).await, BTreeSet::from(["a".to_owned()]));
}

#[tokio::test]
async fn law_r1_names_beyond_bound_are_one_series() {
    for (attribute, names) in [
        ("gen_ai.tool.name", ["_OTHER", "a", "b"]),
        ("gen_ai.response.model", ["_OTHER", "model-1", "model-2"]),
    ] {
        let values = values_of(attribute, calling(["a", "b", "c", "a"]), 2).await;
        assert_eq!(values, BTreeSet::from(names.map(str::to_owned)), "{attribute}");
    }
}
