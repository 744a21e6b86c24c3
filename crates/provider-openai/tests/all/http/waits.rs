//! Tests that every wait on a server ends, on paused time.

use std::collections::BTreeMap;

use advisor_core::{Error, ErrorKind, async_trait};
use bytes::Bytes;
use futures::{StreamExt, stream};
use provider_openai::backoff::Backoff;
use provider_openai::timeouts::{Clock, TimedOut, Timeouts};
use provider_openai::transport::{ByteStream, Transport, TransportError};
use provider_openai::{OpenAiModel, ProviderError};
use tokio::time::Instant;

use crate::http::common::{Act, DONE, HI, SECOND, STOP, Scripted, call, fail};

use Act::{Break, Hang, Send, Wait};

const IDLE: u32 = 20;

fn timeouts() -> Timeouts {
    Timeouts {
        first_byte_timeout: Some(30 * SECOND),
        idle_timeout: Some(IDLE * SECOND),
        error_body_timeout: 7 * SECOND,
        whole_body_timeout: Some(90 * SECOND),
        ..Timeouts::default()
    }
}

/// A body that begins so, and then sends `piece` again and again, never waiting for as long as the clock of silence.
fn drips(begins: &[&'static str], piece: &'static str) -> Vec<Act> {
    let drops = [Wait((IDLE - 1) * SECOND), Send(piece)].repeat(1000);
    begins.iter().map(|begin| Send(begin)).chain(drops).collect()
}

fn hangs(begins: &[&'static str]) -> Vec<Act> {
    begins.iter().map(|begin| Send(begin)).chain([Hang]).collect()
}

/// The clock that ran out, where one did.
fn clock(error: &Error) -> Option<Clock> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(timed_out) = cause.downcast_ref::<TimedOut>() {
            return Some(timed_out.clock);
        }
        if let Some(TransportError::TimedOut(timed_out)) = cause.downcast_ref::<TransportError>() {
            return Some(timed_out.clock);
        }
        source = cause.source();
    }
    None
}

fn said(error: &Error) -> &str {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<ProviderError>());
    source.expect("what the provider said").message.as_str()
}

#[tokio::test(start_paused = true)]
async fn error_body_read_time_is_limited() {
    let kinds = BTreeMap::from([
        (302, ErrorKind::Configuration),
        (400, ErrorKind::InvalidRequest),
        (401, ErrorKind::Authentication),
        (429, ErrorKind::RateLimited { retry_after: None }),
        (500, ErrorKind::Provider { status: Some(500) }),
        (503, ErrorKind::Provider { status: Some(503) }),
    ]);
    for (status, kind) in kinds {
        for (acts, words) in [
            (hangs(&["so "]), "so"),
            (drips(&["so "], "x"), "so"),
            (drips(&["so "], ""), "so"),
            (
                [
                    Send("so "),
                    Wait(SECOND),
                    Send("it "),
                    Wait(5 * SECOND),
                    Send("is"),
                    Wait(2 * SECOND),
                    Send("!"),
                    Hang,
                ]
                .into(),
                "so it is",
            ),
            ([Send("so "), Wait(SECOND), Break].into(), "so"),
        ] {
            let script = Scripted::default().status(status, None, acts);
            let begin = Instant::now();
            let error = fail(&script.model().with_timeouts(timeouts())).await;
            assert_eq!((error.kind(), said(&error)), (kind, words), "{status}");
            assert!(begin.elapsed() <= 7 * SECOND, "{status}: {:?}", begin.elapsed());
        }
    }
    // The first byte has its own clock, which the body of an error does not prolong.
    let script = Scripted::default().status(500, None, [Wait(28 * SECOND), Send("x"), Hang]);
    let begin = Instant::now();
    fail(&script.model().with_timeouts(timeouts())).await;
    assert_eq!(begin.elapsed(), (28 + 7) * SECOND);
}

#[tokio::test(start_paused = true)]
async fn error_body_is_bounded_without_other_timeouts() {
    let none = Timeouts {
        first_byte_timeout: None,
        idle_timeout: None,
        whole_body_timeout: None,
        ..Timeouts::default()
    };
    for acts in [hangs(&[""]), drips(&[""], "x")] {
        let script = Scripted::default().status(429, None, acts);
        let begin = Instant::now();
        let error = fail(&script.model().with_timeouts(none)).await;
        assert_eq!(error.kind(), ErrorKind::RateLimited { retry_after: None });
        assert_eq!(begin.elapsed(), 10 * SECOND, "the default");
    }
}

