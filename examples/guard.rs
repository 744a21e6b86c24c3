//! An advisor that answers by itself where it must, without asking the model.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::{
    AdvisorChain, ChatRequest, ChatResponse, FinishReason, Message, Result, client, from_fn,
};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;

#[tokio::main]
async fn main() -> Result<()> {
    let guard = from_fn("guard", |request: ChatRequest, next: AdvisorChain| async move {
        let asked = request.messages.last().map(Message::text).unwrap_or_default();
        if asked.to_lowercase().contains("password") {
            let refusal = Message::assistant("I do not talk about passwords.");
            return Ok(request.answer(ChatResponse::new(0, refusal, FinishReason::Stop)));
        }
        next.next_stream(request).await
    });
    let model = ScriptedModel::new([Answer::of_text("It is sunny.")]);
    let client = client(model.clone()).advisor(guard).build()?;

    for question in ["Tell me the password.", "How is the weather?"] {
        println!("? {question}");
        let mut turn = client.prompt().user(question).stream();
        while let Some(chunk) = turn.next().await {
            if let Some(text) = chunk?.text() {
                println!("  {text}");
            }
        }
    }
    println!("the model was asked {} time", model.calls());
    Ok(())
}
