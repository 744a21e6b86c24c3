//! `RateLimit`: bounds calls in any span and at once, for all or each tenant; each end gives its place back.

use advisor_chain::advisors::RateLimit;
use advisor_tests::prelude::*;
use futures::future::join_all;
use tokio::time::{Instant, timeout};

use crate::common_advisors::support::{Setting, looks, refused, says, tool};

const SECOND: Duration = Duration::from_secs(1);

fn client(model: &ScriptedModel, limit: RateLimit) -> ChatClient {
    ChatClient::builder(model.clone()).advisor(limit).build().unwrap()
}

/// Reads a turn to its end.
async fn end_of(mut turn: TurnStream) -> Result<(), Error> {
    while let Some(chunk) = turn.next().await {
        chunk?;
    }
    Ok(())
}

/// Polls a turn until it waits.
fn begin(turn: &mut TurnStream) {
    while let Some(Some(chunk)) = turn.next().now_or_never() {
        chunk.unwrap();
    }
}

/// In no span of the length do more calls begin, whenever they come. They are served in their order.
#[tokio::test(start_paused = true)]
async fn law_t3_calls_in_any_span_are_bounded() {
    let begun = Arc::<Mutex<Vec<(String, Instant)>>>::default();
    let notes = Arc::clone(&begun);
    let model = ScriptedModel::from_fn(move |prompt| {
        let user = prompt.messages.last().unwrap().text();
        notes.lock().unwrap().push((user, Instant::now()));
        says("Yes.", 10)
    });
    let client = client(&model, RateLimit::for_all().with_calls(3, 10 * SECOND));
    let ask = |number: usize| end_of(client.prompt().user(format!("{number:02}")).stream());
    let turns = (0..12).map(|number| {
        let turn = ask(number);
        // In steps, so that calls come before, in and after the spans of earlier ones.
        async move {
            tokio::time::sleep(Duration::from_millis(1_700 * number as u64)).await;
            turn.await.unwrap();
        }
    });
    join_all(turns).await;
    let begun = begun.lock().unwrap().clone();
    assert!(begun.is_sorted_by_key(|(user, _)| user.clone()), "{begun:?}");
    let spans: Vec<_> = begun.windows(4).map(|calls| calls[3].1 - calls[0].1).collect();
    assert!(spans.iter().all(|span| *span >= 10 * SECOND), "{spans:?}");
    let longest = begun[11].1 - begun[0].1;
    assert!(longest <= Duration::from_millis(33_410), "no call waits longer than it must: {longest:?}");
}

/// Beyond the longest wait a call fails at once, with the delay after which it may begin.
#[tokio::test(start_paused = true)]
async fn call_that_waits_too_long_is_rate_limited() {
    let model = ScriptedModel::from_fn(|_| says("Yes.", 10));
    let limit = RateLimit::for_all().with_calls(1, 10 * SECOND).with_wait_timeout(4 * SECOND);
    let client = client(&model, limit);
    let ask = || client.prompt().user("?").call();
    ask().await.unwrap();
    tokio::time::advance(3 * SECOND).await;
    let begin = Instant::now();
    let error = ask().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited { retry_after: Some(7 * SECOND) });
    assert!(error.is_retryable() && begin.elapsed().is_zero());
    assert_eq!(model.calls(), 1);
    tokio::time::advance(7 * SECOND).await;
    ask().await.unwrap();
    // The first of two that wait takes the place, and the second learns that it would wait longer.
    tokio::time::advance(7 * SECOND).await;
    let (first, second) = tokio::join!(ask(), ask());
    assert!(first.is_ok());
    let delay = second.unwrap_err().retry_after().unwrap();
    assert!((9 * SECOND..=10 * SECOND).contains(&delay), "{delay:?}");
}

#[tokio::test(start_paused = true)]
async fn law_t3_calls_at_once_are_bounded() {
    let gates: Vec<_> = (0..3).map(|_| Gate::new()).collect();
    let answers: Vec<_> =
        gates.iter().map(|gate| Answer::new().text("Yes").gate(gate).text(".").done()).collect();
    let model = ScriptedModel::new(answers);
    let client = client(&model, RateLimit::for_all().with_concurrency(2).with_wait_timeout(5 * SECOND));
    let mut turns: Vec<_> = (0..3).map(|_| client.prompt().user("?").stream()).collect();
    turns.iter_mut().for_each(begin);
    assert_eq!(model.calls(), 2, "the third waits");
    let third = turns.pop().unwrap();
    let refused = timeout(6 * SECOND, end_of(third)).await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::RateLimited { retry_after: None }, "nobody knows when one ends");
    gates[0].release();
    let mut third = client.prompt().user("?").stream();
    begin(&mut third);
    assert_eq!(model.calls(), 2);
    end_of(turns.remove(0)).await.unwrap();
    begin(&mut third);
    assert_eq!(model.calls(), 3);
}

