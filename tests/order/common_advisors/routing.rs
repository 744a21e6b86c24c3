//! `RoutedModel`: chooses a model by condition, name, health and conversation.

use advisor_chain::advisors::{Route, RoutedModel};
use advisor_tests::prelude::*;
use tokio::time::advance;

use crate::common_advisors::support::{Setting, looks, says};

/// A model with a name.
struct Named {
    name: &'static str,
    model: ScriptedModel,
}

#[async_trait]
impl ChatModel for Named {
    async fn stream(&self, request: ChatRequest) -> Result<ChunkStream> {
        self.model.stream(request).await
    }

    fn model_name(&self) -> Option<&str> {
        Some(self.name)
    }
}

/// A model that answers with its name, and the number of its calls.
fn named(name: &'static str) -> (Route, ScriptedModel) {
    let model = ScriptedModel::from_fn(move |_| says(name, 10));
    (Route::new(Named { name, model: model.clone() }), model)
}

/// A model with these answers.
fn scripted(name: &'static str, answers: impl IntoIterator<Item = Answer>) -> (Route, ScriptedModel) {
    let model = ScriptedModel::new(answers);
    (Route::new(Named { name, model: model.clone() }), model)
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

#[tokio::test]
async fn models_are_chosen_by_condition_and_name() {
    let short = |request: &ChatRequest| request.messages.len() < 2;
    let routes = [named("small").0.with_condition(short), named("cheap").0, named("dear").0];
    let client_of = client;
    let client = client(RoutedModel::new(routes).unwrap());
    assert_eq!(ask(&client).await, "small");
    assert_eq!(client.prompt().user("?").user("!").call().await.unwrap().text(), "cheap");
    let options = |name: &str| ChatOptions { model: Some(name.into()), ..ChatOptions::default() };
    assert_eq!(client.prompt().user("?").options(options("dear")).call().await.unwrap().text(), "dear");
    let unknown = client.prompt().user("?").options(options("other")).call().await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Configuration);
    let never = client_of(RoutedModel::new([named("never").0.with_condition(|_| false)]).unwrap());
    assert_eq!(never.prompt().user("?").call().await.unwrap_err().kind(), ErrorKind::Configuration);
    assert_eq!(RoutedModel::new([]).unwrap_err().kind(), ErrorKind::Configuration);
}

/// After failures in a row a model is called last, until it has cooled down. Then one failure is enough, or one answer ends
/// it.
#[tokio::test(start_paused = true)]
async fn failing_model_cools_down() {
    let fails = || Answer::new().text("It is").error(Error::new(ErrorKind::Connection, "cut"));
    let (first, calls) = scripted("first", [down(), fails(), down(), says("first", 10), says("first", 10)]);
    let (second, _) = named("second");
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
        RoutedModel::new([first, named("second").0]).unwrap().with_cool_down(3, Duration::from_secs(10));
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
    let (first, _) =
        scripted("first", [down(), says("first", 10), says("first", 10), down(), says("first", 10)]);
    let sticky = client(RoutedModel::new([first, named("second").0]).unwrap());
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
}

/// Each round of a turn is remembered once, whichever model it asked first.
#[tokio::test(start_paused = true)]
async fn law_m4_s4_answers_of_several_models_are_remembered() {
    for remembers in PLACES {
        let (first, _) = scripted("first", [down(), says("Done.", 10)]);
        let (second, _) = scripted("second", [looks(10), down()]);
        let model = RoutedModel::new([first, second]).unwrap();
        let setting = Setting::new(&ScriptedModel::new([]), remembers, OnLimit::EndTurn);
        let client = setting.client.clone().model(model).build().unwrap();
        let turn = client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_eq!((turn.text().as_str(), setting.runs()), ("Done.", 1), "{remembers}");
        assert_eq!(setting.remembered().await, ["go", "Well. (look)", "= a result", "Done."]);
    }
}

/// A dropped call is neither an answer nor a failure.
#[tokio::test(start_paused = true)]
async fn law_k2_dropped_call_changes_no_health() {
    let (first, calls) = scripted("first", [Answer::new().text("one").hang(), says("first", 10)]);
    let client =
        client(RoutedModel::new([first, named("second").0]).unwrap().with_cool_down(1, Duration::MAX));
    let mut turn = client.prompt().user("?").stream();
    while turn.next().await.unwrap().unwrap().text().is_none() {}
    assert!(turn.next().now_or_never().is_none());
    drop(turn);
    assert_eq!((ask(&client).await.as_str(), calls.calls()), ("first", 2));
}
