//! The option `--ask`: tools that run only after a person has agreed.

use advisor_chain::tools::{PolicyAction, ToolPolicy, ToolRule, ToolSet};
use advisor_chain::{Error, Result};

/// Returns the policy of these names. `*` at the end of one matches every rest.
///
/// # Errors
/// For a name of no tool.
pub(crate) fn policy(asks: &[String], tools: &ToolSet) -> Result<ToolPolicy> {
    let rule = ToolRule::new(asks.iter().map(String::as_str), PolicyAction::Ask);
    let policy = ToolPolicy::new(Some(rule).filter(|_| !asks.is_empty()), PolicyAction::Allow);
    policy.validate_for(tools).map_err(|error| Error::configuration(format!("--ask: {error}")))?;
    Ok(policy)
}
