//! Asking again: only while nothing was shown, counted at the server.

use std::time::Duration;

use advisor_core::{ChatModel, ErrorKind};
use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
use futures::StreamExt;
use provider_openai::backoff::Backoff;
use serde_json::json;
use tokio::time::Instant;

use crate::http::common::{Act, DONE, HI, SECOND, STOP, Scripted, call, fail, hello, model, request};

/// Two retries, at once.
fn at_once() -> Backoff {
    Backoff { first: Duration::ZERO, longest: Duration::ZERO, ..Backoff::default() }
}

fn error_event() -> Reply {
    Reply::sse(ChatTranscript::new("m").raw(json!({"error": {"message": "overloaded", "code": 503}})).done())
}

#[tokio::test]
async fn transient_failures_are_retried_until_success() {
    let good = || Reply::sse(hello().done());
    let beside =
        |error| json!({"choices": [{"delta": {"content": ""}, "finish_reason": "error"}], "error": error});
    let nameless =
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]});
    let cases = [
        vec![Reply::status(500), Reply::status(503), good()],
        vec![Reply::status(429), good()],
        vec![Reply::status(429).with_header("retry-after", "0"), Reply::status(529), good()],
        vec![Reply::hang_up(), Reply::reset(), good()],
        vec![error_event(), good()],
        vec![Reply::json(200, json!({"error": {"message": "m", "code": 502}})), good()],
        vec![Reply::json(400, json!({"error": {"message": "m", "code": "tool_use_failed"}})), good()],
        // The error beside an empty delta and a reason to finish, as OpenRouter sends it, alone and after such an event.
        vec![Reply::sse(ChatTranscript::new("m").raw(beside(json!({"code": 502}))).done()), good()],
        vec![
            Reply::sse(ChatTranscript::new("m").raw(beside(json!(null))).raw(beside(json!("m"))).done()),
            good(),
        ],
        // A call without a name makes no chunk.
        vec![Reply::sse(ChatTranscript::new("m").raw(nameless).raw(json!({"error": "m"})).done()), good()],
        // A connection that breaks after what shows nothing.
        vec![Reply::sse(ChatTranscript::new("m").text("").without_done()).cut_after(999), good()],
    ];
    for replies in cases {
        let requests = replies.len();
        let server = ReplayServer::start(replies).await.expect("a port");
        let response = call(&model(&server).with_retries(at_once())).await.expect("the last one is good");
        assert_eq!(response.text(), "Hello there");
        assert_eq!(server.counts().requests, requests);
        let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
        assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "the same is asked each time");
    }
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    let report = |message: &str| json!({"error": {"message": message}});
    for reply in [
        Reply::status(401),
        Reply::status(404),
        Reply::json(400, report("bad")),
        Reply::json(400, report("maximum context length")),
        Reply::json(429, json!({"error": {"message": "m", "code": "insufficient_quota"}})),
        Reply::html(200, "<p>"),
        Reply::sse("data: {broken\n\n"),
        Reply::sse(""),
    ] {
        let server = ReplayServer::start([reply, Reply::sse(hello().done())]).await.expect("a port");
        fail(&model(&server).with_retries(at_once())).await;
        assert_eq!(server.counts().requests, 1);
    }
}

#[tokio::test]
async fn retries_run_out() {
    let replies = [500, 502, 503, 504].map(Reply::status);
    let server = ReplayServer::start(replies).await.expect("a port");
    let error = fail(&model(&server).with_retries(at_once())).await;
    assert_eq!(error.kind(), ErrorKind::Provider { status: Some(503) });
    assert_eq!(server.counts().requests, 3);

    let server = ReplayServer::start([Reply::status(500)]).await.expect("a port");
    fail(&model(&server)).await;
    assert_eq!(server.counts().requests, 1);
}

