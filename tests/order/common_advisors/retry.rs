//! `Retry`: repeats rounds that failed before any output, within bounds, and remembers each once.

use advisor_chain::advisors::Retry;
use advisor_chain::chain::Backoff;
use advisor_tests::prelude::*;
use tokio::time::{Instant, advance, timeout};

use crate::common_advisors::support::{Setting, looks, refused, says};

const SECOND: Duration = Duration::from_secs(1);

/// Waits of at most a second, in any number.
fn retry(retries: usize) -> Retry {
    Retry { backoff: Backoff { retries, first: SECOND, longest: SECOND, ..Backoff::default() } }
}

fn down() -> Answer {
    refused(ErrorKind::Connection)
}

/// Refusals and failures before the first chunk are repeated, in each round. Each answer is stored once.
#[tokio::test(start_paused = true)]
async fn law_m4_s4_repeated_rounds_are_remembered_once() {
    for remembers in PLACES {
        let fails = || Answer::new().error(Error::new(ErrorKind::Timeout, "silent"));
        let answers = [down(), fails(), looks(10), fails(), down(), says("Done.", 10)];
        let model = ScriptedModel::new(answers);
        let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        setting.client = setting.client.advisor(retry(2));
        let client = setting.client.clone().build().unwrap();
        let turn = client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_eq!((turn.text().as_str(), model.calls(), setting.runs()), ("Done.", 6, 1), "{remembers}");
        assert_eq!(setting.remembered().await, ["go", "Well. (look)", "= a result", "Done."]);
    }
}

/// After a part was shown, the error is returned as it is.
#[tokio::test(start_paused = true)]
async fn law_s1_nothing_is_repeated_after_output() {
    let model = ScriptedModel::new([
        Answer::new().text("It is ").error(Error::new(ErrorKind::Connection, "cut")),
        says("Never.", 10),
    ]);
    let client = ChatClient::builder(model.clone()).advisor(retry(2)).build().unwrap();
    let mut turn = client.prompt().user("?").stream();
    let mut text = String::new();
    let error = loop {
        match turn.next().await.unwrap() {
            Ok(chunk) => {
                assert!(!matches!(chunk, Chunk::AttemptRestarted { .. }));
                text.push_str(chunk.text().unwrap_or_default());
            }
            Err(error) => break error,
        }
    };
    assert_eq!((text.as_str(), error.kind(), model.calls()), ("It is ", ErrorKind::Connection, 1));
    assert!(error.emitted() && turn.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_repeated() {
    for kind in [ErrorKind::Authentication, ErrorKind::ContextOverflow, ErrorKind::InvalidRequest] {
        let model = ScriptedModel::new([refused(kind), says("Never.", 10)]);
        let client = ChatClient::builder(model.clone()).advisor(retry(2)).build().unwrap();
        assert_eq!(client.prompt().user("?").call().await.unwrap_err().kind(), kind);
        assert_eq!(model.calls(), 1);
    }
}

/// A tool has run: the error of a later round is repeated inside the loop, and not by a retry around the loop.
#[tokio::test(start_paused = true)]
async fn turn_with_tools_is_not_repeated_as_a_whole() {
    let model = ScriptedModel::new([looks(10), down(), says("Never.", 10)]);
    let mut setting = Setting::new(&model, Phase::Round, OnLimit::EndTurn);
    setting.client = setting.client.advisor_in(Phase::Turn, retry(2));
    let client = setting.client.clone().build().unwrap();
    let error = client.prompt().user("go").conversation("c").call().await.unwrap_err();
    assert_eq!((error.kind(), model.calls(), setting.runs()), (ErrorKind::Connection, 2, 1));
}

/// The schedule, or the delay that the provider asks for.
#[tokio::test(start_paused = true)]
async fn waits_follow_schedule_and_provider() {
    let asked = |seconds| refused(ErrorKind::RateLimited { retry_after: Some(seconds * SECOND) });
    let wait_of = async |first: Answer| {
        let model = ScriptedModel::new([first, says("Yes.", 10)]);
        let client = ChatClient::builder(model).advisor(retry(1)).build().unwrap();
        let begin = Instant::now();
        client.prompt().user("?").call().await.unwrap();
        begin.elapsed()
    };
    let own = wait_of(down()).await;
    assert!((SECOND / 2..=SECOND + SECOND / 100).contains(&own), "{own:?}");
    let of_provider = wait_of(asked(7)).await;
    assert!((7 * SECOND..7 * SECOND + SECOND / 100).contains(&of_provider), "{of_provider:?}");
}

/// Attempts and their time are bounded. The last error is returned, without a wait that would end too late.
#[tokio::test(start_paused = true)]
async fn law_t3_attempts_are_bounded() {
    let always_down = || ScriptedModel::from_fn(|_| down());
    let model = always_down();
    let client = ChatClient::builder(model.clone()).advisor(retry(3)).build().unwrap();
    assert_eq!(client.prompt().user("?").call().await.unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(model.calls(), 4);

    let model = always_down();
    let client = ChatClient::builder(model.clone()).advisor(retry(1_000)).build().unwrap();
    let begin = Instant::now();
    client.prompt().user("?").call().await.unwrap_err();
    assert!(begin.elapsed() <= 120 * SECOND + SECOND / 10, "{:?}", begin.elapsed());
    assert!((120..=241).contains(&model.calls()), "{}", model.calls());

    let late = refused(ErrorKind::RateLimited { retry_after: Some(121 * SECOND) });
    let model = ScriptedModel::new([late, says("Never.", 10)]);
    let client = ChatClient::builder(model).advisor(retry(1)).build().unwrap();
    let begin = Instant::now();
    let error = client.prompt().user("?").call().await.unwrap_err();
    assert_eq!((error.retry_after(), begin.elapsed()), (Some(121 * SECOND), Duration::ZERO));
}

/// A turn that is cancelled or dropped in a wait asks no more, and the next turn works.
#[tokio::test(start_paused = true)]
async fn law_k2_k4_turn_is_stopped_in_a_wait() {
    for remembers in PLACES {
        let model = ScriptedModel::new([down(), down(), says("Yes.", 10)]);
        let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        setting.client = setting.client.advisor(retry(5));
        let client = setting.client.clone().build().unwrap();
        let turn = |text: &str| client.prompt().user(text).conversation("c").stream();

        let mut dropped = turn("one");
        assert!(dropped.next().now_or_never().is_none(), "it waits");
        drop(dropped);
        let mut cancelled = turn("two");
        assert!(cancelled.next().now_or_never().is_none());
        cancelled.handle().cancel(OnDrop::KeepPartial);
        let last = timeout(SECOND / 100, cancelled.next()).await.unwrap();
        assert_eq!(last.unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
        advance(100 * SECOND).await;
        assert_eq!(model.calls(), 2, "{remembers}");
        let mut last = turn("three");
        let mut reason = None;
        while let Some(chunk) = last.next().await {
            reason = chunk.unwrap().completed().map(|response| response.finish.reason.clone());
        }
        assert_eq!(reason, Some(FinishReason::Stop));
        setting.remembered().await;
    }
}
