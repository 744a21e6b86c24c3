//! `TextTools`: the names, schemas and short forms of the tools that are looked for.

pub(crate) mod coercion;
pub(crate) mod form;

use std::collections::HashMap;
use std::sync::Arc;

use advisor_core::{Text, ToolDefinition, ToolSet};
use serde_json::Value;

use coercion::{ArgumentSchema, Schema, ValueKind};
pub use form::{BodyMarkers, BodyText, ToolForm};

/// The tools whose calls a parser finds in a text: their names, schemas and short forms. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TextTools(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The JSON schema of each tool's arguments.
    schemas: HashMap<Text, Arc<Value>>,
    forms: Vec<ToolForm>,
}

impl TextTools {
    /// Creates the description of these tools. Tools that have a [standard form](ToolForm::standard) use it.
    pub fn new<'a>(definitions: impl IntoIterator<Item = &'a ToolDefinition>) -> Self {
        let schemas: HashMap<_, _> = definitions
            .into_iter()
            .map(|definition| (definition.name.clone(), Arc::new(definition.parameters.clone())))
            .collect();
        let forms =
            ToolForm::standard().into_iter().filter(|form| schemas.contains_key(&form.tool)).collect();
        Self(Arc::new(Inner { schemas, forms }))
    }

    /// Adds a short form, and replaces that of the same tool. It has no effect if there is no such tool.
    #[must_use]
    pub fn with_form(self, form: ToolForm) -> Self {
        let Inner { schemas, forms } = &*self.0;
        let mut forms: Vec<_> = forms.iter().filter(|known| known.tool != form.tool).cloned().collect();
        forms.extend(schemas.contains_key(&form.tool).then_some(form));
        Self(Arc::new(Inner { schemas: schemas.clone(), forms }))
    }

    /// Checks whether a tool of this name exists.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.schemas.contains_key(name)
    }

    /// Checks whether there is no tool.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.schemas.is_empty()
    }

    /// Returns the short form of the tool.
    #[must_use]
    pub fn form(&self, tool: &str) -> Option<&ToolForm> {
        self.0.forms.iter().find(|form| form.tool == *tool)
    }

    /// Returns the short form whose element has this name; upper and lower case are equal.
    pub(crate) fn form_of_element(&self, element: &str) -> Option<&ToolForm> {
        self.0.forms.iter().find(|form| form.tool.eq_ignore_ascii_case(element))
    }

    /// Iterates over the short forms.
    pub(crate) fn forms(&self) -> impl Iterator<Item = &ToolForm> {
        self.0.forms.iter()
    }

    /// Iterates over the names of elements that are short forms.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &str> {
        self.0.forms.iter().map(|form| form.tool.as_str())
    }

    /// Checks whether the schema of the tool lists this argument.
    pub(crate) fn has_argument(&self, tool: &str, argument: &str) -> bool {
        self.schema(tool).has_property(argument)
    }

    /// Returns the conversion of the argument's text to a value.
    pub(crate) fn kind_of(&self, tool: &str, argument: &str) -> ValueKind {
        if self.schema(tool).property(argument).allows("string") {
            return ValueKind::Text;
        }
        let schema = self.0.schemas.get(tool).cloned().unwrap_or_default();
        ValueKind::Other(ArgumentSchema::new(schema, argument))
    }

    /// Returns the schema of the tool's arguments, which is empty if there is no such tool.
    pub(crate) fn schema(&self, tool: &str) -> Schema<'_> {
        self.0.schemas.get(tool).map_or_else(Schema::none, |schema| Schema::new(schema))
    }
}

/// A set keeps the result, so its schemas are copied once for all rounds.
impl From<&ToolSet> for TextTools {
    fn from(tools: &ToolSet) -> Self {
        tools.wire_form(|tools| Self::new(tools.definitions())).clone()
    }
}

#[cfg(test)]
mod tests {
    use advisor_testkit::DescribedTool;

    use super::*;

    #[test]
    fn set_of_tools_is_described_once() {
        let tool = |name| DescribedTool::new(ToolDefinition::new(name, "", Value::Null));
        let set = ToolSet::new().with(tool("time"));
        let described = TextTools::from(&set);
        assert!(Arc::ptr_eq(&described.0, &TextTools::from(&set.clone()).0));
        let grown = TextTools::from(&set.with(tool("weather")));
        assert!(grown.contains("weather") && !described.contains("weather"));
    }
}
