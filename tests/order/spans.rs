//! The law of spans. Every test of this program listens: one without a subscriber would switch spans off for all.

use std::sync::Once;

use advisor_core::{MessageAggregator, Usage};
use advisor_tests::matrix::cases;
use advisor_tests::prelude::*;
use tracing::Span;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
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
    /// The name and the recorded fields of each span, in the order in which they began.
    told: Vec<(Id, &'static str, BTreeMap<&'static str, String>)>,
}

/// Records the fields of a span.
struct Told<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Told<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        assert_eq!(self.0.insert(field.name(), format!("{value:?}")), None, "{} is told once", field.name());
    }
}

impl Spans {
    fn new() -> Self {
        Self::default()
    }

    /// Listens on this thread until the guard is dropped. A callsite asks only the subscribers of the first
    /// thread that reaches it; the global subscriber keeps it enabled between two of ours.
    fn install(&self) -> DefaultGuard {
        static ENABLED: Once = Once::new();
        ENABLED.call_once(|| {
            tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
        });
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

    /// Returns the recorded fields of the spans of this name.
    fn told(&self, name: &str) -> Vec<BTreeMap<&'static str, String>> {
        let closed = self.0.lock().unwrap();
        closed.told.iter().filter(|told| told.1 == name).map(|(_, _, told)| told.clone()).collect()
    }

    fn still_open(&self) -> usize {
        self.0.lock().unwrap().open
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent().map_or("", |parent| parent.name());
        let mut closed = self.0.lock().unwrap();
        closed.open += 1;
        closed.parents.push((span.name().into(), parent.into()));
        let mut told = BTreeMap::new();
        attributes.record(&mut Told(&mut told));
        closed.told.push((id.clone(), span.name(), told));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut closed = self.0.lock().unwrap();
        let told = closed.told.iter_mut().rev().find(|(of, ..)| of == id);
        if let Some((_, _, told)) = told {
            values.record(&mut Told(told));
        }
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

#[tokio::test]
async fn law_o7_model_is_polled_in_its_own_span() {
    let spans = Spans::new();
    let _installed = spans.install();
    let journal = Journal::new();
    let answer = (0..8).fold(Answer::new(), |answer, at| {
        let journal = journal.clone();
        let polled = async move {
            let span = Span::current().metadata().map_or("", |span| span.name());
            journal.record(format!("polled in {span}"));
        };
        answer.wait(polled).text(format!("{at} "))
    });
    let model = ScriptedModel::new([answer.finish(FinishReason::Stop)]);
    let chain = ChatClient::builder(model).build().unwrap().chain().clone();
    let out: Vec<_> = chain.stream(ChatRequest::new(Message::user("?"))).collect().await;
    assert!(out.iter().all(Result::is_ok));
    let asked = journal.labels();
    assert!(!asked.is_empty() && asked.iter().all(|asked| asked == "polled in model_call"), "{asked:?}");
}

/// A model with a name, which gives this answer or fails before it.
struct Named(Result<Vec<Result<Delta, ErrorKind>>, ErrorKind>);

#[async_trait]
impl ChatModel for Named {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        let deltas = self.0.clone().map_err(|kind| Error::new(kind, "canary"))?;
        let deltas = deltas.into_iter().map(|delta| delta.map_err(|kind| Error::new(kind, "canary")));
        let aggregator = MessageAggregator::new(request.round);
        Ok(ChunkStream::from_deltas(aggregator, futures::stream::iter(deltas.collect::<Vec<_>>())))
    }

    fn name(&self) -> &str {
        "example"
    }

    fn model_name(&self) -> Option<&str> {
        Some("own-model")
    }
}

/// Returns the fields of one model call's span, without those that every call has and without the time.
async fn told_by(model: Named, options: ChatOptions) -> BTreeMap<&'static str, String> {
    let spans = Spans::new();
    let installed = spans.install();
    let chain = ChatClient::builder(model).build().unwrap().chain().clone();
    let request = ChatRequest { options, ..ChatRequest::new(Message::user("canary")) };
    let _: Vec<_> = chain.stream(request).collect().await;
    drop(installed);
    assert_eq!(spans.still_open(), 0);
    let mut told = spans.told("model_call").pop().unwrap();
    assert!(!format!("{told:?}").contains("canary"), "{told:?}");
    for (field, value) in [
        ("model_call", "1"),
        ("gen_ai.operation.name", "\"chat\""),
        ("gen_ai.provider.name", "\"example\""),
        ("gen_ai.request.stream", "true"),
    ] {
        assert_eq!(told.remove(field).as_deref(), Some(value));
    }
    told.remove("gen_ai.response.time_to_first_chunk");
    told
}

