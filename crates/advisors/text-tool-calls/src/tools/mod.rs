//! `TextTools`: the tools whose calls are in a text, with their short forms (`ToolForm`).

pub(crate) mod schema;

use std::collections::HashMap;
use std::sync::Arc;

use advisor_core::{Text, ToolDefinition};

use self::schema::Schema;

/// The tools whose calls are in a text, with their short forms. Cheap to clone.
///
/// It describes them for a prompt, and writes calls as the model is to write them.
///
/// # Example
/// ```
/// use advisor_core::ToolDefinition;
/// use serde_json::json;
/// use text_tool_calls::{TextFormat, TextTools};
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let weather = ToolDefinition::new("weather", "Tells the weather.", schema);
/// let tools = TextTools::new([&weather]);
/// assert!(tools.describe(TextFormat::Xml).contains("<tool name=\"weather\">"));
/// assert_eq!(
///     tools.call(TextFormat::Xml, "weather", r#"{"city": "Oslo"}"#),
///     "<tool name=\"weather\">\n<arguments>\n<arg name=\"city\">Oslo</arg>\n</arguments>\n</tool>"
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct TextTools(Arc<Inner>);

#[derive(Debug, Clone, Default)]
struct Inner {
    definitions: Vec<ToolDefinition>,
    /// The place of each tool, by its name.
    places: HashMap<Text, usize>,
    forms: Vec<ToolForm>,
}

impl TextTools {
    /// Collects these tools. `write_file`, `edit_file` and `run_bash` have short forms.
    pub fn new<'a>(definitions: impl IntoIterator<Item = &'a ToolDefinition>) -> Self {
        let definitions: Vec<_> = definitions.into_iter().cloned().collect();
        let places = definitions.iter().enumerate().map(|(place, tool)| (tool.name.clone(), place)).collect();
        let forms = [
            ToolForm::new("write_file", "content")
                .with_verbatim_body("__START_CONTENT__", "__END_CONTENT__")
                .with_required("path"),
            ToolForm::new("edit_file", "patch")
                .with_verbatim_body("__START_PATCH__", "__END_PATCH__")
                .with_required("path"),
            ToolForm::new("run_bash", "command"),
        ];
        let tools = Self(Arc::new(Inner { definitions, places, forms: Vec::new() }));
        forms.into_iter().fold(tools, Self::with_form)
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

    /// Returns the tools in their order.
    pub(crate) fn definitions(&self) -> &[ToolDefinition] {
        &self.0.definitions
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.places.contains_key(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.definitions.is_empty()
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
        let definition = self.0.places.get(tool).and_then(|place| self.0.definitions.get(*place));
        definition.map_or_else(Schema::none, |definition| Schema::new(&definition.parameters))
    }
}

/// The short form of a tool: an element of the tool's name whose text is one argument.
///
/// In XML, `<write_file path="a.txt">text</write_file>` is a call of `write_file`. The attributes of the element
/// are the other arguments. In the sentinel syntax, the header has the other arguments.
///
/// A form is given to the advisor ([`TextToolCalls::forms`](crate::TextToolCalls::forms)), and again to the tools of a
/// segment handler ([`TextTools::with_form`]). A `BlockPolicy` holds back a call with its content: limit it to
/// other tools (`BlockPolicy::tools`) to see the content while it is generated.
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
