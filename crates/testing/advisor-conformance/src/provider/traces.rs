//! A clause about spans and logs.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{FinishReason, Message};
use tracing::dispatcher::DefaultGuard;
use tracing::subscriber::{set_default, set_global_default};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

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

/// Collects the spans and logs that are written to it.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<Vec<u8>>>);

impl Traces {
    /// Captures the spans and logs of this thread, with all fields, until the guard is dropped.
    fn capture() -> (Self, DefaultGuard) {
        // A single subscriber would miss callsites that another thread reached first.
        let _others = set_global_default(tracing_subscriber::registry());
        let traces = Self::default();
        let (writer, all) = (traces.clone(), tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE));
        let all = all.with_span_events(FmtSpan::FULL).with_writer(move || writer.clone());
        let guard = set_default(all.finish());
        (traces, guard)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl io::Write for Traces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
