use tool_call_advisor::tool;

/// Tells the weather.
#[tool(exclusiv, crate = "tool_call_advisor")]
async fn weather() -> String {
    "sunny".into()
}

fn main() {}
