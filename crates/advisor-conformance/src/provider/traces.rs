//! A clause about spans and logs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{FinishReason, Message};
use tracing::dispatcher::{DefaultGuard, set_default};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use super::family::AnswerPart::{Call, End, Failure, Finish, Text};
use super::family::WireFamily;
use super::run::{chain, reply, request, server, within};
use advisor_testkit::Reply;

const QUESTION: &str = "canary question";
const ANSWER: &str = "canary answer";
const WORDS: &str = "canary words";

/// Law R3: no span and no log shows a secret or content. It shows no key and no text of the request, no text of the
/// answer, and no message of a failure.
pub async fn law_r3_traces_show_no_secret_and_no_content(family: &dyn WireFamily) {
    let call = Call { id: "call_1", name: "look", arguments: &["{\"for\":\"canary arguments\"}"] };
    let replies = [
        reply(family, &[Text(ANSWER), Finish(FinishReason::Stop), End]),
        reply(family, &[call, Finish(FinishReason::ToolCalls), End]),
        reply(family, &[Text(ANSWER), Failure(WORDS)]),
        reply(family, &[Text(ANSWER)]),
        Reply::json(401, family.failure(WORDS)),
        Reply::json(500, family.failure(WORDS)),
    ];
    let calls = replies.len();
    let server = server(replies).await;
    let chain = chain(family, &server);
    let (traces, guard) = Traces::capture();
    for _ in 0..calls {
        // Whether a call succeeds is a matter of other clauses.
        let _outcome = within("the answer", chain.next_call(request(Message::user(QUESTION)))).await;
    }
    drop(guard);
    let traced = traces.text();
    assert!(traced.contains("model_call"), "the traces were captured: {traced}");
    assert!(!traced.contains("canary"), "{traced}");
    for (name, value) in server.requests().iter().flat_map(|request| &request.headers) {
        let is_secret = ["authorization", "key", "token"].iter().any(|word| name.as_str().contains(word));
        let value = value.to_str().unwrap_or_default();
        let key = value.strip_prefix("Bearer ").unwrap_or(value);
        assert!(!is_secret || key.is_empty() || !traced.contains(key), "the key is shown: {traced}");
    }
}

/// Keeps the names and the fields of all spans and events.
#[derive(Debug, Clone, Default)]
struct Traces(Arc<Mutex<String>>);

impl Traces {
    /// Captures the spans and logs of this thread until the guard is dropped.
    fn capture() -> (Self, DefaultGuard) {
        // A single subscriber would miss callsites that another thread reached first.
        let _others = tracing::subscriber::set_global_default(Self::default());
        let traces = Self::default();
        let guard = set_default(&Dispatch::new(traces.clone()));
        (traces, guard)
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_str(text);
        all.push('\n');
    }
}

impl Visit for &Traces {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(&format!("{field}={value:?}"));
    }
}

impl Subscriber for Traces {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.push(span.metadata().name());
        span.record(&mut &*self);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut &*self);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.push(event.metadata().name());
        event.record(&mut &*self);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
