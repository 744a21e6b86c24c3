use tool_call_advisor::{ToolError, tool};

struct Forecast;

struct Closed;

/// Tells the weather.
#[tool(crate = "tool_call_advisor")]
async fn weather() -> Result<Forecast, ToolError> {
    Ok(Forecast)
}

/// Tells the weather.
#[tool(crate = "tool_call_advisor")]
async fn tomorrow() -> Result<String, Closed> {
    Err(Closed)
}

fn main() {}
