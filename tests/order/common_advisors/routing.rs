//! `RoutedModel`: chooses a model by condition, cost, latency, health and conversation.

use advisor_chain::advisors::{Money, Price, Route, RouteOrder, RoutedModel};
use advisor_tests::prelude::*;
use tokio::time::{advance, sleep};

use crate::common_advisors::support::{Setting, looks, says};

/// A model with a name, which answers after a while.
struct Named {
    name: &'static str,
    after: Duration,
    model: ScriptedModel,
}

#[async_trait]
impl ChatModel for Named {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        sleep(self.after).await;
        self.model.stream(request).await
    }

    fn model_name(&self) -> Option<&str> {
        Some(self.name)
    }
}

/// A model that answers with its name, and the number of its calls.
fn named(name: &'static str, millis: u64) -> (Route, ScriptedModel) {
    let model = ScriptedModel::from_fn(move |_| says(name, 10));
    (Route::new(Named { name, after: Duration::from_millis(millis), model: model.clone() }), model)
}

/// A model with these answers.
fn scripted(name: &'static str, answers: impl IntoIterator<Item = Answer>) -> (Route, ScriptedModel) {
    let model = ScriptedModel::new(answers);
    (Route::new(Named { name, after: Duration::ZERO, model: model.clone() }), model)
}

fn down() -> Answer {
    Answer::refused(Error::new(ErrorKind::Connection, "down"))
}

fn client(model: RoutedModel) -> ChatClient {
    ChatClient::builder(model).build().unwrap()
}

async fn ask(client: &ChatClient) -> String {
    client.prompt().user("?").call().await.unwrap().text()
}

async fn ask_in(client: &ChatClient, conversation: &str) -> String {
    client.prompt().user("?").conversation(conversation).call().await.unwrap().text()
}

fn cents(cents: u64) -> Price {
    Price::per_million(Money::from_cents(cents), Money::from_cents(cents))
}

#[tokio::test(start_paused = true)]
async fn models_are_chosen_by_condition_cost_and_name() {
    let routes = || {
        let short = |request: &ChatRequest| request.messages.len() < 2;
        [
            named("dear", 0).0.with_price(cents(250)),
            named("unpriced", 0).0,
            named("small", 0).0.with_price(cents(10)).with_condition(short),
            named("cheap", 0).0.with_price(cents(20)),
        ]
    };
    assert_eq!(ask(&client(RoutedModel::new(routes()).unwrap())).await, "dear");
    let by_cost = client(RoutedModel::new(routes()).unwrap().with_order(RouteOrder::Cost));
    assert_eq!(ask(&by_cost).await, "small");
    assert_eq!(by_cost.prompt().user("?").user("!").call().await.unwrap().text(), "cheap");
    let options = |name: &str| ChatOptions { model: Some(name.into()), ..ChatOptions::default() };
    let unpriced = by_cost.prompt().user("?").options(options("unpriced")).call().await.unwrap();
    assert_eq!(unpriced.text(), "unpriced");
    let unknown = by_cost.prompt().user("?").options(options("other")).call().await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Configuration);
    let never = RoutedModel::new([named("never", 0).0.with_condition(|_| false)]).unwrap();
    assert_eq!(client(never).prompt().user("?").call().await.unwrap_err().kind(), ErrorKind::Configuration);
    assert_eq!(RoutedModel::new([]).unwrap_err().kind(), ErrorKind::Configuration);
}

/// Models without a measurement come first. Then the one that begins to answer first.
#[tokio::test(start_paused = true)]
async fn models_are_chosen_by_latency() {
    let ((slow, slow_calls), (fast, fast_calls)) = (named("slow", 900), named("fast", 100));
    let client = client(RoutedModel::new([slow, fast]).unwrap().with_order(RouteOrder::Latency));
    for expected in ["slow", "fast", "fast", "fast"] {
        assert_eq!(ask(&client).await, expected);
    }
    assert_eq!((slow_calls.calls(), fast_calls.calls()), (1, 3));
}

/// After failures in a row a model is called last, until it has cooled down. Then one failure is enough, or one answer ends
/// it.
#[tokio::test(start_paused = true)]
async fn failing_model_cools_down() {
    let fails = || Answer::new().text("It is").error(Error::new(ErrorKind::Connection, "cut"));
    let (first, calls) = scripted("first", [down(), fails(), down(), says("first", 10), says("first", 10)]);
    let (second, _) = named("second", 0);
    let model = RoutedModel::new([first, second]).unwrap().with_cool_down(2, Duration::from_secs(10));
    let client = client(model.clone());
    assert_eq!((ask(&client).await.as_str(), calls.calls()), ("second", 1));
    let cut = client.prompt().user("?").call().await.unwrap_err();
    assert_eq!(
        (cut.kind(), calls.calls()),
        (ErrorKind::Connection, 2),
        "after output, no other model is asked"
    );
    for _ in 0..3 {
        assert_eq!((ask(&client).await.as_str(), calls.calls()), ("second", 2), "it cools down");
    }
    advance(Duration::from_secs(10)).await;
    assert_eq!((ask(&client).await.as_str(), calls.calls()), ("second", 3));
    assert_eq!((ask(&client).await.as_str(), calls.calls()), ("second", 3), "it failed again");
    advance(Duration::from_secs(10)).await;
    for calls_so_far in [4, 5] {
        assert_eq!((ask(&client).await.as_str(), calls.calls()), ("first", calls_so_far));
    }
}