#[tokio::test(start_paused = true)]
async fn non_stream_body_must_end() {
    let answer = "{\"choices\":[{\"message\":{\"content\":\"Hi\"}}]";
    for acts in [
        drips(&[answer], " "),
        drips(&[answer, ","], "\"x\":1,"),
        drips(&[" \n"], "\n"),
        drips(&["\u{feff}"], " "),
        drips(&["[\"1"], "1"),
    ] {
        let script = Scripted::default().answer(acts);
        let begin = Instant::now();
        let error = fail(&script.model().with_timeouts(timeouts())).await;
        assert_eq!((error.kind(), clock(&error)), (ErrorKind::Timeout, Some(Clock::WholeBody)));
        assert_eq!(begin.elapsed(), 90 * SECOND);
    }
    // The error about a web page takes precedence over the timeout.
    let begin = Instant::now();
    let page = Scripted::default().answer(drips(&["<!DOCTYPE html>"], "<p>"));
    assert_eq!(
        fail(&page.model().with_timeouts(timeouts())).await.kind(),
        ErrorKind::Protocol { position: None }
    );
    assert_eq!(begin.elapsed(), 90 * SECOND);
    // Blanks may keep the connection alive until an answer of either kind comes.
    let whole = "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";
    for answer in [vec![Send(whole)], vec![Send(HI), Wait(19 * SECOND), Send(HI), Send(STOP), Send(DONE)]] {
        let blanks = [Send("\n"), Wait(19 * SECOND)].repeat(4);
        let script = Scripted::default().answer([blanks, answer].concat());
        assert!(
            call(&script.model().with_timeouts(timeouts()))
                .await
                .expect("an answer")
                .text()
                .starts_with("Hi")
        );
    }
    // A stream has no such clock.
    let long = drips(&[HI], HI).into_iter().take(100).chain([Send(STOP), Send(DONE)]).collect::<Vec<_>>();
    assert!(call(&Scripted::default().answer(long).model().with_timeouts(timeouts())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn every_wait_on_a_server_ends() {
    let whole = "{\"choices\":[";
    let cases = [
        ("no head", hangs(&[]), Clock::FirstByte, 30),
        ("no byte", hangs(&[""]), Clock::FirstByte, 30),
        ("empty pieces", drips(&[""], ""), Clock::FirstByte, 30),
        ("silence before an event", hangs(&[": alive\n\n"]), Clock::Idle, IDLE),
        ("silence in an event", hangs(&["data: {"]), Clock::Idle, IDLE),
        ("silence after an event", hangs(&[HI]), Clock::Idle, IDLE),
        ("silence in JSON", hangs(&[whole]), Clock::Idle, IDLE),
        ("silence in blanks", hangs(&["\n"]), Clock::Idle, IDLE),
        ("JSON without end", drips(&[whole], " "), Clock::WholeBody, 90),
    ];
    for (what, acts, clock_of, seconds) in cases {
        let script = Scripted::default().answer(acts);
        let begin = Instant::now();
        let error = fail(&script.model().with_timeouts(timeouts())).await;
        assert_eq!((error.kind(), clock(&error)), (ErrorKind::Timeout, Some(clock_of)), "{what}");
        assert_eq!(begin.elapsed(), seconds * SECOND, "{what}");
    }
}

/// A server that is always faster than its reader, and never stops. Unlike a socket it lets no other task come to its turn.
struct Flood(&'static [&'static str], u16, &'static str);

#[async_trait]
impl Transport for Flood {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
        let Self(begins, status, piece) = *self;
        let body = stream::iter(begins.iter().copied().chain(std::iter::repeat(piece)));
        let body = body.map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
        Ok(http::Response::builder().status(status).body(body.boxed() as ByteStream).expect("a response"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_ends_too() {
    let floods: [(&'static [&'static str], &'static str); 5] = [
        (&[HI, STOP, DONE], ": more\n\n"),
        (&[HI, STOP, DONE], HI),
        (&[HI, STOP, DONE], ""),
        (&[HI, STOP], ": more\n\n"),
        (&[HI, STOP], ""),
    ];
    for (begins, piece) in floods {
        let model =
            OpenAiModel::new("m").with_transport(Flood(begins, 200, piece)).with_retries(Backoff::none());
        let answer = tokio::spawn(async move { call(&model).await });
        for _ in 0..100 {
            tokio::time::advance(SECOND / 10).await;
        }
        assert!(answer.is_finished(), "{begins:?} {piece:?}");
        assert_eq!(answer.await.expect("no panic").expect("completed").text(), "Hi");
    }
    for piece in ["", "x"] {
        let model =
            OpenAiModel::new("m").with_transport(Flood(&[], 500, piece)).with_retries(Backoff::none());
        assert_eq!(fail(&model).await.kind(), ErrorKind::Provider { status: Some(500) });
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_cannot_ask_for_any_wait() {
    for asked in ["99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "86400"] {
        let script = Scripted::default().status(503, Some(asked), []).answer([Send(HI)]);
        let begin = Instant::now();
        let error = fail(&script.model().with_retries(Backoff::default())).await;
        assert_eq!((begin.elapsed().as_secs(), script.requests()), (0, 1), "{asked}: {error}");
    }
    let odd = Scripted::default().status(503, Some("1e30"), []).answer([Send(HI), Send(STOP), Send(DONE)]);
    call(&odd.model().with_retries(Backoff::default())).await.expect("the second is good");
}
