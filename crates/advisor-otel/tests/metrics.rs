//! Tests of the metrics of a turn, compared with a file per version of the conventions.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fmt::Write;

use advisor_otel::{Conventions, GenAiMetrics};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use support::{CONTENT, assert_golden, client, install, model, run};

const VERSIONS: [(Conventions, &str); 3] =
    [(Conventions::V1_36, "1.36"), (Conventions::V1_41, "1.41"), (Conventions::GenAi0_1, "0.1")];

/// Runs the turn and returns its metrics.
async fn metrics(conventions: Conventions) -> Vec<ResourceMetrics> {
    let exported = InMemoryMetricExporter::default();
    let meters = SdkMeterProvider::builder().with_periodic_exporter(exported.clone()).build();
    let metrics = GenAiMetrics::new(&meters.meter("test"), conventions);
    let provider = SdkTracerProvider::builder().with_span_processor(metrics).build();
    let installed = install(&provider);
    run(&client(model())).await;
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
async fn metrics_have_names_of_each_version() {
    for (conventions, version) in VERSIONS {
        assert_golden(&format!("metrics-{version}.txt"), &written(&metrics(conventions).await));
    }
}

#[tokio::test]
async fn law_r3_metrics_have_no_content() {
    for (conventions, _) in VERSIONS {
        let metrics = metrics(conventions).await;
        assert!(!format!("{metrics:?}").contains(CONTENT), "{metrics:?}");
    }
}
