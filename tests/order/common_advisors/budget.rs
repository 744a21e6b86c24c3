//! `Budget`: a turn ends once an account of tokens or money is spent: of the turn, of the tenant, or of all.

use advisor_chain::advisors::{Budget, Money, Price};
use advisor_tests::prelude::*;

use crate::common_advisors::support::{Setting, looks, says, tool};

fn limit_of(response: &ChatResponse) -> String {
    match &response.finish.reason {
        FinishReason::Limit(Limit::Other(limit)) => limit.to_string(),
        other => panic!("the turn ended with {other:?}"),
    }
}

/// The tools of the round that reaches the limit do not run, and the model is not asked again.
#[tokio::test]
async fn law_t3_spent_budget_ends_the_turn() {
    for remembers in PLACES {
        let model = ScriptedModel::new([looks(60), looks(50), says("Done.", 10), says("Bye.", 10)]);
        let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let budget = Budget::for_each_turn().with_tokens(100);
        setting.client = setting.client.advisor(budget);
        let client = setting.client.clone().build().unwrap();
        let turn = client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_eq!(limit_of(&turn), "the budget of 100 tokens for one turn");
        assert_eq!((model.calls(), setting.runs()), (2, 1), "{remembers}");
        assert_eq!(turn.usage.as_ref().unwrap().total(), Some(110));
        let remembered = setting.remembered().await;
        assert_eq!(remembered[..4], ["go", "Well. (look)", "= a result", "Well. (look)"], "{remembers}");
        assert_eq!(remembered.len(), 6, "an error result and the closing sentence: {remembered:?}");
        // The next turn has its own budget.
        let next = client.prompt().user("again").conversation("c").call().await.unwrap();
        assert_eq!(next.text(), "Done.");
    }
}

#[tokio::test]
async fn law_t3_spent_budget_allows_one_answer_without_tools() {
    for remembers in PLACES {
        let model = ScriptedModel::new([looks(100), says("So far.", 20)]);
        let mut setting = Setting::new(&model, remembers, OnLimit::AnswerWithoutTools);
        setting.client = setting.client.advisor(Budget::for_all().with_tokens(100));
        let client = setting.client.clone().build().unwrap();
        let turn = client.prompt().user("go").conversation("c").call().await.unwrap();
        assert_eq!((turn.text().as_str(), setting.runs()), ("So far.", 0), "{remembers}");
        assert_eq!(limit_of(&turn), "the budget of 100 tokens for all turns");
        assert_eq!(model.prompts()[1].options.tool_choice, Some(ToolChoice::None));
    }
}

/// The model is not asked, the reason is typed, and the conversation goes on when the account is empty again.
#[tokio::test]
async fn law_t3_m6_spent_account_refuses_the_next_turn() {
    for remembers in PLACES {
        let model = ScriptedModel::new([says("Yes.", 100), says("Again.", 10)]);
        let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let budget = Budget::for_each_tenant().with_tokens(100);
        setting.client = setting.client.advisor(budget.clone());
        let client = setting.client.clone().build().unwrap();
        let ask = |text: &str| client.prompt().user(text).conversation("c").call();
        let first = ask("one").await.unwrap();
        assert_eq!((first.text().as_str(), &first.finish.reason), ("Yes.", &FinishReason::Stop));
        let refused = ask("two").await.unwrap();
        assert_eq!(limit_of(&refused), "the budget of 100 tokens for one tenant");
        let text = "I cannot answer: the budget of 100 tokens for one tenant was reached.";
        assert_eq!((refused.text().as_str(), model.calls()), (text, 1));
        budget.reset();
        assert_eq!(ask("three").await.unwrap().text(), "Again.");
        assert_eq!(
            setting.remembered().await,
            ["one", "Yes.", "two", text, "three", "Again."],
            "{remembers}"
        );
    }
}

#[tokio::test]
async fn law_m5_each_tenant_has_its_account() {
    let model = ScriptedModel::from_fn(|_| says("Yes.", 100));
    let budget = Budget::for_each_tenant().with_tokens(100);
    let client = ChatClient::builder(model).advisor(budget.clone()).build().unwrap();
    let ask = |tenant: &str| {
        let key = ConversationKey::in_tenant(tenant, "c").unwrap();
        client.prompt().user("?").conversation(key).call()
    };
    for (tenant, expected) in
        [("a", "Yes."), ("a", "I cannot"), ("b", "Yes."), ("b", "I cannot"), ("a", "I cannot")]
    {
        let text = ask(tenant).await.unwrap().text();
        assert!(text.starts_with(expected), "{tenant}: {text}");
    }
    let mut accounts = budget.accounts();
    accounts.sort_by(|(a, _), (b, _)| a.cmp(b));
    let spent: Vec<_> = accounts.iter().map(|(tenant, spent)| (tenant.as_str(), spent.tokens)).collect();
    assert_eq!(spent, [("a", 100), ("b", 100)]);
    budget.reset();
    assert_eq!(ask("a").await.unwrap().text(), "Yes.");
}

