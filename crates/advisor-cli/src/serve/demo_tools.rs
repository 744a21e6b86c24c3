//! The tools of `advisor serve`.

use std::time::{Duration, SystemTime};

use advisor_chain::tools::ToolSet;
use advisor_chain::{FnTool, ToolDefinition};
use serde_json::{Value, json};

/// The time that a question about the weather takes, so that a person sees the tool at work.
const WEATHER: Duration = Duration::from_millis(1_200);

/// Returns tools that need no network.
pub(super) fn tools() -> ToolSet {
    let time = ToolDefinition::new(
        "current_time",
        "Tells the current date and time in UTC.",
        json!({"type": "object"}),
    );
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    });
    let weather =
        ToolDefinition::new("demo_weather", "Makes up the weather of a city, for a demonstration.", schema);
    ToolSet::new()
        .with(FnTool::new(time, |_: Value| async { Ok(httpdate::fmt_http_date(SystemTime::now())) }))
        .with(FnTool::with_invocation(weather, |invocation| async move {
            let city = invocation.arguments.get("city").and_then(Value::as_str).unwrap_or_default();
            invocation.progress.report(format!("Looking at the sky of {city}")).await;
            tokio::time::sleep(WEATHER).await;
            // The same city has the same weather.
            let degrees = city.bytes().map(u32::from).sum::<u32>() % 30;
            Ok(json!({"city": city, "degrees": degrees, "made_up": true}).into())
        }))
}
