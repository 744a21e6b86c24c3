//! `Budget` within a round: once it is spent, no advisor and no attempt at a value reaches the model.

use advisor_chain::advisors::{Budget, Retry};
use advisor_examples::advisors::ask_again;
use advisor_tests::prelude::*;

use crate::common_advisors::support::{Setting, looks, refused, says};

/// An advisor that asks again within a round does not reach the model once the budget is spent.
#[tokio::test]
async fn law_t3_spent_budget_bounds_further_calls_of_a_round() {
    for budget in [Budget::for_each_turn(), Budget::for_each_tenant(), Budget::for_all()] {
        let model = ScriptedModel::from_fn(|_| says("It is grey.", 200));
        let budget = budget.with_tokens(100);
        let client =
            ChatClient::builder(model.clone()).advisor(ask_again("sunny")).advisor(budget).build().unwrap();
        let turn = client.prompt().user("How is it?").call().await.unwrap();
        assert!(matches!(turn.finish.reason, FinishReason::Limit(_)), "{:?}", &turn.finish);
        assert_eq!(model.calls(), 1);
    }
}

/// A value is not asked for again in vain, and the error names the budget.
#[tokio::test]
async fn law_t3_spent_budget_bounds_attempts_at_a_value() {
    for remembers in PLACES {
        let model = ScriptedModel::from_fn(|_| says("Oslo", 200));
        let mut setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        setting.client = setting.client.advisor(Budget::for_each_turn().with_tokens(100));
        let client = setting.client.clone().build().unwrap();
        let prompt = client.prompt().user("How many?").conversation("c");
        let error = prompt.entity::<u32>().with_attempts(10).await.unwrap_err();
        assert_eq!((error.kind(), model.calls()), (ErrorKind::InvalidOutput, 1), "{error}");
        assert!(error.to_string().contains("it reached the budget of 100 tokens"), "{error}");
        assert!(!setting.remembered().await.concat().contains("Oslo"), "{remembers}");
    }
}

/// The last answer without tools is one answer, also if its value does not fit. An attempt that fails is none.
#[tokio::test(start_paused = true)]
async fn law_t3_spent_budget_allows_one_last_answer_only() {
    for remembers in PLACES {
        let model = ScriptedModel::new([looks(200), refused(ErrorKind::Connection), says("Oslo", 200)]);
        let mut setting = Setting::new(&model, remembers, OnLimit::AnswerWithoutTools);
        let budget = Budget::for_each_turn().with_tokens(100);
        setting.client = setting.client.advisor(Retry::default()).advisor(budget);
        let client = setting.client.clone().build().unwrap();
        let error = client.prompt().user("How many?").conversation("c").entity::<u32>().await.unwrap_err();
        assert_eq!((error.kind(), model.calls()), (ErrorKind::InvalidOutput, 3), "{error}");
        assert!(error.to_string().contains("it reached the budget of 100 tokens"), "{error}");
    }
}