#[tokio::test]
async fn law_r1_tenants_with_an_account_are_bounded() {
    let model = ScriptedModel::from_fn(|_| says("Yes.", 1));
    let budget = Budget::for_each_tenant().with_tenants(2).with_tokens(100);
    let client = ChatClient::builder(model).advisor(budget.clone()).build().unwrap();
    let ask = |tenant: &str| {
        let key = ConversationKey::in_tenant(tenant, "c").unwrap();
        client.prompt().user("?").conversation(key).call()
    };
    for tenant in ["a", "b", "a"] {
        ask(tenant).await.unwrap();
    }
    assert_eq!(ask("c").await.unwrap_err().kind(), ErrorKind::TooLarge);
    budget.reset();
    ask("c").await.unwrap();
}

#[tokio::test]
async fn law_t3_budget_with_other_tenants_counts_for_itself() {
    let model = ScriptedModel::from_fn(|_| says("Yes.", 60));
    let large = Budget::for_each_tenant().with_tokens(1_000);
    let small = large.clone().with_tenants(2).with_tokens(100).with_name("small");
    let client = ChatClient::builder(model).advisor(large.clone()).advisor(small.clone()).build().unwrap();
    for expected in ["Yes.", "Yes.", "I cannot"] {
        let key = ConversationKey::in_tenant("a", "c").unwrap();
        let text = client.prompt().user("?").conversation(key).call().await.unwrap().text();
        assert!(text.starts_with(expected), "{text}");
    }
    let spent = [&large, &small].map(|budget| budget.accounts()[0].1.tokens);
    assert_eq!(spent, [120, 120]);
}

/// Another turn spends the account while this one runs: it ends at the boundary of its round, with a valid transcript.
#[tokio::test]
async fn law_t3_running_turn_ends_when_another_spends_the_account() {
    let model = ScriptedModel::new([looks(50), says("Elsewhere.", 50), looks(10), says("Never.", 10)]);
    let budget = Budget::for_all().with_tokens(100);
    let elsewhere = ChatClient::builder(model.clone()).advisor(budget.clone()).build().unwrap();
    let spends = tool("look", move |_| {
        let turn = elsewhere.prompt().user("?");
        async move { Ok(turn.call().await.map(|response| response.text())?) }
    });
    let client = advisor_chain::client(model.clone()).advisor(budget).tool(spends).build().unwrap();
    let turn = client.prompt().user("go").call().await.unwrap();
    assert_eq!(limit_of(&turn), "the budget of 100 tokens for all turns");
    assert_eq!(model.calls(), 3, "the round that had begun goes to the model, and no further one");
}

fn priced(model: &str, text: &str) -> Answer {
    let answer = Answer::new().delta(Delta::origin(None, Some(model.into()))).text(text);
    answer.usage(1_000_000, 500_000).finish(FinishReason::Stop)
}

#[tokio::test]
async fn law_t3_money_is_counted_by_the_prices() {
    let prices = [("m*", Price::per_million(Money::from_cents(100), Money::from_cents(400)))];
    let budget = Budget::for_all().with_money(Money::from_cents(600), prices).with_tokens(u64::MAX);
    let model = ScriptedModel::new([priced("m-1", "One."), priced("m-2", "Two.")]);
    let client = ChatClient::builder(model).advisor(budget.clone()).build().unwrap();
    for expected in ["One.", "Two."] {
        let turn = client.prompt().user("?").call().await.unwrap();
        assert_eq!(turn.text(), expected);
    }
    assert_eq!(budget.accounts()[0].1.money, Money::from_cents(600));
    let refused = client.prompt().user("?").call().await.unwrap();
    assert_eq!(limit_of(&refused), "the budget of 6 for all turns");
}

/// An unknown cost is an error, also if it comes with calls: no tool runs. The known part counts.
#[tokio::test]
async fn law_o5_unknown_cost_ends_the_turn() {
    let prices = [("m", Price::per_million(Money::from_cents(1), Money::from_cents(1)))];
    let unpriced = || looks(10);
    let uncounted = || Answer::from_calls([("c1", "look", "{}")]);
    for remembers in PLACES {
        for (answer, counted, text) in [(unpriced(), 10, "prices"), (uncounted(), 0, "tokens")] {
            let model = ScriptedModel::new([answer, says("Never.", 10)]);
            let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
            let budget = Budget::for_all().with_tokens(1_000).with_money(Money::from_cents(1), prices);
            setting.client = setting.client.advisor(budget.clone());
            let client = setting.client.clone().build().unwrap();
            let error = client.prompt().user("go").conversation("c").call().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.to_string().contains(text), "{error}");
            assert_eq!((model.calls(), setting.runs()), (1, 0), "{remembers}");
            assert_eq!(budget.accounts()[0].1.tokens, counted);
        }
    }
}
