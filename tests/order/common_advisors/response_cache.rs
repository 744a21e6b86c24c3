//! `ResponseCache`: repeats complete answers to equal requests, within a tenant and within bounds.

use advisor_chain::advisors::Budget;
use advisor_tests::prelude::*;

use crate::common_advisors::support::{Setting, looks, says};

/// A model that numbers its answers.
fn numbered() -> ScriptedModel {
    let mut asked = 0;
    ScriptedModel::from_fn(move |_| {
        asked += 1;
        says(&format!("Answer {asked}."), 10)
    })
}

fn client(model: &ScriptedModel, cache: &ResponseCache) -> ChatClient {
    ChatClient::builder(model.clone()).advisor(cache.clone()).build().unwrap()
}

/// Repeated rounds are shown and stored like those of the model, and their tools run again.
#[tokio::test]
async fn law_m4_s4_repeated_answer_is_shown_and_remembered() {
    for remembers in PLACES {
        let model = ScriptedModel::new([looks(10), says("Done.", 10)]);
        let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let budget = Budget::for_all().with_tokens(1_000);
        setting.client = setting.client.advisor(ResponseCache::default()).advisor(budget.clone());
        let client = setting.client.clone().build().unwrap();
        for conversation in ["other", "c"] {
            let mut turn = client.prompt().user("go").conversation(conversation).stream();
            let (mut text, mut response) = (String::new(), None);
            while let Some(chunk) = turn.next().await {
                let chunk = chunk.unwrap();
                text.push_str(chunk.text().unwrap_or_default());
                response = chunk.completed().cloned();
            }
            assert_eq!((text.as_str(), response.unwrap().text().as_str()), ("Well. Done.", "Done."));
        }
        assert_eq!((model.calls(), setting.runs()), (2, 2), "{remembers}");
        assert_eq!(setting.remembered().await, ["go", "Well. (look)", "= a result", "Done."]);
        assert_eq!(budget.accounts()[0].1.tokens, 20, "a repeated answer costs nothing");
    }
}

#[tokio::test]
async fn law_m5_tenants_share_no_answers() {
    let ask = async |client: &ChatClient, tenant: &str| {
        let key = ConversationKey::in_tenant(tenant, "c").unwrap();
        client.prompt().user("?").conversation(key).call().await.unwrap().text()
    };
    let apart = client(&numbered(), &ResponseCache::default());
    for (tenant, expected) in [("a", "Answer 1."), ("b", "Answer 2."), ("a", "Answer 1.")] {
        assert_eq!(ask(&apart, tenant).await, expected);
    }
}

/// Neither a cut answer, a failed one, a dropped one nor one with an inferred end is repeated.
#[tokio::test]
async fn only_complete_answers_are_kept() {
    let model = ScriptedModel::new([
        Answer::new().text("Cut").finish(FinishReason::Length),
        Answer::new().text("Filtered").finish(FinishReason::ContentFilter),
        Answer::new().text("Failed").error(Error::new(ErrorKind::Connection, "cut")),
        Answer::new().text("Dropped").hang(),
        Answer::new().text("Whole").finish(FinishReason::Stop),
    ]);
    let client = client(&model, &ResponseCache::default());
    let ask = async || client.prompt().user("?").call().await.map(|response| response.text());
    assert_eq!(ask().await.unwrap(), "Cut");
    assert_eq!(ask().await.unwrap(), "Filtered");
    ask().await.unwrap_err();
    let mut dropped = client.prompt().user("?").stream();
    while let Some(Some(chunk)) = dropped.next().now_or_never() {
        chunk.unwrap();
    }
    drop(dropped);
    for _ in 0..2 {
        assert_eq!(ask().await.unwrap(), "Whole");
    }
    assert_eq!(model.calls(), 5);
}

#[tokio::test(start_paused = true)]
async fn law_r1_kept_answers_are_bounded_in_time_and_bytes() {
    let cache = ResponseCache::default().with_ttl(Duration::from_secs(10));
    let client = client(&numbered(), &cache);
    let ask = async || client.prompt().user("?").call().await.unwrap().text();
    assert_eq!((ask().await, ask().await), ("Answer 1.".into(), "Answer 1.".into()));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(ask().await, "Answer 2.", "too old");
    let _ = cache.with_bytes(100);
    assert_eq!((ask().await, ask().await), ("Answer 3.".into(), "Answer 4.".into()), "too long");
}
