//! An advisor that answers by itself where it must, without asking the model.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::{Result, client};
use advisor_examples::advisors::{guard, polite};
use advisor_testkit::{Answer, ScriptedModel};
use futures::StreamExt;

#[tokio::main]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([Answer::from_text("It is sunny.")]);
    let client = client(model.clone()).advisor(polite()).advisor(guard()).build()?;

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