/// A call that completes, fails, is dropped in its wait, or is dropped in its answer gives its place back.
#[tokio::test(start_paused = true)]
async fn law_r2_every_end_gives_the_place_back() {
    let cut = || Answer::new().text("It").error(Error::new(ErrorKind::Connection, "cut"));
    let hangs = || Answer::new().text("It").hang();
    let model =
        ScriptedModel::new([says("Yes.", 10), refused(ErrorKind::Authentication), cut(), hangs(), hangs()]);
    let limit = RateLimit::for_all().with_concurrency(1).with_calls(100, SECOND).with_wait_timeout(SECOND);
    let client = client(&model, limit);
    let turn = || client.prompt().user("?").stream();
    end_of(turn()).await.unwrap();
    assert_eq!(end_of(turn()).await.unwrap_err().kind(), ErrorKind::Authentication);
    assert_eq!(end_of(turn()).await.unwrap_err().kind(), ErrorKind::Connection);
    let mut running = turn();
    begin(&mut running);
    let mut waiting = turn();
    begin(&mut waiting);
    assert_eq!(model.calls(), 4);
    drop(waiting);
    drop(running);
    let mut last = turn();
    begin(&mut last);
    assert_eq!(model.calls(), 5);
}

/// A call that is dropped while it waits for its time takes no place in the span.
#[tokio::test(start_paused = true)]
async fn law_r2_dropped_wait_takes_no_place() {
    let model = ScriptedModel::from_fn(|_| says("Yes.", 10));
    let client = client(&model, RateLimit::for_all().with_calls(1, 10 * SECOND));
    let turn = || client.prompt().user("?").stream();
    end_of(turn()).await.unwrap();
    let (mut first, mut second) = (turn(), turn());
    begin(&mut first);
    begin(&mut second);
    drop(first);
    let begin = Instant::now();
    end_of(second).await.unwrap();
    assert!(begin.elapsed() <= 10 * SECOND + SECOND / 100, "{:?}", begin.elapsed());
}

/// The place is free before tools run, so a tool may ask the same chain, with one call at once.
#[tokio::test(start_paused = true)]
async fn law_t3_nested_turn_takes_place_of_outer_turn() {
    let nested = || Answer::from_calls([("c1", "ask", "{}")]);
    let model = ScriptedModel::new([nested(), says("Inner.", 10), says("Outer.", 10)]);
    let limit = RateLimit::for_all().with_concurrency(1);
    let inner = advisor_chain::client(model.clone()).advisor(limit.clone()).build().unwrap();
    let ask = tool("ask", move |call| {
        let turn = inner.prompt().inside(&call).user("inner");
        async move { Ok(turn.call().await.map(|response| response.text())?) }
    });
    let client = advisor_chain::client(model.clone()).advisor(limit).tool(ask).build().unwrap();
    let turn = timeout(SECOND, client.prompt().user("outer").call()).await.unwrap().unwrap();
    assert_eq!((turn.text().as_str(), model.calls()), ("Outer.", 3));
    let results: Vec<_> = turn.transcript.iter().filter_map(|message| message.tool_result()).collect();
    assert_eq!(results[0].text(), "Inner.");
}

#[tokio::test(start_paused = true)]
async fn law_m5_tenants_do_not_wait_for_one_another() {
    let model = ScriptedModel::from_fn(|_| says("Yes.", 10));
    let limit = RateLimit::for_each_tenant().with_calls(1, 10 * SECOND);
    let client = client(&model, limit.with_wait_timeout(Duration::ZERO));
    let ask = async |tenant: &str| {
        let key = ConversationKey::in_tenant(tenant, "c").unwrap();
        client.prompt().user("?").conversation(key).call().await.map(drop).map_err(|error| error.kind())
    };
    let limited = Err(ErrorKind::RateLimited { retry_after: Some(10 * SECOND) });
    for (tenant, expected) in [("a", Ok(())), ("a", limited), ("b", Ok(())), ("b", limited)] {
        assert_eq!(ask(tenant).await, expected, "{tenant}");
    }
}

/// A round that is refused ends the turn with an error, calls are answered, and the next turn works.
#[tokio::test(start_paused = true)]
async fn law_m6_refused_round_leaves_a_valid_conversation() {
    for remembers in PLACES {
        let model = ScriptedModel::new([looks(10), says("Later.", 10)]);
        let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let limit = RateLimit::for_all().with_calls(1, 10 * SECOND).with_wait_timeout(Duration::ZERO);
        setting.client = setting.client.advisor(limit);
        let client = setting.client.clone().build().unwrap();
        let ask = |text: &str| client.prompt().user(text).conversation("c").call();
        let error = ask("go").await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::RateLimited { .. }) && error.emitted());
        assert_eq!(setting.runs(), 1);
        tokio::time::advance(10 * SECOND).await;
        assert_eq!(ask("on").await.unwrap().text(), "Later.");
        assert_eq!(setting.remembered().await[..3], ["go", "Well. (look)", "= a result"], "{remembers}");
    }
}
