//! Tools whose arguments are a type: its doc comments are the schema's, and bad arguments name the place.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::tools::{ToolError, ToolOutput};
use advisor_chain::{ChatMemoryAdvisor, FnTool, InMemoryStore, Result, client};
use advisor_testkit::{Answer, ScriptedModel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Looks for trains.
#[derive(Deserialize, JsonSchema)]
struct Trains {
    /// Where the journey begins.
    from: String,
    /// Where it ends.
    to: String,
    /// How many travel; one if left out.
    travellers: Option<u8>,
}

#[derive(Serialize)]
struct Train {
    leaves: &'static str,
    price: String,
}

/// Data of the application about its user, as an extension of the turn.
#[derive(Clone)]
struct Currency(&'static str);

/// Without arguments: a struct without fields.
#[derive(Deserialize, JsonSchema)]
struct Now {}

fn trains() -> FnTool {
    FnTool::typed("trains", "Finds trains.", |args: Trains, call| async move {
        // Data of the application, not of the model: extensions of the turn and the conversation.
        let Some(Currency(currency)) = call.turn.extensions().get() else {
            return Err(ToolError::new("the user has no currency; ask for it"));
        };
        let conversation = call.conversation.as_ref().map(ToString::to_string).unwrap_or_default();
        println!("  {} to {}, in the conversation {conversation}, call {}", args.from, args.to, call.key);
        call.progress.report("asking the railway").await;
        let price = format!("{} {currency}", 49 * u32::from(args.travellers.unwrap_or(1)));
        ToolOutput::json(&[Train { leaves: "08:03", price }])
    })
}

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
    let trains = trains();
    println!("the model is offered {}", advisor_chain::tools::schema_for::<Trains>());
    let now = FnTool::from_args("now", "Tells the time.", |_: Now| async { Ok("07:55") })
        .map_definition(|definition| definition.with_effect(advisor_chain::tools::Effect::Pure));
    let client =
        client(model).advisor(ChatMemoryAdvisor::new(InMemoryStore::new())).tool(trains).tool(now).build()?;

    let prompt = client.prompt().user("When can two of us go to Bergen?").conversation("journeys");
    let response =
        prompt.turn(advisor_chain::TurnId::new("turn-1")?).extension(Currency("euros")).call().await?;
    for message in response.transcript() {
        if let Some(result) = message.tool_result() {
            println!("{}: {}", result.name, result.text());
        }
    }
    println!("{}", response.text());
    Ok(())
}
