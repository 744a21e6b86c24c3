//! The clocks of an answer, on paused time.

use std::task::Poll;
use std::time::Duration;

use advisor_core::{ChatModel, ErrorKind, async_trait};
use bytes::Bytes;
use futures::{StreamExt, stream};
use provider_openai::OpenAiModel;
use provider_openai::backoff::Backoff;
use provider_openai::timeouts::Timeouts;
use provider_openai::transport::{ByteStream, Transport, TransportError};
use tokio::time::{Instant, advance, sleep};

use crate::http::common::{Act, DONE, HI, SECOND, STOP, Scripted, call, fail, request};

use Act::{Break, Hang, Send, Wait};

async fn timed(script: Scripted, timeouts: Timeouts) -> (ErrorKind, Duration) {
    let begin = Instant::now();
    let error = fail(&script.model().with_timeouts(timeouts)).await;
    (error.kind(), begin.elapsed())
}

#[tokio::test(start_paused = true)]
async fn silent_server_times_out() {
    let timeouts = Timeouts { first_byte_timeout: Some(30 * SECOND), ..Timeouts::default() };
    let script = Scripted::default().answer([Hang]);
    assert_eq!(timed(script, timeouts).await, (ErrorKind::Timeout, 30 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_answer_stops_in_the_middle() {
    let timeouts = Timeouts { idle_timeout: Some(20 * SECOND), ..Timeouts::default() };
    let script = Scripted::default().answer([Send(HI), Wait(19 * SECOND), Send(HI), Hang]);
    assert_eq!(timed(script, timeouts).await, (ErrorKind::Timeout, 39 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn comments_reset_idle_but_not_progress_timeout() {
    let alive = || {
        [Send(HI)].into_iter().chain([Wait(15 * SECOND), Send(": alive\n\n"), Send("data:\n\n")].repeat(10))
    };
    let timeouts = Timeouts { idle_timeout: Some(20 * SECOND), ..Timeouts::default() };
    let patient = Scripted::default().answer(alive().chain([Send(STOP), Send(DONE)]).collect::<Vec<_>>());
    assert_eq!(call(&patient.model().with_timeouts(timeouts)).await.expect("completed").text(), "Hi");
    let impatient = Scripted::default().answer(alive().collect::<Vec<_>>());
    let timeouts = Timeouts { progress_timeout: Some(100 * SECOND), ..timeouts };
    assert_eq!(timed(impatient, timeouts).await, (ErrorKind::Timeout, 100 * SECOND));
}

/// Every wait has an end, also beside a server that only says that it works.
#[tokio::test(start_paused = true)]
async fn comments_alone_do_not_keep_an_answer_for_ever() {
    let alive = [Send(HI)].into_iter().chain([Wait(60 * SECOND), Send(": alive\n\n")].repeat(1_000));
    let script = Scripted::default().answer(alive.collect::<Vec<_>>());
    assert_eq!(timed(script, Timeouts::default()).await, (ErrorKind::Timeout, 30 * 60 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn each_event_is_progress() {
    let events = [Send(HI), Wait(15 * SECOND)].repeat(10);
    let script = Scripted::default().answer([events, vec![Send(STOP), Send(DONE)]].concat());
    let timeouts = Timeouts {
        idle_timeout: Some(20 * SECOND),
        progress_timeout: Some(20 * SECOND),
        ..Timeouts::default()
    };
    assert_eq!(
        call(&script.model().with_timeouts(timeouts)).await.expect("completed").text(),
        "Hi".repeat(10)
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_no_stalled_server() {
    let timeouts =
        Timeouts { idle_timeout: Some(SECOND), progress_timeout: Some(SECOND), ..Timeouts::default() };
    let script = Scripted::default().answer([Send(HI), Send(HI), Send(STOP), Send(DONE)]);
    let mut stream = script.model().with_timeouts(timeouts).stream(request()).await.expect("an answer");
    let mut chunks = 0;
    while let Some(chunk) = stream.next().await {
        chunk.expect("nothing is late");
        chunks += 1;
        sleep(60 * SECOND).await;
    }
    assert!(chunks >= 4, "{chunks}");
}

#[tokio::test(start_paused = true)]
async fn grace_counts_from_finish_despite_later_noise() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let empty = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let no_call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\"}}]}}]}\n\n";
    for again in [usage, empty, no_call, STOP, "data:\n\n", ": alive\n\n"] {
        let forever = [Wait(3 * SECOND), Send(again)].repeat(100);
        let script = Scripted::default().answer([vec![Send(HI), Send(STOP)], forever].concat());
        let begin = Instant::now();
        let response = call(&script.model()).await.expect("completed");
        assert_eq!(begin.elapsed(), 5 * SECOND, "{again}");
        let counted = response.usage.and_then(|usage| usage.input_tokens);
        assert_eq!(counted, (again == usage).then_some(3), "what comes within it is taken");
        assert_eq!(response.tool_calls().count(), 0);
    }
}

/// Some servers give a reason to finish with every piece.
#[tokio::test(start_paused = true)]
async fn content_after_finish_reason_is_awaited() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let script =
        Scripted::default().answer([[Send(piece), Wait(4 * SECOND)].repeat(10), vec![Hang]].concat());
    let begin = Instant::now();
    assert_eq!(call(&script.model()).await.expect("completed").text(), "Hi".repeat(10));
    assert_eq!(begin.elapsed(), (9 * 4 + 5) * SECOND, "the grace counts from the last piece");
}

/// A piece of the answer arrives together with an event that adds nothing to it.
#[tokio::test(start_paused = true)]
async fn content_behind_token_counts_is_awaited() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let both = format!("{usage}{HI}").leak();
    let script = Scripted::default().answer(
        [vec![Send(HI); 3], vec![Send(STOP)], [Wait(4 * SECOND), Send(both)].repeat(10), vec![Hang]].concat(),
    );
    let begin = Instant::now();
    assert_eq!(call(&script.model()).await.expect("completed").text(), "Hi".repeat(13));
    assert_eq!(begin.elapsed(), (10 * 4 + 5) * SECOND, "the grace counts from the last piece");
}

/// A server that is faster than its reader, and never stops.
struct Flood;

#[async_trait]
impl Transport for Flood {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
        let comments = stream::poll_fn(|cx| {
            // As a socket does, so that the other tasks come to their turn.
            let budget = std::task::ready!(tokio::task::coop::poll_proceed(cx));
            budget.made_progress();
            Poll::Ready(Some(Ok(Bytes::from_static(b": alive\n\n"))))
        });
        let answer = stream::iter([HI, STOP].map(|event| Ok(Bytes::from_static(event.as_bytes()))));
        Ok(http::Response::new(answer.chain(comments).boxed()))
    }
}

#[tokio::test(start_paused = true)]
async fn comment_flood_does_not_extend_grace() {
    let model = OpenAiModel::new("m").with_transport(Flood).with_retries(Backoff::none());
    let answer = tokio::spawn(async move { call(&model).await });
    for _ in 0..10 {
        advance(SECOND).await;
    }
    assert!(answer.is_finished());
    assert_eq!(answer.await.expect("no panic").expect("completed").text(), "Hi");
}

#[tokio::test(start_paused = true)]
async fn second_call_within_grace_is_not_lost() {
    let call_event = |index: u32| match index {
        0 => {
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n"
        }
        _ => {
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n"
        }
    };
    let script =
        Scripted::default().answer([Send(call_event(0)), Wait(4 * SECOND), Send(call_event(1)), Break]);
    let response = call(&script.model()).await.expect("completed");
    assert_eq!(response.tool_calls().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn end_marker_bounds_the_wait() {
    for events in [vec![Send(HI), Send(STOP), Send(DONE)], vec![Send(HI), Send(DONE)]] {
        let comments = [Wait(Duration::from_millis(100)), Send(": alive\n\n")].repeat(100);
        let script = Scripted::default().answer([events, comments].concat());
        let begin = Instant::now();
        call(&script.model()).await.expect("completed");
        assert_eq!(begin.elapsed(), Duration::from_millis(250));
    }
}

#[tokio::test(start_paused = true)]
async fn stream_begins_despite_many_invisible_events() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let script = Scripted::default().answer([vec![Send(usage); 1000], vec![Hang]].concat());
    let stream = tokio::time::timeout(SECOND, script.model().stream(request())).await;
    assert!(stream.is_ok(), "the stream begins although nothing can be shown yet");
}
