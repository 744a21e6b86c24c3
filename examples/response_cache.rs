//! A cache: equal requests of a tenant get the same answer without the model. Memory stores it like any other.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::advisors::ResponseCache;
use advisor_chain::{ChatMemoryAdvisor, ConversationKey, InMemoryStore, client};
use advisor_testkit::{Answer, ScriptedModel};

#[tokio::main(flavor = "current_thread")]
async fn main() -> advisor_chain::Result<()> {
    let mut asked = 0;
    let model = ScriptedModel::from_fn(move |_| {
        asked += 1;
        Answer::from_text(format!("It is answer {asked}."))
    });
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let client = client(model.clone()).advisor(memory.clone()).advisor(ResponseCache::default()).build()?;
    println!("{}", client.explain());

    for (tenant, conversation) in [("acme", "c1"), ("acme", "c2"), ("other", "c1")] {
        let key = ConversationKey::in_tenant(tenant, conversation)?;
        let answer = client.prompt().user("Which one is it?").conversation(key.clone()).call().await?;
        let stored = memory.transcript(&key).await?.len();
        println!("{tenant} {conversation}: {} ({stored} messages stored)", answer.text());
    }
    println!("The model was asked {} times.", model.calls());
    Ok(())
}
