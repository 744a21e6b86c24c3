//! `TextTools`: the tools that are looked for, with their schemas and short forms (`ToolForm`).

pub(crate) mod schema;

use std::collections::HashMap;
use std::sync::Arc;

use advisor_core::{Text, ToolDefinition};
use serde_json::Value;

use self::schema::Schema;

/// The tools whose calls a parser finds in a text: their names, schemas and short forms. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct TextTools(Arc<Inner>);

#[derive(Debug, Clone, Default)]
struct Inner {
    /// The JSON schema of each tool's arguments.
    schemas: HashMap<Text, Value>,
    forms: Vec<ToolForm>,
}

impl TextTools {
    /// Creates the description of these tools. `write_file`, `edit_file` and `run_bash` have short forms.
    pub fn new<'a>(definitions: impl IntoIterator<Item = &'a ToolDefinition>) -> Self {
        let schemas = definitions.into_iter();
        let schemas = schemas.map(|tool| (tool.name.clone(), tool.parameters.clone())).collect();
        let forms = [
            ToolForm::new("write_file", "content")
                .with_verbatim_body("__START_CONTENT__", "__END_CONTENT__")
                .with_required("path"),
            ToolForm::new("edit_file", "patch")
                .with_verbatim_body("__START_PATCH__", "__END_PATCH__")
                .with_required("path"),
            ToolForm::new("run_bash", "command"),
        ];
        forms.into_iter().fold(Self(Arc::new(Inner { schemas, forms: Vec::new() })), Self::with_form)
    }

    /// Adds a short form, and replaces that of the same tool. It has no effect if there is no such tool.
    #[must_use]
    pub fn with_form(mut self, form: ToolForm) -> Self {
        if self.contains(&form.tool) {
            let forms = &mut Arc::make_mut(&mut self.0).forms;
            forms.retain(|known| known.tool != form.tool);
            forms.push(form);
        }
        self
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
    pub(crate) fn form(&self, tool: &str) -> Option<&ToolForm> {
        self.forms().iter().find(|form| form.tool == *tool)
    }

    /// Returns the short form whose element has this name; upper and lower case are equal.
    pub(crate) fn form_of_element(&self, element: &str) -> Option<&ToolForm> {
        self.forms().iter().find(|form| form.tool.eq_ignore_ascii_case(element))
    }

    pub(crate) fn forms(&self) -> &[ToolForm] {
        &self.0.forms
    }

    /// Returns the schema of the tool's arguments, which is empty if there is no such tool.
    pub(crate) fn schema(&self, tool: &str) -> Schema<'_> {
        self.0.schemas.get(tool).map_or_else(Schema::none, Schema::new)
    }
}

/// The short form of a tool: an element of the tool's name whose text is one argument.
///
/// In XML, `<write_file path="a.txt">text</write_file>` is a call of `write_file`. The attributes of the element
/// are the other arguments. In the sentinel syntax, the header has the other arguments.
///
/// A form is given to the advisor ([`TextToolCalls::with_form`](crate::TextToolCalls::with_form)), and again to the tools
/// of a segment handler ([`TextTools::with_form`]). A `BlockPolicy` holds back a call with its content: limit it to
/// other tools (`BlockPolicy::with_tools`) to see the content while it is generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolForm {
    pub(crate) tool: Text,
    /// The argument that is the text of the element.
    pub(crate) body: Text,
    pub(crate) body_text: BodyText,
    pub(crate) required: Vec<Text>,
}

/// The reading of the text of a [`ToolForm`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyText {
    /// As a value, at its end: entities are decoded once, and white space around it is left out.
    Value,
    /// Unchanged, while it is generated, without one line break at its start. If it is between these markers, they are
    /// left out, and it may contain closing tags.
    Verbatim(Option<(Text, Text)>),
}

impl ToolForm {
    /// Creates a form of the tool `tool` whose text is the argument `body`, read as a value.
    pub fn new(tool: impl Into<Text>, body: impl Into<Text>) -> Self {
        Self { tool: tool.into(), body: body.into(), body_text: BodyText::Value, required: Vec::new() }
    }

    /// Reads the text unchanged, while it is generated, and leaves out these markers around it. If one is empty, the
    /// text has no markers.
    #[must_use]
    pub fn with_verbatim_body(self, start: impl Into<Text>, end: impl Into<Text>) -> Self {
        let markers = (start.into(), end.into());
        let markers = Some(markers).filter(|(start, end)| !start.is_empty() && !end.is_empty());
        Self { body_text: BodyText::Verbatim(markers), ..self }
    }

    /// Adds an argument without which the element is no call, and for which the start of a segment waits.
    #[must_use]
    pub fn with_required(mut self, argument: impl Into<Text>) -> Self {
        self.required.push(argument.into());
        self
    }
}
