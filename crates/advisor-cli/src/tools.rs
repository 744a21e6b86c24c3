//! The tools of `chat`, `serve` and `demo`, and how a model calls them.

use std::time::{Duration, SystemTime};

use advisor_chain::text_tool_calls::{TextToolCalls, ToolCallFormat};
use advisor_chain::tools::{PolicyAction, ToolCallStreaming, ToolInvocation, ToolPolicy, ToolRule, ToolSet};
use advisor_chain::{Error, FnTool, Result, ToolCallAdvisor, ToolDefinition};
use serde_json::{Value, json};

/// The time that a question about the weather takes, so that a person sees the tool at work.
const WEATHER: Duration = Duration::from_millis(1_200);

pub(crate) fn current_time() -> FnTool {
    let definition = ToolDefinition::new(
        "current_time",
        "Tells the current date and time in UTC.",
        json!({"type": "object", "properties": {}}),
    );
    FnTool::new(definition, |_: Value| async { Ok(httpdate::fmt_http_date(SystemTime::now())) })
}

/// Makes up a weather. The same city has the same weather.
pub(crate) fn demo_weather() -> FnTool {
    let definition = ToolDefinition::new(
        "demo_weather",
        "Makes up the weather of a city, for a demonstration.",
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
    );
    FnTool::with_invocation(definition, |invocation: ToolInvocation| async move {
        let city = invocation.arguments.get("city").and_then(Value::as_str).unwrap_or_default();
        invocation.progress.report(format!("Looking at the sky of {city}")).await;
        tokio::time::sleep(WEATHER).await;
        let degrees = city.bytes().map(u32::from).sum::<u32>() % 30;
        Ok(json!({"city": city, "degrees": degrees, "made_up": true}).into())
    })
}

/// Returns a tool loop in which these tools ask before they run. `*` at the end of a name matches every rest.
///
/// # Errors
/// For a name of no tool.
pub(crate) fn tool_loop(asks: &[String], tools: &ToolSet) -> Result<ToolCallAdvisor> {
    let mut policy = ToolPolicy::default();
    if !asks.is_empty() {
        policy.rules.push(ToolRule::new(asks.iter().map(String::as_str), PolicyAction::Ask));
    }
    policy.validate_for(tools).map_err(|error| Error::configuration(format!("--ask: {error}")))?;
    ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).policy(policy).build()
}

/// Returns the advisor that describes tools in the text and reads calls in it, if the environment chooses so; `None` for
/// the interface of the provider.
///
/// # Errors
/// For a value of the variable that names no format.
pub(crate) fn calls_in_text() -> Result<Option<TextToolCalls>> {
    Ok(match ToolCallFormat::from_env()? {
        Some(format @ ToolCallFormat::Text(_)) => Some(TextToolCalls::new(format)),
        Some(ToolCallFormat::Api) | None => None,
    })
}
