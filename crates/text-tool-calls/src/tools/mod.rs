//! `TextTools`: the tools whose calls are in a text, with their short forms (`ToolForm`): described for a prompt, and looked up by
//! the parser.

mod call;
mod example;
pub(crate) mod schema;

use std::collections::HashMap;
use std::sync::Arc;

use advisor_core::{Text, ToolCall, ToolDefinition, described_schema};
use serde_json::{Value, json};

use self::schema::Schema;
use crate::format::PromptFormat;

/// The tools whose calls are in a text, with their short forms. Cheap to clone.
///
/// It describes them for a prompt, and writes calls as the model is to write them.
///
/// # Example
/// ```
/// use advisor_core::ToolDefinition;
/// use serde_json::json;
/// use text_tool_calls::{PromptFormat, TextTools};
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let weather = ToolDefinition::new("weather", "Tells the weather.", schema);
/// let tools = TextTools::new([&weather]);
/// assert!(tools.describe(PromptFormat::Xml).contains("<tool name=\"weather\">"));
/// assert_eq!(
///     tools.call(PromptFormat::Xml, "weather", r#"{"city": "Oslo"}"#),
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

const INTRODUCTION: &str = "\
# Tools

You can call the tools below. To call one, write a block exactly as in its example, with your own values. \
Text may stand before the block. Write one block per call; several blocks are several calls. \
After the last block, end your message: the results come with the next one. Never write a result yourself.";

const XML_RULES: &str = "\
Write each element of a list as an `<item>`, and each member of an object as an `<arg>` with its name:

<arg name=\"names\">
<item>first</item>
<item>second</item>
</arg>

Write `&lt;` for `<` and `&amp;` for `&` in values.";

const JSON_RULES: &str = "Write nothing but valid JSON in the block.";

const SENTINEL_RULES: &str = "\
The start marker has a JSON object with the name of the tool; the text up to the end marker is a JSON object with the \
arguments, unless the example shows otherwise.";

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

    /// Returns the description of the tools for a prompt: the rules, and each tool with its arguments and examples. Empty
    /// without tools.
    #[must_use]
    pub fn describe(&self, format: PromptFormat) -> String {
        if self.is_empty() {
            return String::new();
        }
        let rules = match format {
            PromptFormat::Xml => self.xml_rules(),
            PromptFormat::Json => JSON_RULES.to_owned(),
            PromptFormat::Sentinel => SENTINEL_RULES.to_owned(),
        };
        let mut parts = vec![INTRODUCTION.to_owned(), rules];
        for definition in &self.0.definitions {
            parts.push(format!("## {}\n\n{}", definition.name, described(definition)));
            parts.push(self.examples(format, definition));
        }
        parts.join("\n\n")
    }

    /// Returns the rules of XML, with the exceptions for texts that are read unchanged.
    fn xml_rules(&self) -> String {
        let mut rules = XML_RULES.to_owned();
        for form in self.forms() {
            let exception = match &form.body_text {
                BodyText::Value => continue,
                BodyText::Verbatim(Some((start, end))) => {
                    format!("Text between `{start}` and `{end}` is an exception")
                }
                BodyText::Verbatim(None) => {
                    format!("The argument `{}` of `{}` is an exception", form.body, form.tool)
                }
            };
            rules.push_str(&format!("\n{exception}: write it unchanged, with each `<` and `&` as it is."));
        }
        rules
    }

    /// Returns one example with the required arguments, and another with all, if there are others.
    fn examples(&self, format: PromptFormat, definition: &ToolDefinition) -> String {
        let [basic, all] = [false, true].map(|all| example::arguments(definition, all));
        let mut text = format!("Example:\n\n{}", self.call(format, &definition.name, &basic.to_string()));
        if all != basic {
            text.push_str("\n\nExample with optional arguments:\n\n");
            text.push_str(&self.call(format, &definition.name, &all.to_string()));
        }
        text
    }

    /// Writes a call in this format; `arguments` is the text of a JSON object. Other text is written unchanged.
    ///
    /// The parser reads the same arguments in it. In XML, arguments that elements would change are written as JSON.
    #[must_use]
    pub fn call(&self, format: PromptFormat, name: &str, arguments: &str) -> String {
        let arguments = if ToolCall::gives_none(arguments) { "{}" } else { arguments.trim() };
        match format {
            PromptFormat::Xml => call::in_xml(name, arguments, self),
            PromptFormat::Json => call::in_json(name, arguments),
            PromptFormat::Sentinel => call::in_sentinel(name, arguments, self),
        }
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

/// Returns the description of one tool and its arguments, as a JSON object.
///
/// It has the schema of the arguments without each `$schema` and `title`, which repeat what the model knows. A `format`
/// stays where a text is meant: `date-time` tells how to write it. The format of a number is left out: `uint32` and
/// `double` are types of a program, and the bounds of the number are in `minimum` and `maximum`.
fn described(definition: &ToolDefinition) -> String {
    let parameters = match &definition.parameters {
        Value::Null => json!({"type": "object"}),
        schema => described_schema(schema),
    };
    json!({
        "name": definition.name, "description": definition.description, "parameters": parameters,
    })
    .to_string()
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
