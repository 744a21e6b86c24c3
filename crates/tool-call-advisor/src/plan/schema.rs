//! `Schemas`: checks arguments by the schemas of their tools, and corrects those with one clear meaning.

use std::fmt;

use advisor_core::{Error, Leniency, Result, ToolDefinition, ToolSet};
use serde_json::Value;

use crate::plan::structure::{Misfit, lost_reference, misfits};
use crate::plan::whole_schema::WholeSchemas;

/// Checks arguments by the schemas of their tools.
///
/// A schema of the application is checked as a whole, if the feature `schema-validation` is on. One of another program is
/// not trusted: its [structure](misfits) is, and its server checks the rest.
#[derive(Default)]
pub(crate) struct Schemas {
    whole: WholeSchemas,
}

/// The bytes of arguments that an async thread checks, and the steps of that.
const LITTLE_BYTES: usize = 64 << 10;
const LITTLE_STEPS: usize = 4 << 10;

/// The steps of a check that are done at all. A longer one is left to the tool.
const MOST_STEPS: usize = 16 << 20;

/// The most misfits that the model is told of.
const MOST_TOLD: usize = 5;

/// The error of the first invalid schema of a set, if any.
struct Defect(Option<String>);

impl Schemas {
    /// Returns the arguments to pass to the tool, if they fit its schema or can be corrected.
    ///
    /// # Errors
    /// The mismatch and its location, as text for the model; also if the schema itself is invalid.
    pub(crate) fn fit(
        &self,
        tool: &ToolDefinition,
        arguments: Value,
        leniency: Leniency,
    ) -> Result<Value, String> {
        let fitted = self.fit_within(tool, &arguments, leniency, MOST_STEPS);
        Ok(fitted.transpose()?.flatten().unwrap_or(arguments))
    }

    /// As [`fit`](Self::fit), with the corrected arguments if any are. `None` if that may be noticed.
    pub(crate) fn fit_quickly(
        &self,
        tool: &ToolDefinition,
        arguments: &Value,
        leniency: Leniency,
    ) -> Option<Result<Option<Value>, String>> {
        self.fit_within(tool, arguments, leniency, LITTLE_STEPS)
    }

    /// Checks in at most so many steps; `None` if it takes more.
    fn fit_within(
        &self,
        tool: &ToolDefinition,
        arguments: &Value,
        leniency: Leniency,
        steps: usize,
    ) -> Option<Result<Option<Value>, String>> {
        // A tool without a schema is offered to the model as one that takes any object.
        if tool.parameters.is_null() {
            let is_object = arguments.is_object();
            return Some(if is_object { Ok(None) } else { Err(String::from("they are no object")) });
        }
        let whole = match self.whole.of(tool) {
            Ok(whole) => whole,
            Err(error) => return Some(Err(format!("the tool's own schema is invalid: {error}"))),
        };
        if whole.as_ref().is_some_and(|whole| whole.fits(arguments)) {
            return Some(Ok(None));
        }
        let (wrong, is_all) = misfits(&tool.parameters, arguments, steps);
        if !is_all && steps < MOST_STEPS {
            return None;
        }
        if wrong.is_empty() && whole.is_none() {
            return Some(Ok(None));
        }
        if let Some(corrected) = corrected(arguments, &wrong, leniency) {
            let fits = match &whole {
                Some(whole) => whole.fits(&corrected),
                None => {
                    let (wrong, is_all) = misfits(&tool.parameters, &corrected, steps);
                    if !is_all && steps < MOST_STEPS {
                        return None;
                    }
                    wrong.is_empty()
                }
            };
            if fits {
                return Some(Ok(Some(corrected)));
            }
        }
        Some(Err(match whole {
            // It is in a keyword that only the whole schema has.
            Some(whole) if wrong.is_empty() => whole.misfits(arguments, MOST_TOLD),
            _ => wrong.iter().take(MOST_TOLD).map(Misfit::described).collect::<Vec<_>>().join("; "),
        }))
    }

