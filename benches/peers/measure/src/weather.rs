//! The one tool that all clients have.

use serde_json::{Value, json};

/// The name of the tool.
pub const NAME: &str = "get_weather";
/// The description of the tool.
pub const DESCRIPTION: &str = "The weather in a city, now and for the next days.";
/// The city that every call asks for.
pub const CITY: &str = "Sankt Gallen";
/// The result of the tool, about 500 bytes.
pub const RESULT: &str = r#"{"city":"Sankt Gallen","temperature":17.5,"unit":"celsius","sky":"broken clouds, light wind from the south-west","humidity":0.61,"pressure":1017,"days":[{"day":"monday","from":9,"to":18},{"day":"tuesday","from":8,"to":16},{"day":"wednesday","from":10,"to":21},{"day":"thursday","from":12,"to":23},{"day":"friday","from":11,"to":19}],"station":{"name":"Rosenberg","height":775},"air":{"ozone":48,"dust":11,"pollen":["birch","grass"]},"hint":"A stiff breeze in the evening; take a coat. Figures are invented."}"#;

/// The JSON schema of its arguments.
#[must_use]
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
        "required": ["city", "unit"]
    })
}

/// Its answer to a call with these arguments.
///
/// # Panics
/// If a client lost something of them on the way.
#[must_use]
pub fn answer(city: &str) -> &'static str {
    assert_eq!(city, CITY, "the arguments are not those that were sent");
    RESULT
}