/// After a cool-down, one request tries the model, and the others do not wait for it. A server that asks for a delay gets
/// it.
#[tokio::test(start_paused = true)]
async fn cooled_model_is_tried_by_one_request() {
    let limited = ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(40)) };
    let busy = Answer::refused(Error::new(limited, "busy"));
    let (first, calls) = scripted("first", [busy, Answer::new().hang(), says("first", 10)]);
    let model =
        RoutedModel::new([first, named("second", 0).0]).unwrap().with_cool_down(3, Duration::from_secs(10));
    let client = client(model);
    assert_eq!(ask(&client).await, "second");
    advance(Duration::from_secs(39)).await;
    assert_eq!((ask(&client).await.as_str(), calls.calls()), ("second", 1), "it asked for a delay");
    advance(Duration::from_secs(1)).await;
    let mut tries = client.prompt().user("?").stream();
    assert!(tries.next().now_or_never().is_none());
    assert_eq!((ask(&client).await.as_str(), calls.calls()), ("second", 2), "another request tries it");
    drop(tries);
    advance(Duration::from_secs(10)).await;
    assert_eq!((ask(&client).await.as_str(), calls.calls()), ("first", 3));
}

/// A conversation stays with the model that answered it, since that has a cache of its prompt.
#[tokio::test(start_paused = true)]
async fn conversation_stays_with_its_model() {
    let build = |most| {
        let (first, _) =
            scripted("first", [down(), says("first", 10), says("first", 10), down(), says("first", 10)]);
        client(RoutedModel::new([first, named("second", 0).0]).unwrap().with_sticky_conversations(most))
    };
    let sticky = build(100);
    for (conversation, expected) in [
        ("a", "second"),
        ("a", "second"),
        ("b", "first"),
        ("b", "first"),
        ("b", "second"),
        ("c", "first"),
        ("b", "second"),
    ] {
        assert_eq!(ask_in(&sticky, conversation).await, expected, "{conversation}");
    }
    let each = build(0);
    for expected in ["second", "first", "first", "second", "first"] {
        assert_eq!(ask_in(&each, "a").await, expected);
    }
}

/// An answer that starts again is shown so, and remembered once; rounds of one turn may have different models.
#[tokio::test(start_paused = true)]
async fn law_m4_s4_answers_of_several_models_are_remembered() {
    for remembers in PLACES {
        let cut = || Answer::new().text("It is").error(Error::new(ErrorKind::Connection, "cut"));
        let (first, _) = scripted("first", [cut(), cut()]);
        let (second, _) = scripted("second", [looks(10), says("Done.", 10)]);
        let model = RoutedModel::new([first, second]).unwrap().with_restart_after_output();
        let setting = Setting::new(&ScriptedModel::new([]), remembers, OnLimit::EndTurn);
        let client = setting.client.clone().model(model.with_sticky_conversations(0)).build().unwrap();
        let mut turn = client.prompt().user("go").conversation("c").stream();
        let mut restarts = 0;
        while let Some(chunk) = turn.next().await {
            restarts += u32::from(matches!(chunk.unwrap(), Chunk::AttemptRestarted { .. }));
        }
        assert_eq!((restarts, setting.runs()), (2, 1), "{remembers}");
        assert_eq!(setting.remembered().await, ["go", "Well. (look)", "= a result", "Done."]);
    }
}

/// A dropped call is neither an answer nor a failure.
#[tokio::test(start_paused = true)]
async fn law_k2_dropped_call_changes_no_health() {
    let (first, calls) = scripted("first", [Answer::new().text("one").hang(), says("first", 10)]);
    let client =
        client(RoutedModel::new([first, named("second", 0).0]).unwrap().with_cool_down(1, Duration::MAX));
    let mut turn = client.prompt().user("?").stream();
    while turn.next().await.unwrap().unwrap().text().is_none() {}
    assert!(turn.next().now_or_never().is_none());
    drop(turn);
    assert_eq!((ask(&client).await.as_str(), calls.calls()), ("first", 2));
}
