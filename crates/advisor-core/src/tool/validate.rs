//! `ToolDefinition::validate` and `ToolSet::validate`: check names and schema roots, once per set.

use serde_json::Value;

use crate::{Error, Result, ToolDefinition, ToolSet};

/// The longest name that OpenAI accepts, as did Anthropic before it allowed 128.
const LONGEST_NAME: usize = 64;

impl ToolDefinition {
    /// Checks the common rules of all servers: the name, and an object as the root of the schema.
    ///
    /// A name has 1 to 64 letters, digits, `_`, `-` and `.`. OpenAI refuses others by the pattern
    /// `^[a-zA-Z0-9_-]+$`, Anthropic by `^[a-zA-Z0-9_-]{1,64}$`. A dot is common in names from other sources;
    /// providers encode it for their server. A schema is absent (`null`), or has `"type": "object"` at its root.
    /// The tool loop checks the rest of the schema.
    ///
    /// # Errors
    /// Of kind [`Configuration`](crate::ErrorKind::Configuration). The text names the tool and the remedy.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ToolDefinition;
    /// use serde_json::json;
    ///
    /// let spaced = ToolDefinition::new("search docs", "Searches.", json!({"type": "object"}));
    /// assert!(spaced.validate().unwrap_err().to_string().contains("call it `search_docs`"));
    /// ```
    pub fn validate(&self) -> Result<()> {
        self.defect().map_or(Ok(()), |defect| Err(Error::configuration(defect)))
    }

    fn defect(&self) -> Option<String> {
        name_defect(&self.name).or_else(|| {
            let is_object = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "object");
            (!self.parameters.is_null() && !is_object(&self.parameters)).then(|| {
                format!(
                    "the tool `{}` needs an object schema: write `\"type\": \"object\"` at its root, and its arguments as `properties`",
                    self.name
                )
            })
        })
    }
}

fn name_defect(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() {
        return Some(String::from("a tool has no name: give it 1 to 64 letters, digits, `_`, `-` or `.`"));
    }
    // A name may come from an untrusted source and must not control a terminal.
    let shown = name.escape_debug();
    let length = name.chars().count();
    if length > LONGEST_NAME {
        return Some(format!(
            "the name of the tool `{shown}` has {length} characters; servers take at most {LONGEST_NAME}"
        ));
    }
    (!name.chars().all(fits)).then(|| {
        let fitting: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
        format!(
            "the name of the tool `{shown}` has characters that servers refuse; they take letters, digits, `_`, `-` and `.`: call it `{fitting}`"
        )
    })
}

/// The defect of the first invalid definition of a set, if any.
struct Defect(Option<String>);

impl ToolSet {
    /// Checks every definition, once for the set. See [`ToolDefinition::validate`].
    ///
    /// # Errors
    /// That of the first definition with a defect.
    pub fn validate(&self) -> Result<()> {
        let Defect(defect) = self.wire_form(|set| Defect(set.definitions().find_map(ToolDefinition::defect)));
        defect.as_ref().map_or(Ok(()), |defect| Err(Error::configuration(defect.clone())))
    }
}
