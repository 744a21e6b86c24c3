//! `GenAiMetrics`: a span processor that records metrics when spans end.

use std::time::Duration;

use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

use crate::Conventions;
use crate::bounded::BoundedValues;
use crate::names::{
    ERROR, FIRST_CHUNK, INPUT, MetricNames, OPERATION, OUTPUT, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL,
    TOOL_NAME, TokenMetrics, translate, whole,
};
use crate::spans::{ChainSpan, attribute};

/// The default maximum of names of models and of tools.
const MAX_NAMES: usize = 500;

/// The boundaries of times of a model or a tool, in seconds, as the conventions have them.
const TIMES: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The boundaries of times of a turn, in seconds.
const AGENT_TIMES: [f64; 13] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
/// The boundaries of token counts.
const TOKENS: [f64; 14] = [
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0,
    16_777_216.0, 67_108_864.0,
];

/// Makes metrics of the spans of a chain when they end: durations, tokens and the time to the first chunk.
///
/// It is a processor of the tracer provider, so it counts only spans that are recorded. A sampler that drops spans
/// drops them from the metrics, too.
///
/// Names of models and of tools come from callers and servers. The first 500 of each kind are recorded as they are, and
/// further ones as `_OTHER`, so that metrics stay bounded. A call of a tool that the request does not have is no run, and
/// in no metric.
#[derive(Debug)]
pub struct GenAiMetrics {
    conventions: Conventions,
    names: BoundedValues,
    call: Histogram<f64>,
    first_chunk: Option<Histogram<f64>>,
    tokens: Tokens,
    tool: Option<Histogram<f64>>,
    agent: Option<Histogram<f64>>,
}

#[derive(Debug)]
enum Tokens {
    ByType { histogram: Histogram<u64>, attribute: &'static str },
    Counters { counters: Vec<(&'static str, Counter<u64>)>, modality: &'static str },
}

impl GenAiMetrics {
    /// Creates the instruments of `conventions` in `meter`.
    #[must_use]
    pub fn new(meter: &Meter, conventions: Conventions) -> Self {
        let names = MetricNames::of(conventions);
        let times = |name: &'static str, boundaries: &[f64]| {
            meter.f64_histogram(name).with_unit("s").with_boundaries(boundaries.to_vec()).build()
        };
        let tokens = match names.tokens {
            TokenMetrics::ByType { metric, attribute } => {
                let histogram = meter.u64_histogram(metric).with_unit("{token}");
                Tokens::ByType { histogram: histogram.with_boundaries(TOKENS.to_vec()).build(), attribute }
            }
            TokenMetrics::Counters { counters, modality } => {
                let counter = |name: &'static str| meter.u64_counter(name).with_unit("{token}").build();
                let counters = counters.iter().map(|(own, name)| (*own, counter(name))).collect();
                Tokens::Counters { counters, modality }
            }
        };
        Self {
            conventions,
            names: BoundedValues::new(MAX_NAMES),
            call: times(names.call, &TIMES),
            first_chunk: names.first_chunk.map(|name| times(name, &TIMES)),
            tokens,
            tool: names.tool.map(|name| times(name, &TIMES)),
            agent: names.agent.map(|name| times(name, &AGENT_TIMES)),
        }
    }

    /// Sets the maximum number of names of tools, of requested models and of answering models, each.
    #[must_use]
    pub fn with_max_names(self, max_names: usize) -> Self {
        Self { names: BoundedValues::new(max_names), ..self }
    }

    /// Returns these attributes of the span as the conventions have them.
    fn labels(&self, span: &SpanData, names: &[&'static str]) -> Vec<KeyValue> {
        let label = |name: &&'static str| {
            Some(KeyValue::new(*name, self.names.bound(name, attribute(span, name)?.clone())))
        };
        names.iter().filter_map(label).filter_map(|label| translate(label, self.conventions)).collect()
    }

    fn note_call(&self, span: &SpanData) {
        let mut labels = self.labels(span, &[OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL]);
        if let (Some(histogram), Some(Value::F64(seconds))) =
            (&self.first_chunk, attribute(span, FIRST_CHUNK))
        {
            histogram.record(*seconds, &labels);
        }
        match &self.tokens {
            Tokens::ByType { histogram, attribute } => {
                for (name, kind) in [(INPUT, "input"), (OUTPUT, "output")] {
                    if let Some(count) = count(span, name) {
                        labels.push(KeyValue::new(*attribute, kind));
                        histogram.record(count, &labels);
                        labels.pop();
                    }
                }
            }
            Tokens::Counters { counters, modality } => {
                labels.push(KeyValue::new(*modality, "unknown"));
                for (name, counter) in counters {
                    if let Some(count) = count(span, name) {
                        counter.add(count, &labels);
                    }
                }
                labels.pop();
            }
        }
        labels.extend(self.labels(span, &[ERROR]));
        self.call.record(seconds(span), &labels);
    }
}

/// Returns a number of tokens.
fn count(span: &SpanData, name: &str) -> Option<u64> {
    match whole(attribute(span, name)?.clone()) {
        Value::I64(count) => u64::try_from(count).ok(),
        _ => None,
    }
}

fn seconds(span: &SpanData) -> f64 {
    span.end_time.duration_since(span.start_time).unwrap_or_default().as_secs_f64()
}

impl SpanProcessor for GenAiMetrics {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        let (histogram, labels): (_, &[&str]) = match ChainSpan::of(&span) {
            Some(ChainSpan::ModelCall) => return self.note_call(&span),
            Some(ChainSpan::ToolRun) => (&self.tool, &[TOOL_NAME, ERROR]),
            Some(ChainSpan::Turn) => (&self.agent, &[OPERATION, ERROR]),
            Some(ChainSpan::Round) | None => return,
        };
        if let Some(histogram) = histogram {
            histogram.record(seconds(&span), &self.labels(&span, labels));
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
