//! Law S7, as far as the loop is concerned: one chain runs many turns, also at once, and they share nothing.

use advisor_chain::messages::Usage;
use advisor_tests::prelude::*;
use futures::future::join_all;

use crate::tool_loop::support::*;

/// A model whose answers depend on the user: `n` tool rounds for the user message `n`.
fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|prompt| {
        let user = prompt.messages.iter().find(|message| message.role() == Role::User).unwrap().text();
        let rounds: u32 = user.parse().unwrap();
        let answer = Answer::new().usage(1, u64::from(rounds));
        if prompt.round <= rounds {
            answer.call(&format!("{user}-{}", prompt.round), "look", "{}").done()
        } else {
            answer.text(format!("Done {user}.")).done()
        }
    })
}

fn shared(stages: &Stages) -> (ChatClient, ScriptedModel) {
    let model = model();
    let advisor = ToolCallAdvisor::builder().hooks(Watch(stages.clone())).build().unwrap();
    let client = client(&model, advisor).tool(tool("look", "sunny")).build().unwrap();
    (client, model)
}

async fn check(client: &ChatClient, rounds: usize) {
    let run = Reader::new(client.prompt().user(rounds.to_string()).stream()).finish().await;
    let response = run.response();
    assert_eq!(response.text(), format!("Done {rounds}."));
    let usage = Usage::new(rounds as u64 + 1, (rounds * (rounds + 1)) as u64);
    assert_eq!(response.usage(), Some(&usage));
    let lines = transcript_lines(response.transcript());
    assert_eq!(lines.len(), 2 + 2 * rounds);
    let own = |line: &String| line.contains(&format!("{rounds}-"));
    assert!(lines[1..lines.len() - 1].iter().all(own), "{rounds}: {lines:?}");
}

/// At once, on one thread and on several.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn law_s7_many_turns_at_once_share_nothing() {
    let stages = Stages::default();
    let (client, model) = shared(&stages);
    join_all((0..60).map(|turn| {
        let client = client.clone();
        async move { tokio::spawn(async move { check(&client, turn % 6).await }).await.unwrap() }
    }))
    .await;
    assert_eq!(stages.ends().len(), 60);
    assert_eq!(model.calls(), 10 * (1 + 2 + 3 + 4 + 5 + 6));
    let turns: BTreeSet<TurnId> = model.prompts().into_iter().map(|prompt| prompt.turn).collect();
    assert_eq!(turns.len(), 60);
}
