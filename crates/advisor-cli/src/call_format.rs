//! The way in which the model calls tools, as the environment chooses it.

use advisor_chain::text_tool_calls::{TextToolCalls, ToolCallFormat};
use advisor_chain::{Error, Result};

/// Returns the advisor that describes tools in the text and reads calls in it; `None` for the interface of the provider.
///
/// # Errors
/// For a value of the variable that names no format.
pub(crate) fn in_text() -> Result<Option<TextToolCalls>> {
    let chosen = ToolCallFormat::from_env()
        .map_err(|error| Error::configuration(format!("{}: {error}", ToolCallFormat::VARIABLE)))?;
    Ok(match chosen {
        Some(format @ ToolCallFormat::Text(_)) => Some(TextToolCalls::with_format(format)),
        Some(ToolCallFormat::Api) | None => None,
    })
}
