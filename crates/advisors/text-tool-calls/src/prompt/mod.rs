//! The tools in words: their description for a prompt, and calls as the model is to write them.

mod call;
mod example;

use advisor_core::{ToolCall, ToolDefinition, described_schema};
use serde_json::{Value, json};

use crate::format::TextFormat;
use crate::parser::syntax::{DEEPSEEK, KIMI};
use crate::tools::{BodyText, TextTools};

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

const TOKEN_RULES: &str =
    "Between the markers stand the name of the tool and a JSON object with the arguments.";

impl TextTools {
    /// Returns the description of the tools for a prompt: the rules, and each tool with its arguments and examples. Empty
    /// without tools.
    #[must_use]
    pub fn describe(&self, format: TextFormat) -> String {
        if self.is_empty() {
            return String::new();
        }
        let rules = match format {
            TextFormat::Xml => self.xml_rules(),
            TextFormat::Json => JSON_RULES.to_owned(),
            TextFormat::Sentinel => SENTINEL_RULES.to_owned(),
            TextFormat::DeepSeek | TextFormat::Kimi => TOKEN_RULES.to_owned(),
        };
        let mut parts = vec![INTRODUCTION.to_owned(), rules];
        for definition in self.definitions() {
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
    fn examples(&self, format: TextFormat, definition: &ToolDefinition) -> String {
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
    pub fn call(&self, format: TextFormat, name: &str, arguments: &str) -> String {
        let arguments = if ToolCall::gives_none(arguments) { "{}" } else { arguments.trim() };
        match format {
            TextFormat::Xml => call::in_xml(name, arguments, self),
            TextFormat::Json => call::in_json(name, arguments),
            TextFormat::Sentinel => call::in_sentinel(name, arguments, self),
            TextFormat::DeepSeek => call::in_tokens(&DEEPSEEK, name, arguments),
            TextFormat::Kimi => call::in_tokens(&KIMI, &format!("functions.{name}:0"), arguments),
        }
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
