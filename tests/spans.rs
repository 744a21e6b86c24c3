//! The law of spans. It is alone in its program: another test at the same time, without a subscriber, would switch spans off.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod matrix;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll};

use advisor_core::{
    AdvisorChain, Batches, ChatModel, ChatRequest, ChunkStream, Delta, FinishReason, Message,
    MessageAggregator, Result, async_trait,
};
use advisor_testkit::Journal;
use futures::{Stream, StreamExt};
use matrix::cases;
use tracing::Span;
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Closed>>);

#[derive(Default)]
struct Closed {
    open: usize,
    names: Vec<String>,
    parents: Vec<(String, String)>,
}

impl Spans {
    fn new() -> Self {
        Self::default()
    }

    /// Listens on this thread until the guard is dropped.
    fn install(&self) -> DefaultGuard {
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    /// The names of the spans, in the order in which they closed.
    fn closed(&self) -> Vec<String> {
        self.0.lock().unwrap().names.clone()
    }

    /// The name of each span and of the one it began in, in the order in which they began.
    fn parents(&self) -> Vec<(String, String)> {
        self.0.lock().unwrap().parents.clone()
    }

    fn still_open(&self) -> usize {
        self.0.lock().unwrap().open
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent().map_or("", |parent| parent.name());
        let mut closed = self.0.lock().unwrap();
        closed.open += 1;
        closed.parents.push((span.name().into(), parent.into()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let mut closed = self.0.lock().unwrap();
        closed.open -= 1;
        let name = context.span(&id).map_or("?", |span| span.name());
        closed.names.push(name.into());
    }
}

#[tokio::test]
async fn law_o7_spans_close_in_the_same_order() {
    for case in cases().filter(|case| case.tool_rounds <= 3) {
        let spans = Spans::new();
        let _installed = spans.install();
        let (ran, _, _) = case.run().await;
        let closed = spans.closed();
        eprintln!("{case:?}: {closed:?}");
        let rounds = case.tool_rounds as usize + 1;
        assert_eq!(spans.still_open(), 0, "every span has closed");
        assert_eq!(closed.last().map(String::as_str), Some("turn"));
        assert_eq!(closed.iter().filter(|name| *name == "round").count(), rounds);
        let mut expected = Vec::new();
        for round in 0..rounds {
            expected.extend(["model_call", "round"]);
            if round + 1 < rounds {
                expected.extend(std::iter::repeat_n("tool_run", case.calls));
            }
        }
        expected.push("turn");
        assert_eq!(closed, expected);
        for (name, parent) in spans.parents() {
            let expected = match name.as_str() {
                "turn" => "",
                "model_call" => "round",
                _ => "turn",
            };
            assert_eq!(parent, expected, "{case:?}: the parent of {name}");
        }
        ran.journal.assert_count("seen completed", 1);
    }
}

/// A model that has its answer ready, and tells in which span it is asked for it.
#[derive(Clone)]
struct Ready(VecDeque<Delta>, Journal);

impl Ready {
    fn tell(&self, how: &str) {
        let span = Span::current().metadata().map_or("", |span| span.name());
        self.1.record(format!("{how} in {span}"));
    }
}

impl Stream for Ready {
    type Item = Result<Delta>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        self.tell("polled");
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

impl Batches<Delta> for Ready {
    fn take_ready(mut self: Pin<&mut Self>, ready: &mut VecDeque<Delta>) {
        self.tell("taken");
        ready.extend(self.0.drain(..));
    }
}

#[async_trait]
impl ChatModel for Ready {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        Ok(ChunkStream::from_delta_batches(MessageAggregator::new(request.round), self.clone()))
    }
}

#[tokio::test]
async fn law_o7_what_is_there_is_taken_within_the_same_span() {
    let spans = Spans::new();
    let _installed = spans.install();
    let journal = Journal::new();
    let words = (0..8).map(|at| Delta::text(format!("{at} ")));
    let model = Ready(words.chain([Delta::finish(FinishReason::Stop)]).collect(), journal.clone());
    let chain = AdvisorChain::builder(model).build().unwrap();
    let out: Vec<_> = chain.stream(ChatRequest::new(Message::user("?"))).collect().await;
    assert!(out.iter().all(Result::is_ok));
    let asked = journal.labels();
    assert!(asked.contains(&String::from("taken in model_call")), "{asked:?}");
    assert!(asked.iter().all(|asked| asked.ends_with(" in model_call")), "{asked:?}");
}
