//! Budgets: one of tokens for each turn, and one of money for each tenant. The first turn reaches the one of the turn,
//! and the model answers without further tools. Then the tenant's money is spent, and no turn of it begins.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::advisors::{Budget, Money, Price};
use advisor_chain::messages::Delta;
use advisor_chain::tools::{OnLimit, ToolLimits};
use advisor_chain::{ConversationKey, FinishReason, ToolCallAdvisor, client, tool};
use advisor_testkit::{Answer, ScriptedModel};

/// Searches the archive.
#[tool]
fn search() -> &'static str {
    "nothing found"
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The name of the model comes with each answer, as providers send it.
    let answer = || Answer::new().delta(Delta::origin(None, Some("large-2026".into())));
    let model = ScriptedModel::new([
        answer().call("c1", "search", "{}").usage(3_000, 200).finish(FinishReason::ToolCalls),
        answer().call("c2", "search", "{}").usage(3_400, 200).finish(FinishReason::ToolCalls),
        answer().text("I found nothing so far.").usage(3_800, 100).finish(FinishReason::Stop),
    ]);
    // Per million tokens of input and output.
    let prices = [("large-*", Price::per_million("2.5".parse()?, "10".parse()?))];
    let money = Budget::for_each_tenant().with_money(Money::from_cents(3), prices).with_name("money");
    let limits = ToolLimits { on_limit: OnLimit::AnswerWithoutTools, ..ToolLimits::default() };
    let client = client(model)
        .advisor(ToolCallAdvisor::builder().limits(limits).build()?)
        .advisor(money.clone())
        .advisor(Budget::for_each_turn().with_tokens(6_000).with_name("tokens"))
        .tool(search_tool())
        .build()?;
    println!("{}", client.explain());

    for question in ["Search everything.", "Search again."] {
        let conversation = ConversationKey::in_tenant("acme", "c1")?;
        let answer = client.prompt().user(question).conversation(conversation).call().await?;
        println!("? {question}\n{}\n({:?})", answer.text(), answer.finish.reason);
        for (tenant, spent) in money.accounts() {
            println!("{tenant} has spent {} in {} tokens\n", spent.money, spent.tokens);
        }
    }
    Ok(())
}
