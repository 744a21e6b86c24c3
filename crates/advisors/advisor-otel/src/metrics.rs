//! `GenAiMetrics`: a span processor that records metrics when spans end.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

use crate::names::{
    AGENT_METRIC, CALL_METRIC, ERROR, FIRST_CHUNK, FIRST_CHUNK_METRIC, MODALITY, OPERATION, PROVIDER,
    REQUEST_MODEL, RESPONSE_MODEL, TOKEN_METRICS, TOOL_METRIC, TOOL_NAME, translate, whole,
};
use crate::spans::{ChainSpan, attribute};

/// The default maximum of names of models and of tools.
const MAX_NAMES: usize = 500;

/// The boundaries of times of a model or a tool, in seconds, as the conventions have them.
const TIMES: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The boundaries of times of a turn, in seconds.
const AGENT_TIMES: [f64; 13] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
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
    names: BoundedValues,
    call: Histogram<f64>,
    first_chunk: Histogram<f64>,
    tokens: Vec<(&'static str, Counter<u64>)>,
    tool: Histogram<f64>,
    agent: Histogram<f64>,
}

impl GenAiMetrics {
    /// Creates the instruments in `meter`.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        let times = |name: &'static str, boundaries: &[f64]| {
            meter.f64_histogram(name).with_unit("s").with_boundaries(boundaries.to_vec()).build()
        };
        let counter = |name: &'static str| meter.u64_counter(name).with_unit("{token}").build();
        Self {
            names: BoundedValues::new(MAX_NAMES),
            call: times(CALL_METRIC, &TIMES),
            first_chunk: times(FIRST_CHUNK_METRIC, &TIMES),
            tokens: TOKEN_METRICS.map(|(own, name)| (own, counter(name))).into(),
            tool: times(TOOL_METRIC, &TIMES),
            agent: times(AGENT_METRIC, &AGENT_TIMES),
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
        names.iter().filter_map(label).map(translate).collect()
    }

    fn note_call(&self, span: &SpanData) {
        let mut labels = self.labels(span, &[OPERATION, PROVIDER, REQUEST_MODEL, RESPONSE_MODEL]);
        if let Some(Value::F64(seconds)) = attribute(span, FIRST_CHUNK) {
            self.first_chunk.record(*seconds, &labels);
        }
        labels.push(KeyValue::new(MODALITY, "unknown"));
        for (name, counter) in &self.tokens {
            if let Some(count) = count(span, name) {
                counter.add(count, &labels);
            }
        }
        labels.pop();
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
        histogram.record(seconds(&span), &self.labels(&span, labels));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// The attributes whose values come from callers and servers.
const FROM_OUTSIDE: [&str; 3] = [REQUEST_MODEL, RESPONSE_MODEL, TOOL_NAME];

/// The value in place of all further ones. The conventions of HTTP and errors have it for unknown values, too.
const OTHER: &str = "_OTHER";

/// The first values of each attribute from outside. All further ones are one value.
#[derive(Debug)]
pub(crate) struct BoundedValues {
    max: usize,
    seen: Mutex<HashMap<&'static str, HashSet<String>>>,
}

impl BoundedValues {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, seen: Mutex::default() }
    }

    /// Returns the value, or `_OTHER` if it is new and the attribute has its maximum of values.
    pub(crate) fn bound(&self, name: &'static str, value: Value) -> Value {
        if !FROM_OUTSIDE.contains(&name) {
            return value;
        }
        // Code under the lock never leaves the sets inconsistent.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.entry(name).or_default();
        let text = value.as_str();
        if seen.contains(&*text) {
            return value;
        }
        if seen.len() >= self.max {
            return Value::from(OTHER);
        }
        seen.insert(text.into_owned());
        value
    }
}