#[tokio::test]
async fn model_call_span_records_model_usage_finish_error() {
    let said =
        || [Ok(Delta::origin(Some("r".into()), Some("own-model-2026".into()))), Ok(Delta::text("canary"))];
    let finish = |reason: FinishReason| Ok(Delta::finish(reason));
    let answer = |rest: Vec<Result<Delta, ErrorKind>>| Named(Ok(said().into_iter().chain(rest).collect()));
    let told = |fields: &[(&'static str, &str)]| {
        fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect::<BTreeMap<_, _>>()
    };
    let requested = ("gen_ai.request.model", "\"own-model\"");
    let responded = ("gen_ai.response.model", "\"own-model-2026\"");
    let id = ("gen_ai.response.id", "\"r\"");

    let whole =
        answer(vec![finish(FinishReason::Stop), Ok(Delta::usage(Usage::new(7, 3))), Ok(Delta::done())]);
    let counts = [("gen_ai.usage.input_tokens", "7"), ("gen_ai.usage.output_tokens", "3")];
    let stopped = ("gen_ai.response.finish_reasons", "[\"stop\"]");
    let expected = told(&[requested, responded, id, counts[0], counts[1], stopped]);
    assert_eq!(told_by(whole, ChatOptions::default()).await, expected);

    // The request's own name goes first; what is not known is not told.
    let unknown = answer(vec![finish(FinishReason::Other("odd_reason".into())), Ok(Delta::done())]);
    let known =
        told_by(unknown, ChatOptions { model: Some("asked-for".into()), ..ChatOptions::default() }).await;
    let odd = ("gen_ai.response.finish_reasons", "[\"odd_reason\"]");
    assert_eq!(known, told(&[("gen_ai.request.model", "\"asked-for\""), responded, id, odd]));
    // A reason that is a sentence may be anything.
    let sentence =
        answer(vec![finish(FinishReason::Other("because canary said so".into())), Ok(Delta::done())]);
    assert_eq!(
        told_by(sentence, ChatOptions::default()).await["gen_ai.response.finish_reasons"],
        "[\"other\"]"
    );

    let at_once = Named(Err(ErrorKind::RateLimited { retry_after: None }));
    assert_eq!(
        told_by(at_once, ChatOptions::default()).await,
        told(&[requested, ("error.type", "\"rate_limited\"")])
    );
    let amid = answer(vec![Ok(Delta::usage(Usage::new(7, 3))), Err(ErrorKind::Connection)]);
    let known = told_by(amid, ChatOptions::default()).await;
    assert_eq!(
        known,
        told(&[requested, responded, id, counts[0], counts[1], ("error.type", "\"connection\"")])
    );
    // It ends without an end.
    let known = told_by(answer(vec![]), ChatOptions::default()).await;
    assert_eq!(known, told(&[requested, responded, id, ("error.type", "\"truncated\"")]));
}

#[tokio::test(start_paused = true)]
async fn model_call_span_records_time_to_first_chunk_once() {
    let spans = Spans::new();
    let _installed = spans.install();
    let slow =
        |answer: Answer, text: &str| answer.wait(tokio::time::sleep(Duration::from_secs(2))).text(text);
    let answer = slow(slow(Answer::new(), "a"), "b").finish(FinishReason::Stop);
    let chain = ChatClient::builder(ScriptedModel::new([answer])).build().unwrap().chain().clone();
    let _: Vec<_> = chain.stream(ChatRequest::new(Message::user("?"))).collect().await;
    let told = spans.told("model_call").pop().unwrap();
    let time: f64 = told["gen_ai.response.time_to_first_chunk"].parse().unwrap();
    assert!((2.0..2.1).contains(&time), "{time}");
}
