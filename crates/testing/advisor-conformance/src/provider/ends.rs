//! Clauses about answers that fail, and about requests that are refused.

use std::time::Duration;

use advisor_core::{ErrorKind, text_with_sources};

use super::family::AnswerPart::{Call, CutCall, Failure, Malformed, Text};
use super::family::{AnswerPart, WireFamily};
use super::play::{play, play_if_any};
use super::run::{chain, question, read, reply, server, within};
use advisor_testkit::Reply;

const LOOK: AnswerPart = Call { id: "call_look_1", name: "look", arguments: &["{\"at\":\"it\"}"] };
/// The message of a failure.
const WORDS: &str = "the machine is on fire";

/// A body that ends without a finish reason or an end marker is a truncated answer. It keeps its text, and none of
/// its calls runs.
pub async fn end_of_body_needs_a_finish(family: &dyn WireFamily) {
    play(family, &[Text("Good"), Text(" mor")]).await;
    play(family, &[Text("Let me look."), LOOK]).await;
}

/// A call of which only the beginning arrived never runs.
pub async fn cut_call_never_runs(family: &dyn WireFamily) {
    let cut = CutCall { id: "call_cut_1", name: "remove", arguments: "{\"path\":\"/tmp" };
    play_if_any(family, &[Text("Let me clean up."), cut]).await;
}

/// A connection that breaks before the end of the answer is an error.
pub async fn broken_connection_is_an_error(family: &dyn WireFamily) {
    let whole = [Text("Good"), Text(" morning")];
    let reply = reply(family, &whole);
    let length = reply.pieces().concat().len();
    let server = server([reply.cut_after(length)]).await;
    let run = read(&chain(family, &server), question()).await;
    let error = run.end.expect_err("a broken connection is an error");
    assert!(matches!(error.kind(), ErrorKind::Connection | ErrorKind::Truncated), "{error:?}");
    assert_eq!(error.partial().map(|partial| partial.text()).as_deref(), Some("Good morning"));
}

/// A failure after text is an error, and keeps the text.
pub async fn failure_follows_text(family: &dyn WireFamily) {
    play(family, &[Text("Good"), Text(" mor"), Failure(WORDS)]).await;
}

/// None of the calls before a failure runs.
pub async fn failure_follows_call(family: &dyn WireFamily) {
    play(family, &[Text("Let me look."), LOOK, Failure(WORDS)]).await;
}

/// A failure in place of the answer is an error with the server's words.
pub async fn failure_may_come_first(family: &dyn WireFamily) {
    play(family, &[Failure(WORDS)]).await;
    let server = server([reply(family, &[Failure(WORDS)])]).await;
    let run = read(&chain(family, &server), question()).await;
    let error = run.end.expect_err("a failure is an error");
    assert!(text_with_sources(&error).contains(WORDS), "the server's words are the source: {error:?}");
}

/// Malformed JSON is an error of the protocol, and keeps the text.
pub async fn malformed_event_is_an_error(family: &dyn WireFamily) {
    play(family, &[Text("Good"), Text(" mor"), Malformed]).await;
}

/// The status of a refused request has its kind. The delay that the server asks for is kept.
pub async fn status_has_its_kind(family: &dyn WireFamily) {
    let seconds = Some(Duration::from_secs(7));
    let cases = [
        (400, ErrorKind::InvalidRequest),
        (401, ErrorKind::Authentication),
        (403, ErrorKind::Authentication),
        (404, ErrorKind::NotFound),
        (429, ErrorKind::RateLimited { retry_after: seconds }),
        (500, ErrorKind::Provider { status: Some(500) }),
        (503, ErrorKind::Provider { status: Some(503) }),
    ];
    for (status, kind) in cases {
        let refusal = Reply::json(status, family.failure(WORDS)).with_header("retry-after", "7");
        let server = server([refusal]).await;
        let chain = chain(family, &server);
        let error = within("the refusal", chain.next_call(question())).await.expect_err("a refused request");
        assert_eq!(error.kind(), kind, "status {status}: {error:?}");
        assert!(text_with_sources(&error).contains(WORDS), "the server's words are the source: {error:?}");
        assert_eq!(server.requests().len(), 1, "the model sends each request once: switch retries off");
    }
}
