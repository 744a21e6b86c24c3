//! Tools whose arguments are types: doc comments describe them, and bad arguments name the place.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::tools::{Effect, JsonSchema, ToolInvocation};
use advisor_chain::{ChatMemoryAdvisor, FnTool, InMemoryStore, Result, Tool, client, tool};
use advisor_testkit::{Answer, ScriptedModel};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Train {
    leaves: &'static str,
    price: String,
}

/// Data of the application about its user, as an extension of the turn.
#[derive(Clone)]
struct Currency(&'static str);

/// Finds trains.
#[tool(effect = Effect::Pure)]
async fn trains(
    /// Where the journey begins.
    from: String,
    /// Where it ends.
    to: String,
    /// How many travel; one if left out.
    travellers: Option<u8>,
    call: &ToolInvocation,
) -> Result<Vec<Train>, &'static str> {
    // Data of the application, not of the model: extensions of the turn and the conversation.
    let Some(Currency(currency)) = call.turn.extensions().get() else {
        return Err("the user has no currency; ask for it");
    };
    let conversation = call.conversation.as_ref().map(ToString::to_string).unwrap_or_default();
    println!("  {from} to {to}, in the conversation {conversation}, call {}", call.key);
    call.progress.report("asking the railway").await;
    let price = format!("{} {currency}", 49 * u32::from(travellers.unwrap_or(1)));
    Ok(vec![Train { leaves: "08:03", price }])
}

/// The arguments of a closure are a struct, here one without fields.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "advisor_chain::tools::schemars")]
struct Now {}

#[tokio::main]
async fn main() -> Result<()> {
    let model = ScriptedModel::new([
        Answer::from_calls([
            ("c1", "now", "{}"),
            ("c2", "trains", r#"{"from":"Oslo","to":"Bergen","travellers":"two"}"#),
        ]),
        Answer::from_calls([("c3", "trains", r#"{"from":"Oslo","to":"Bergen","travellers":2}"#)]),
        Answer::from_text("There is one at 08:03, for 98 euros."),
    ]);
    let trains = trains_tool();
    println!("the model is offered {}", trains.definition().parameters);
    let mut now = FnTool::typed("now", "Tells the time.", |_: Now, _| async { Ok("07:55") });
    now.definition.effect = Some(Effect::Pure);
    let client =
        client(model).advisor(ChatMemoryAdvisor::new(InMemoryStore::new())).tool(trains).tool(now).build()?;

    let prompt = client.prompt().user("When can two of us go to Bergen?").conversation("journeys");
    let response =
        prompt.turn(advisor_chain::TurnId::new("turn-1")?).extension(Currency("euros")).call().await?;
    for message in &response.transcript {
        if let Some(result) = message.tool_result() {
            println!("{}: {}", result.name, result.text());
        }
    }
    println!("{}", response.text());
    Ok(())
}