#[tokio::test]
async fn once_something_was_shown_nothing_is_repeated() {
    let text = || ChatTranscript::new("m").text("Hello");
    let overloaded = json!({"error": {"message": "overloaded", "code": 503}});
    let cut = text().without_done();
    let call_begins = ChatTranscript::new("m").tool_call(0, "c", "f", &[]).raw(&overloaded).done();
    let thinks = ChatTranscript::new("m").reasoning("So").raw(&overloaded).done();
    for reply in [
        Reply::sse(cut.clone()).cut_after(cut.len()),
        Reply::sse(cut.clone()),
        Reply::sse(text().raw(&overloaded).done()),
        Reply::sse(call_begins),
        Reply::sse(thinks),
        Reply::sse(text().raw("{broken").done()),
    ] {
        let server = ReplayServer::start([reply, Reply::sse(hello().done())]).await.expect("a port");
        let error = fail(&model(&server).with_retries(at_once())).await;
        assert!(error.emitted() && !error.is_retryable());
        assert_eq!(server.counts().requests, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn server_delay_precedes_the_schedule() {
    let good = [Act::Send(HI), Act::Send(STOP), Act::Send(DONE)];
    for (retry_after, waited) in [("7", 7 * SECOND), ("0", Duration::ZERO), ("60", 60 * SECOND)] {
        for status in [429, 503] {
            let script = Scripted::default().status(status, Some(retry_after), []).answer(good);
            let begin = Instant::now();
            call(&script.model().with_retries(Backoff::default())).await.expect("the second is good");
            assert_eq!((begin.elapsed(), script.requests()), (waited, 2));
        }
    }
}

/// Whoever asks earlier is refused again. So the error comes at once, and says how long to wait.
#[tokio::test(start_paused = true)]
async fn longer_delay_than_the_bound_fails_at_once_and_is_told() {
    for status in [429, 503, 529] {
        let script = Scripted::default().status(status, Some("7200"), []).answer([Act::Send(HI)]);
        let begin = Instant::now();
        let error = fail(&script.model().with_retries(Backoff::default())).await;
        assert_eq!((begin.elapsed(), script.requests()), (Duration::ZERO, 1), "{status}");
        assert_eq!(error.retry_after(), Some(7200 * SECOND), "{status}");
        assert!(error.to_string().contains("ask again in 2 h"), "{error}");
        assert!(error.is_retryable(), "another one may be asked, or this one later");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_delay_the_schedule_counts() {
    let script = Scripted::default()
        .status(500, None, [])
        .status(500, None, [])
        .answer([Act::Send(HI), Act::Send(DONE)]);
    let begin = Instant::now();
    let waits = Backoff { first: 2 * SECOND, longest: 8 * SECOND, ..Backoff::default() };
    call(&script.model().with_retries(waits)).await.expect("the third is good");
    let waited = begin.elapsed();
    // The first wait is 1 to 2 s, the second 2 to 4 s.
    assert!(waited >= 3 * SECOND && waited <= 6 * SECOND + Duration::from_millis(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_retried_until_first_output() {
    let good = [Act::Send(HI), Act::Send(STOP), Act::Send(DONE)];
    let silent = Scripted::default().answer([Act::Hang]).answer(good);
    assert_eq!(call(&silent.model().with_retries(at_once())).await.expect("the second is good").text(), "Hi");
    assert_eq!(silent.requests(), 2);
    let stalls = Scripted::default().answer([Act::Send(HI), Act::Hang]).answer(good);
    let error = fail(&stalls.model().with_retries(at_once())).await;
    assert_eq!((error.kind(), error.emitted(), stalls.requests()), (ErrorKind::Timeout, true, 1));
}

#[tokio::test(start_paused = true)]
async fn dropped_call_sends_no_further_requests() {
    let script = Scripted::default().status(500, None, []).answer([Act::Send(HI), Act::Send(DONE)]);
    let model = script.model().with_retries(Backoff::default());
    let dropped = tokio::time::timeout(Duration::from_millis(1), model.stream(request())).await;
    assert!(dropped.is_err());
    tokio::time::advance(60 * SECOND).await;
    assert_eq!(script.requests(), 1);
    // The model itself is as good as new.
    let mut stream = model.stream(request()).await.expect("an answer");
    assert!(stream.next().await.is_some());
}
