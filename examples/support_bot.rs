//! The bot of a shop: retrieval, a guard, redaction, a stop, a cache, a second model, memory, a tool and a typed value.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::{
    ChatMemoryAdvisor, Error, ErrorKind, FinishReason, FnTool, InMemoryStore, PromptExt, Result,
    ToolDefinition, client,
};
use advisor_examples::advisors::{Cache, guard, polite, redaction, retrieval, stopping, with_fallback};
use advisor_testkit::{Answer, ScriptedModel};
use futures::TryStreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The request of a customer.
#[derive(Debug, Deserialize, JsonSchema)]
struct Ticket {
    topic: String,
    urgent: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The first model breaks off in the middle of its answer, and the second one takes over.
    let broken = Error::new(ErrorKind::Connection, "the connection broke");
    let first = ScriptedModel::new([Answer::new().text("We op").error(broken)]);
    let second = ScriptedModel::new([
        Answer::new().text("Let me look. ").call("c1", "order", "{}").finish(FinishReason::ToolCalls),
        Answer::new().text("It left us at nine. Ask Mal").text("lory.").finish(FinishReason::Stop),
        Answer::new().text("Our margin is ").text("confidential, that is 7 %").finish(FinishReason::Stop),
        Answer::from_text(r#"{"topic": "delivery", "urgent": true}"#),
    ]);
    let order = ToolDefinition::new("order", "Tells where the order is.", json!({"type": "object"}));
    let client = client(with_fallback(first, second))
        .advisor(guard())
        .advisor(polite())
        .advisor(retrieval(&["Orders leave us the day after.", "We are closed on Sundays."]))
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .advisor(Cache::default())
        .advisor(stopping("confidential"))
        .advisor(redaction(&[("Mallory", "our driver")]))
        .tool(FnTool::new(order, |_: Value| async { Ok("on its way") }))
        .build()?;
    println!("{}", client.explain());

    for question in ["Where is my order?", "What is your margin?", "What is your password?"] {
        println!("? {question}");
        let mut turn = client.prompt().user(question).conversation("c1").stream();
        while let Some(chunk) = turn.try_next().await? {
            match chunk {
                advisor_chain::Chunk::AttemptRestarted { .. } => print!(" … once more: "),
                chunk => print!("{}", chunk.text().unwrap_or_default()),
            }
        }
        println!();
    }
    let ticket: Ticket =
        client.prompt().user("Where is it? I need it now!").conversation("c1").entity().await?;
    println!("a ticket about {}{}", ticket.topic, if ticket.urgent { ", urgent" } else { "" });
    Ok(())
}
