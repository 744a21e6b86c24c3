//! A function of the program, called by a model.
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use advisor_chain::{OpenAiModel, Result, client, tool};

#[derive(serde::Serialize)]
struct Forecast {
    city: String,
    degrees: Vec<i32>,
}

/// Tells the weather of the next days.
#[tool]
async fn weather(
    /// The city, in English.
    city: String,
    days: Option<u8>,
) -> Forecast {
    Forecast { city, degrees: vec![12; usize::from(days.unwrap_or(1))] }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let client = client(OpenAiModel::from_env()?).tool(weather_tool()).build()?;
    let answer = client.prompt().user("Which clothes do I need in Oslo?").call().await?;
    println!("{}", answer.text());
    Ok(())
}
