//! `Metrics`: the counters of a server, and their text.

pub(crate) mod turn_watch;

use advisor_core::{SharedTurn, ToolEventKind, ToolResult, Usage};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The bounds of the buckets of the time to the first token, in seconds.
const FIRST_TOKEN: [f64; 11] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// The counters of a server.
///
/// No label has a text of a client, a model or a tool. So the number of series is bounded. The registry is a
/// value: the recorder of the facade `metrics` is one per process, which several servers and all tests would
/// share.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    turns: Family<OutcomeLabels, Counter>,
    tool_runs: Family<OutcomeLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    first_token: Histogram,
    running_turns: Gauge,
    readers: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    kind: &'static str,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self {
            registry: Registry::with_prefix("advisor"),
            requests: Family::default(),
            turns: Family::default(),
            tool_runs: Family::default(),
            tokens: Family::default(),
            first_token: Histogram::new(FIRST_TOKEN),
            running_turns: Gauge::default(),
            readers: Gauge::default(),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("http_requests", "Requests by route and status", self.requests.clone());
        registry.register(
            "turns",
            "Turns that ended: completed, or the kind of the error that ended them",
            self.turns.clone(),
        );
        registry.register("turns_running", "Turns that run now", self.running_turns.clone());
        registry.register("turn_readers", "Clients that read a turn now", self.readers.clone());
        registry.register_with_unit(
            "time_to_first_token",
            "Time from the start of a turn to the first piece of its answer",
            Unit::Seconds,
            self.first_token.clone(),
        );
        registry.register(
            "tokens",
            "Tokens of completed turns; cached_input and cache_write are parts of input, reasoning of output",
            self.tokens.clone(),
        );
        registry.register(
            "tool_runs",
            "Calls of tools that ended, as far as the chain shows them, and all calls that a person has decided",
            self.tool_runs.clone(),
        );
        self
    }

    /// Counts an answered request.
    pub(crate) fn request(&self, method: &'static str, route: &str, status: u16) {
        self.requests.get_or_create(&RequestLabels { method, route: route.to_owned(), status }).inc();
    }

    /// Counts a turn that has ended.
    pub(crate) fn turn_ended(&self, turn: &SharedTurn) {
        let outcome = turn.error().map_or("completed", |error| error.kind().as_str());
        self.turns.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    fn first_token(&self, seconds: f64) {
        self.first_token.observe(seconds);
    }

    fn tool_ended(&self, event: &ToolEventKind) {
        let outcome = match event {
            ToolEventKind::Finished(result) if result.is_error => "error",
            ToolEventKind::Finished(_) => "ok",
            ToolEventKind::NotStarted { .. } => "not_started",
            _ => return,
        };
        self.tool_run(outcome);
    }

    /// Counts a call about which a person has decided. The chain shows no events of such calls.
    pub(crate) fn decided_call_ended(&self, result: &ToolResult) {
        self.tool_run(match (result.is_denied, result.is_error) {
            (true, _) => "not_started",
            (false, true) => "error",
            (false, false) => "ok",
        });
    }

    fn tool_run(&self, outcome: &'static str) {
        self.tool_runs.get_or_create(&OutcomeLabels { outcome }).inc();
    }

    fn used(&self, usage: &Usage) {
        for (kind, tokens) in [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cached_input", usage.cached_input_tokens),
            ("cache_write", usage.cache_write_tokens),
            ("reasoning", usage.reasoning_tokens),
        ] {
            if let Some(tokens) = tokens {
                self.tokens.get_or_create(&TokenLabels { kind }).inc_by(tokens);
            }
        }
    }

    /// Writes the counters in the text form of OpenMetrics, with these counts of this moment.
    pub(crate) fn text(&self, running_turns: usize, readers: usize) -> String {
        self.running_turns.set(i64::try_from(running_turns).unwrap_or(i64::MAX));
        self.readers.set(i64::try_from(readers).unwrap_or(i64::MAX));
        let mut text = String::new();
        // A string takes any text.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