    /// Checks whether so many bytes of arguments are few enough to be read by an async thread.
    pub(crate) fn is_short(bytes: usize) -> bool {
        bytes <= LITTLE_BYTES
    }

    /// Checks that the schemas of a set are valid, once per set.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), for the first invalid schema.
    pub(crate) fn validate(&self, tools: &ToolSet) -> Result<()> {
        let Defect(defect) =
            tools.wire_form(|set| Defect(set.definitions().find_map(|tool| self.defect(tool))));
        defect.as_ref().map_or(Ok(()), |defect| Err(Error::configuration(defect.clone())))
    }

    fn defect(&self, tool: &ToolDefinition) -> Option<String> {
        let error = match tool.origin.is_some() {
            false => self.whole.of(tool).err()?,
            true => match lost_reference(&tool.parameters) {
                Some(to) => format!("the reference `{to}` leads to nothing"),
                None => WholeSchemas::form_defect(&tool.parameters)?,
            },
        };
        Some(format!("the schema of the tool `{}` is invalid, mend it: {error}", tool.name))
    }
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schemas").finish_non_exhaustive()
    }
}

/// The longest text that means a number or a boolean.
const LONGEST: usize = 64;

/// Returns the arguments with the corrections that `leniency` allows, if there are any. They may still not fit.
pub(crate) fn corrected(arguments: &Value, misfits: &[Misfit<'_>], leniency: Leniency) -> Option<Value> {
    if leniency == Leniency::Strict {
        return None;
    }
    let mut fitting = None;
    for wrong in misfits {
        let copy = || arguments.clone();
        match arguments.pointer(&wrong.place) {
            Some(Value::Null) => leave_out(fitting.get_or_insert_with(copy), &wrong.place),
            Some(Value::String(text)) if leniency == Leniency::Lenient => {
                if let Some(meant) = meant(text, wrong)
                    && let Some(slot) = fitting.get_or_insert_with(copy).pointer_mut(&wrong.place)
                {
                    *slot = meant;
                }
            }
            _ => {}
        }
    }
    fitting
}

/// Removes a property. A list item stays, since removing it would shift the items after it.
fn leave_out(arguments: &mut Value, place: &str) {
    if let Some((object, name)) = place.rsplit_once('/')
        && let Some(Value::Object(properties)) = arguments.pointer_mut(object)
    {
        properties.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// Returns the value that the schema wants in place of a string, if the string can only mean that value.
fn meant(text: &str, wrong: &Misfit<'_>) -> Option<Value> {
    // The parser would skip white space around it.
    if text.len() > LONGEST || text.trim() != text {
        return None;
    }
    match serde_json::from_str(text).ok()? {
        Value::Bool(meant) if wrong.wants("boolean") => Some(Value::Bool(meant)),
        Value::Number(meant) if wrong.wants("number") => Some(Value::Number(meant)),
        Value::Number(meant) if wrong.wants("integer") && !meant.is_f64() => Some(Value::Number(meant)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn foreign(schema: Value) -> ToolDefinition {
        ToolDefinition { origin: Some("server".into()), ..ToolDefinition::new("look", "Looks.", schema) }
    }

    #[test]
    fn law_t2_arguments_fit_the_structure_of_a_foreign_schema() {
        let tool = foreign(json!({
            "type": "object", "properties": {"days": {"type": "integer"}, "mail": {"type": "string", "pattern": "^(?!a)"}},
            "required": ["days"]
        }));
        let fit = |arguments| Schemas::default().fit(&tool, arguments, Leniency::Lenient);
        assert_eq!(fit(json!({"days": "3", "mail": null})), Ok(json!({"days": 3})));
        assert_eq!(
            fit(json!({"days": 3, "mail": "a"})),
            Ok(json!({"days": 3, "mail": "a"})),
            "the server checks it"
        );
        assert_eq!(
            fit(json!({"mail": 1})),
            Err(r#"/mail: 1 is not of type "string"; "days" is a required property"#.into())
        );
        let optional =
            foreign(json!({"properties": {"days": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}));
        let fitted = Schemas::default().fit(&optional, json!({"days": "3"}), Leniency::Lenient);
        assert_eq!(fitted, Ok(json!({"days": 3})));
        let short = json!({"properties": {"a": {"anyOf": [{"type": ["string", "integer"], "minLength": 3}, {"type": "null"}]}}});
        let wrong = Schemas::default().fit(&foreign(short), json!({"a": "12"}), Leniency::Lenient);
        assert_eq!(wrong, Err(r#"/a: "12" has fewer than 3 characters"#.into()), "a string was meant");
        assert_eq!(fit(json!([])), Err(r#"[] is not of type "object""#.into()));
    }

    #[cfg(feature = "schema-validation")]
    #[test]
    fn law_t2_arguments_fit_the_whole_schema_of_the_application() {
        let schema = json!({
            "properties": {"mail": {"pattern": "@"}, "n": {"type": "integer", "multipleOf": 2}},
            "if": {"required": ["n"]}, "then": {"required": ["mail"]}
        });
        let tool = ToolDefinition::new("look", "Looks.", schema);
        let fit = |arguments| Schemas::default().fit(&tool, arguments, Leniency::Lenient);
        assert_eq!(fit(json!({"mail": "a@b", "n": "4"})), Ok(json!({"mail": "a@b", "n": 4})));
        let wrong = r#"/mail: value does not match "@"; /n: value is not a multiple of 2"#;
        assert_eq!(fit(json!({"mail": "a", "n": 3})), Err(wrong.into()));
        assert_eq!(fit(json!({"n": 4})), Err(r#""mail" is a required property"#.into()));
    }

    #[test]
    fn law_r1_a_long_check_goes_elsewhere_and_ends() {
        let values: Vec<_> = (0..5_000).collect();
        let tool = foreign(json!({"properties": {"a": {"items": {"enum": values}}}}));
        let schemas = Schemas::default();
        let arguments = |items| json!({"a": vec![-1; items]});
        assert!(schemas.fit_quickly(&tool, &arguments(1), Leniency::Strict).is_none());
        assert!(schemas.fit(&tool, arguments(1), Leniency::Strict).is_err());
        let few = foreign(json!({"properties": {"a": {"enum": [1, 2]}}}));
        let quickly = schemas.fit_quickly(&few, &json!({"a": 3}), Leniency::Strict);
        assert_eq!(quickly, Some(Err("/a: 3 is not one of 1, 2".into())), "a short one is done at once");
        assert!(schemas.fit(&tool, arguments(5_000), Leniency::Strict).is_err(), "what was found counts");
        let values: Vec<_> = (0..5_000).collect();
        let tool = foreign(
            json!({"properties": {"a": {"type": "integer", "anyOf": [{"type": "string"}, {"enum": values}]}}}),
        );
        let corrected = schemas.fit_quickly(&tool, &json!({"a": "7000"}), Leniency::Lenient);
        assert_eq!(corrected, None, "what is corrected is checked as long");
        let late = json!([vec![4_999; 3_000], vec![-1]].concat());
        let optional = foreign(
            json!({"anyOf": [{"type": "null"}, {"items": {"enum": (0..5_000).collect::<Vec<_>>()}}]}),
        );
        assert!(
            schemas.fit(&optional, late, Leniency::Strict).is_err(),
            "also if no step is left for its place"
        );
        let tool = foreign(json!({"additionalProperties": {"type": "null"}}));
        let wrong = schemas.fit(&tool, json!({"é".repeat(10_000): 1}), Leniency::Lenient).unwrap_err();
        assert!(wrong.len() < 500 && wrong.ends_with("…: 1 is not of type \"null\""), "{wrong}");
    }
}
