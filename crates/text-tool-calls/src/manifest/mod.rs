//! `ToolManifest`: the description of tools for a prompt.

mod call;
mod describe;

use advisor_core::{ToolCall, ToolDefinition, described_schema};
use serde_json::{Value, json};

use crate::format::PromptFormat;
use crate::tools::{BodyText, TextTools, ToolForm};

/// Returns the bytes that the description of a tool, or an example, may take: a multiple of its definition.
fn most_bytes(definition: &ToolDefinition) -> usize {
    const MULTIPLE: usize = 8;
    const LEAST: usize = 4 << 10;
    let schema = definition.parameters.to_string().len();
    (schema + definition.description.len()).saturating_mul(MULTIPLE).saturating_add(LEAST)
}

/// Describes tools for a prompt, and writes calls as the model is to write them.
///
/// # Example
/// ```
/// use advisor_core::ToolDefinition;
/// use serde_json::json;
/// use text_tool_calls::{PromptFormat, ToolManifest};
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let weather = ToolDefinition::new("weather", "Tells the weather.", schema);
/// let manifest = ToolManifest::new(PromptFormat::Xml, [&weather]);
/// assert!(manifest.text().contains("<tool name=\"weather\">"));
/// assert_eq!(
///     manifest.call("weather", r#"{"city": "Oslo"}"#),
///     "<tool name=\"weather\">\n<arguments>\n<arg name=\"city\">Oslo</arg>\n</arguments>\n</tool>"
/// );
/// ```
#[derive(Debug, Clone)]
pub struct ToolManifest {
    format: PromptFormat,
    tools: TextTools,
    definitions: Vec<ToolDefinition>,
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

impl ToolManifest {
    /// Creates the description of these tools. Tools that have a short form use it.
    pub fn new<'a>(format: PromptFormat, definitions: impl IntoIterator<Item = &'a ToolDefinition>) -> Self {
        let definitions: Vec<_> = definitions.into_iter().cloned().collect();
        Self::with_tools(format, TextTools::new(&definitions), definitions)
    }

    /// Creates the description of these tools, whose schemas and forms are known.
    pub(crate) fn with_tools(
        format: PromptFormat,
        tools: TextTools,
        definitions: Vec<ToolDefinition>,
    ) -> Self {
        Self { format, tools, definitions }
    }

    /// Adds the short form of a tool.
    #[must_use]
    pub fn with_form(self, form: ToolForm) -> Self {
        Self { tools: self.tools.with_form(form), ..self }
    }

    pub(crate) fn format(&self) -> PromptFormat {
        self.format
    }

    /// Returns the whole description: the rules, and each tool with its arguments and examples. Empty without tools.
    #[must_use]
    pub fn text(&self) -> String {
        if self.definitions.is_empty() {
            return String::new();
        }
        let rules = match self.format {
            PromptFormat::Xml => self.xml_rules(),
            PromptFormat::Json => JSON_RULES.to_owned(),
            PromptFormat::Sentinel => SENTINEL_RULES.to_owned(),
        };
        let mut parts = vec![INTRODUCTION.to_owned(), rules];
        for definition in &self.definitions {
            parts.push(format!("## {}\n\n{}", definition.name, self.schema(definition)));
            parts.push(self.examples(definition));
        }
        parts.join("\n\n")
    }

    /// Returns the rules of XML, with the exceptions for texts that are read unchanged.
    fn xml_rules(&self) -> String {
        let mut rules = XML_RULES.to_owned();
        for form in self.tools.forms() {
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

    /// Returns the description of one tool and its arguments: elements in XML, else a JSON object.
    ///
    /// The JSON object has the schema of the arguments without each `$schema` and `title`, which repeat what the model
    /// knows. A `format` stays where a text is meant: `date-time` tells how to write it. The format of a number is left
    /// out: `uint32` and `double` are types of a program, and the bounds of the number are in `minimum` and `maximum`.
    fn schema(&self, definition: &ToolDefinition) -> String {
        match self.format {
            PromptFormat::Xml => describe::in_xml(definition, most_bytes(definition)),
            PromptFormat::Json | PromptFormat::Sentinel => {
                let parameters = match &definition.parameters {
                    Value::Null => json!({"type": "object"}),
                    schema => described_schema(schema),
                };
                let schema = json!({
                    "name": definition.name, "description": definition.description, "parameters": parameters,
                });
                schema.to_string()
            }
        }
    }

    /// Returns one example with the required arguments, and another with all, if there are others.
    fn examples(&self, definition: &ToolDefinition) -> String {
        let most = most_bytes(definition);
        let basic = describe::arguments(&definition.parameters, describe::Members::Required, most);
        let all = describe::arguments(&definition.parameters, describe::Members::All, most);
        let mut text = format!("Example:\n\n{}", self.call(&definition.name, &basic.to_string()));
        if all != basic {
            text.push_str("\n\nExample with optional arguments:\n\n");
            text.push_str(&self.call(&definition.name, &all.to_string()));
        }
        text
    }

    /// Writes a call in this format; `arguments` is the text of a JSON object. Other text is written unchanged.
    ///
    /// The parser reads the same arguments in it. In XML, arguments that elements would change are written as JSON.
    #[must_use]
    pub fn call(&self, name: &str, arguments: &str) -> String {
        let arguments = if ToolCall::gives_none(arguments) { "{}" } else { arguments.trim() };
        match self.format {
            PromptFormat::Xml => call::in_xml(name, arguments, &self.tools),
            PromptFormat::Json => call::in_json(name, arguments),
            PromptFormat::Sentinel => call::in_sentinel(name, arguments, &self.tools),
        }
    }
}
