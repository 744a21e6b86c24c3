//! Replaces `schema` if the feature `schema-validation` is off: arguments must parse and be an object.

use advisor_core::{Leniency, Result, ToolDefinition, ToolSet};
use serde_json::Value;

/// Placeholder for compiled schemas. Tools check their arguments themselves, typed tools by deserialising them.
#[derive(Debug, Default)]
pub(crate) struct Schemas;

impl Schemas {
    pub(crate) fn fit(
        &self,
        _tool: &ToolDefinition,
        arguments: Value,
        _leniency: Leniency,
    ) -> Result<Value, String> {
        let object = arguments.is_object().then_some(arguments);
        object.ok_or_else(|| String::from("they are no object"))
    }

    /// Arguments are only parsed, in any case.
    pub(crate) fn is_short(_bytes: usize) -> bool {
        true
    }

    /// Nothing is compared.
    pub(crate) fn fit_quickly(
        &self,
        tool: &ToolDefinition,
        arguments: &Value,
        leniency: Leniency,
    ) -> Option<Result<Option<Value>, String>> {
        Some(self.fit(tool, arguments.clone(), leniency).map(Some))
    }

    /// Accepts every set. The chain checks names and the roots of schemas.
    pub(crate) fn validate(&self, _tools: &ToolSet) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use advisor_core::ToolCall;
    use serde_json::json;

    use crate::FnTool;
    use crate::plan::prepare::prepare_in_time;

    fn look() -> ToolSet {
        let schema =
            json!({"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]});
        let definition = ToolDefinition::new("look", "Looks.", schema);
        ToolSet::new().with(FnTool::new(definition, |_: Value| async { Ok("sunny") }))
    }

    #[tokio::test]
    async fn law_t2_without_schemas_arguments_are_an_object() {
        for (arguments, wrong) in [
            ("{", "not started: the arguments are no valid JSON"),
            ("[]", "not started: the arguments do not fit the tool: they are no object"),
        ] {
            let call = ToolCall::new("c1", "look", arguments);
            let refused = prepare_in_time(&call, &look(), &Arc::new(Schemas), Leniency::Lenient).await;
            let refused = refused.map(|_| ()).unwrap_err();
            assert!(refused.text.starts_with(wrong), "{refused:?}");
        }
        for arguments in [json!({}), json!({"days": "3"}), json!({"days": null})] {
            let call = ToolCall::new("c1", "look", arguments.to_string());
            let schemas = Arc::new(Schemas);
            let (tool, given) = prepare_in_time(&call, &look(), &schemas, Leniency::Lenient).await.unwrap();
            assert_eq!((tool.definition().name.as_str(), given), ("look", arguments), "as it was written");
        }
    }
}
