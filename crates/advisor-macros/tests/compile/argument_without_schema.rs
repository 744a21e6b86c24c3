use tool_call_advisor::tool;

#[derive(serde::Deserialize)]
struct City {
    name: String,
}

/// Tells the weather.
#[tool(crate = "tool_call_advisor")]
async fn weather(city: City) -> String {
    city.name
}

fn main() {}
