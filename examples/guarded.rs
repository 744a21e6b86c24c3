//! Guards: one refuses the input of the user, one ends an answer while it streams. Memory stands between them, so it
//! stores nothing of a refused turn, and of an ended answer what was shown.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::stream_policy::{Guard, LetterCase};
use advisor_chain::{ChatMemoryAdvisor, ConversationKey, FinishReason, InMemoryStore, client};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let model = ScriptedModel::new([
        Answer::new()
            .text("You are card 41")
            .text("11-1111, and the")
            .text(" limit is 500.")
            .finish(FinishReason::Stop),
        Answer::from_text("Gladly: it is 500."),
    ]);
    let client = client(model)
        .advisor(
            Guard::for_texts(|text| text.len() > 2000).with_name("length").with_reply("Too long.").on_input(),
        )
        .advisor(Guard::for_words(["password", "pin"], LetterCase::Ignore).with_name("secrets").on_input())
        .advisor(memory.clone())
        // The match is cut in two by the pieces. Only "41" waits for the next piece.
        .advisor(Guard::for_pattern(r"\b\d{4}-\d{4}\b")?.with_reply("[no card numbers]").on_output())
        .build()?;
    println!("{}", client.explain());

    for question in ["What is my PIN?", "Who am I?", "And my limit?"] {
        println!("\n? {question}");
        let mut turn = client.prompt().user(question).conversation("c1").stream();
        while let Some(chunk) = turn.next().await {
            let chunk = chunk?;
            if let Some(text) = chunk.text() {
                println!("  {text}");
            }
            if let Some(response) = chunk.completed() {
                println!("  ({:?})", response.finish.reason);
            }
        }
    }

    println!("\nRemembered:");
    for message in &memory.transcript(&ConversationKey::new("c1")?).await? {
        println!("{:?}: {}", message.role(), message.text());
    }
    Ok(())
}
