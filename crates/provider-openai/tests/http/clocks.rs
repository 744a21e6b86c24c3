//! The clocks of an answer, on paused time.

use std::time::Duration;

use advisor_core::{ChatModel, ErrorKind};
use futures::StreamExt;
use provider_openai::timeouts::Timeouts;
use tokio::time::{Instant, sleep};

use crate::common::{Act, DONE, HI, SECOND, STOP, Scripted, call, fail, request};

use Act::{Break, Hang, Send, Wait};

async fn timed(script: Scripted, timeouts: Timeouts) -> (ErrorKind, Duration) {
    let begin = Instant::now();
    let error = fail(&script.model().with_timeouts(timeouts)).await;
    (error.kind(), begin.elapsed())
}

#[tokio::test(start_paused = true)]
async fn nothing_comes_at_all() {
    let timeouts = Timeouts::default().with_first_byte(Some(30 * SECOND));
    let script = Scripted::default().answer([Hang]);
    assert_eq!(timed(script, timeouts).await, (ErrorKind::Timeout, 30 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_answer_stops_in_the_middle() {
    let timeouts = Timeouts::default().with_idle(Some(20 * SECOND));
    let script = Scripted::default().answer([Send(HI), Wait(19 * SECOND), Send(HI), Hang]);
    assert_eq!(timed(script, timeouts).await, (ErrorKind::Timeout, 39 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn comments_are_a_sign_of_life_but_no_progress() {
    let alive = || {
        [Send(HI)].into_iter().chain([Wait(15 * SECOND), Send(": alive\n\n"), Send("data:\n\n")].repeat(10))
    };
    let timeouts = Timeouts::default().with_idle(Some(20 * SECOND));
    let patient = Scripted::default().answer(alive().chain([Send(STOP), Send(DONE)]).collect::<Vec<_>>());
    assert_eq!(call(&patient.model().with_timeouts(timeouts)).await.expect("completed").text(), "Hi");
    let impatient = Scripted::default().answer(alive().collect::<Vec<_>>());
    let timeouts = timeouts.with_progress(Some(100 * SECOND));
    assert_eq!(timed(impatient, timeouts).await, (ErrorKind::Timeout, 100 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn each_event_is_progress() {
    let events = [Send(HI), Wait(15 * SECOND)].repeat(10);
    let script = Scripted::default().answer([events, vec![Send(STOP), Send(DONE)]].concat());
    let timeouts = Timeouts::default().with_idle(Some(20 * SECOND)).with_progress(Some(20 * SECOND));
    assert_eq!(
        call(&script.model().with_timeouts(timeouts)).await.expect("completed").text(),
        "Hi".repeat(10)
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_no_stalled_server() {
    let timeouts = Timeouts::default().with_idle(Some(SECOND)).with_progress(Some(SECOND));
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
async fn the_grace_begins_anew_with_each_event_and_then_runs_out() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let script = Scripted::default().answer([Send(HI), Send(STOP), Wait(4 * SECOND), Send(usage), Hang]);
    let begin = Instant::now();
    let response = call(&script.model()).await.expect("completed");
    assert_eq!(response.usage().and_then(|usage| usage.input_tokens), Some(3));
    // The default grace of five seconds, after the four before the usage.
    assert_eq!(begin.elapsed(), 9 * SECOND);

    let comments = [Wait(3 * SECOND), Send(": alive\n\n")].repeat(100);
    let script = Scripted::default().answer([vec![Send(HI), Send(STOP)], comments].concat());
    let begin = Instant::now();
    call(&script.model()).await.expect("completed");
    assert_eq!(begin.elapsed(), 5 * SECOND, "comments do not prolong it");
}

#[tokio::test(start_paused = true)]
async fn a_second_call_within_the_grace_is_not_lost() {
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
async fn after_the_end_marker_nobody_waits_long() {
    for events in [vec![Send(HI), Send(STOP), Send(DONE)], vec![Send(HI), Send(DONE)]] {
        let comments = [Wait(Duration::from_millis(100)), Send(": alive\n\n")].repeat(100);
        let script = Scripted::default().answer([events, comments].concat());
        let begin = Instant::now();
        call(&script.model()).await.expect("completed");
        assert_eq!(begin.elapsed(), Duration::from_millis(250));
    }
}

#[tokio::test(start_paused = true)]
async fn what_shows_nothing_is_not_waited_for_without_end() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n";
    let script = Scripted::default().answer([vec![Send(usage); 1000], vec![Hang]].concat());
    let stream = tokio::time::timeout(SECOND, script.model().stream(request())).await;
    assert!(stream.is_ok(), "the stream begins although nothing can be shown yet");
}
