//! One model of several: the cheapest that takes a request, another one when it fails, and the same one in a conversation.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use advisor_chain::advisors::{Route, RoutedModel};
use advisor_chain::{ChatMemoryAdvisor, Error, ErrorKind, InMemoryStore, client};
use advisor_testkit::{Answer, ScriptedModel};

#[tokio::main(flavor = "current_thread")]
async fn main() -> advisor_chain::Result<()> {
    let mut asked = 0;
    let small = ScriptedModel::from_fn(move |_| {
        asked += 1;
        match asked {
            2 => Answer::refused(Error::new(ErrorKind::Connection, "the small model is down")),
            _ => Answer::from_text("The small model answers."),
        }
    });
    let large = ScriptedModel::from_fn(|_| Answer::from_text("The large model answers."));
    let model = RoutedModel::new([
        // The cheapest first. It takes short conversations only.
        Route::new(small).with_condition(|request| request.messages.len() < 6),
        Route::new(large),
    ])?
    .with_cool_down(3, Duration::from_secs(30));
    println!("{model:?}");
    let client = client(model).advisor(ChatMemoryAdvisor::new(InMemoryStore::new())).build()?;
    for (conversation, question) in
        [("a", "Hi"), ("b", "Hi"), ("b", "And?"), ("a", "And?"), ("a", "So?"), ("a", "Why?")]
    {
        let answer = client.prompt().user(question).conversation(conversation).call().await?;
        println!("{conversation}: {question} {}", answer.text());
    }
    Ok(())
}
