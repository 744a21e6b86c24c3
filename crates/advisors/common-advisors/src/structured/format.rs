//! `OutputFormat`: schema and check of a value. It writes the request for it, and parses answers.

use std::fmt;
use std::sync::Arc;

use advisor_core::{ChatRequest, ResponseFormat, SchemaSupport, Text, described_schema};
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::structured::json_text::candidates;
use crate::structured::strict::strict_schema;

/// The required form of an answer: a JSON schema, and a check of the values that fit it. Cheap to clone.
#[derive(Clone)]
pub struct OutputFormat {
    name: Text,
    /// The schema of an object, as servers require.
    schema: Value,
    strict: Option<Value>,
    /// Whether the value is the property `value` of that object.
    wrapped: bool,
    check: Arc<dyn Fn(Value) -> Result<(), String> + Send + Sync>,
}

impl OutputFormat {
    /// Creates the form of type `T`: its schema, and a check that a value deserialises to it.
    #[must_use]
    pub fn for_type<T: DeserializeOwned + JsonSchema>() -> Self {
        Self::new(T::schema_name(), schema_for!(T).into(), |value| {
            // Tracking the place costs an allocation per name, so it is done only after a failure.
            let parsed = T::deserialize(&value).map(drop);
            let placed = |_| serde_path_to_error::deserialize::<_, T>(&value).map(drop);
            parsed.or_else(placed).map_err(|error| error.to_string())
        })
    }

    /// Creates a form from a schema and a check, whose error is text for the model.
    ///
    /// A schema of anything but an object is wrapped in one, as servers require, and values are unwrapped.
    pub fn new(
        name: impl Into<Text>,
        schema: Value,
        check: impl Fn(Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let allowed = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        let name: String = name.into().chars().filter(allowed).take(64).collect();
        let wrapped = schema.get("properties").is_none();
        let schema = if wrapped { in_object(schema) } else { schema };
        Self {
            name: if name.is_empty() { "answer".into() } else { name.into() },
            strict: strict_schema(&schema),
            schema,
            wrapped,
            check: Arc::new(check),
        }
    }

    /// Returns the value of an answer.
    ///
    /// The answer may have other text around it. Then the value is the first fenced one that has this form. If no
    /// fence holds one, it is the longest object or list that has this form; of equally long ones, the last.
    ///
    /// # Errors
    /// The reason why no value fits, as text for the model. It can quote the answer.
    pub fn parse(&self, answer: &str) -> Result<Value, String> {
        let (mut misfit, mut no_json) = (None, None);
        for text in candidates(answer) {
            match serde_json::from_str(text).map(|value| self.fitting(value)) {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(problem)) => misfit = misfit.or(Some(problem)),
                Err(error) => no_json = Some(error),
            }
        }
        // Of texts that are no JSON, the last one is the least likely to be prose.
        let no_json = || no_json.map(|error| format!("it is no JSON: {error}"));
        Err(misfit.or_else(no_json).unwrap_or_else(|| "it is no JSON".into()))
    }

    /// Returns the value of this form that a JSON value is or wraps.
    fn fitting(&self, value: Value) -> Result<Value, String> {
        let unwrapped = self.unwrapped(&value);
        let is_within = self.wrapped && unwrapped.is_some();
        let inner = unwrapped.unwrap_or_else(|| value.clone());
        match (self.check)(inner.clone()) {
            Ok(()) => Ok(inner),
            // If the form is only prompted, models leave out the object around the value.
            Err(_) if self.wrapped && (self.check)(value.clone()).is_ok() => Ok(value),
            Err(problem) if is_within => Err(format!("in `value`: {problem}")),
            Err(problem) => Err(problem),
        }
    }

    /// Returns the value without the added object, which has no other property; `None` if there is no such object.
    pub(crate) fn unwrapped(&self, value: &Value) -> Option<Value> {
        if !self.wrapped {
            return Some(value.clone());
        }
        let object = value.as_object().filter(|object| object.len() == 1)?;
        object.get("value").cloned()
    }

    /// Returns the form for a server that enforces it.
    fn enforced(&self) -> ResponseFormat {
        ResponseFormat::JsonSchema {
            name: self.name.clone(),
            schema: self.strict.clone().unwrap_or_else(|| self.schema.clone()),
            strict: self.strict.is_some(),
        }
    }

    /// Returns the request that asks for an answer of this form.
    pub(crate) fn apply_to(&self, mut request: ChatRequest, support: SchemaSupport) -> ChatRequest {
        let without_tools = request.tools.is_empty();
        request.options.response_format = match support {
            SchemaSupport::JsonSchemaWithoutTools if without_tools => Some(self.enforced()),
            SchemaSupport::JsonSchema => Some(self.enforced()),
            // This enforces an object only, so the schema is prompted as well.
            SchemaSupport::JsonObject if without_tools => Some(ResponseFormat::JsonObject),
            _ => None,
        };
        if matches!(request.options.response_format, Some(ResponseFormat::JsonSchema { .. })) {
            return request;
        }
        let prompted = ResponseFormat::JsonSchema {
            name: self.name.clone(),
            schema: described_schema(&self.schema),
            strict: false,
        };
        request.with_system(prompted.instruction().unwrap_or_default())
    }
}

/// Returns the schema of an object whose property `value` has this schema.
fn in_object(mut schema: Value) -> Value {
    let definitions = schema.as_object_mut().and_then(|schema| {
        schema.remove("$schema");
        schema.remove("$defs")
    });
    refer_to_property(&mut schema);
    let mut object = json!({"type": "object", "properties": {"value": schema}, "required": ["value"]});
    if let (Some(definitions), Some(object)) = (definitions, object.as_object_mut()) {
        object.insert("$defs".into(), definitions);
    }
    object
}

/// Changes references to the whole schema into references to the property.
fn refer_to_property(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (keyword, value) in object.iter_mut() {
                if keyword == "$ref" && value == "#" {
                    *value = "#/properties/value".into();
                }
                refer_to_property(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer_to_property),
        _ => {}
    }
}

impl fmt::Debug for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputFormat").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::{Message, Tool, ToolDefinition, ToolError, ToolInvocation, ToolOutput, async_trait};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its form counts")]
    struct City {
        name: String,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    #[allow(dead_code, reason = "only its form counts")]
    enum Shape {
        Circle { radius: f64 },
        Group { shapes: Vec<Self> },
    }

    #[test]
    fn struct_is_own_object_and_others_are_wrapped() {
        let city = OutputFormat::for_type::<City>();
        assert_eq!((city.wrapped, city.name.as_str()), (false, "City"));
        assert_eq!(city.parse("{\"name\": \"Oslo\"}").unwrap(), json!({"name": "Oslo"}));
        let cities = OutputFormat::for_type::<Vec<City>>();
        assert!(cities.wrapped && cities.schema["$defs"]["City"].is_object());
        for answer in ["{\"value\": [{\"name\": \"Oslo\"}]}", "[{\"name\": \"Oslo\"}]"] {
            assert_eq!(cities.parse(answer).unwrap(), json!([{"name": "Oslo"}]));
        }
        let shape = OutputFormat::for_type::<Shape>();
        assert!(shape.wrapped);
        let group = json!({"kind": "Group", "shapes": [{"kind": "Circle", "radius": 1.0}]});
        assert_eq!(shape.parse(&json!({"value": group.clone()}).to_string()).unwrap(), group);
        assert!(!shape.schema.to_string().contains("\"#\""), "{}", shape.schema);
    }

    struct Look(ToolDefinition);

    #[async_trait]
    impl Tool for Look {
        fn definition(&self) -> &ToolDefinition {
            &self.0
        }

        async fn run(&self, _: ToolInvocation) -> Result<ToolOutput, ToolError> {
            Ok("sunny".into())
        }
    }

    #[test]
    fn schema_is_put_in_words_unless_server_enforces() {
        let look = Look(ToolDefinition::new("look", "Looks.", json!({"type": "object"})));
        let plain = ChatRequest::new(Message::user("Where?"));
        let with_tools = plain.clone().with_tool(look);
        for (support, plain_format, tools_format) in [
            (SchemaSupport::None, "words", "words"),
            (SchemaSupport::JsonObject, "object and words", "words"),
            (SchemaSupport::JsonSchemaWithoutTools, "schema", "words"),
            (SchemaSupport::JsonSchema, "schema", "schema"),
        ] {
            for (request, expected) in [(&plain, plain_format), (&with_tools, tools_format)] {
                let asked = OutputFormat::for_type::<City>().apply_to(request.clone(), support);
                let in_words = asked.messages.iter().any(|message| message.text().contains("JSON schema"));
                let format = match (&asked.options.response_format, in_words) {
                    (None, true) => "words",
                    (Some(ResponseFormat::JsonObject), true) => "object and words",
                    (Some(ResponseFormat::JsonSchema { strict: true, .. }), false) => "schema",
                    other => panic!("{support:?}: {other:?}"),
                };
                assert_eq!(format, expected, "{support:?}");
            }
        }
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its form counts")]
    struct Person {
        title: String,
        age: Option<u32>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its form counts")]
    struct Doc {
        markdown: String,
    }

    #[test]
    fn value_is_found_despite_surrounding_and_inner_text() {
        let doc = OutputFormat::for_type::<Doc>();
        let with_fence = json!({"markdown": "Run\n```sh\nls\n```\nnow"});
        let (line, pretty) = (with_fence.to_string(), format!("{with_fence:#}"));
        for (answer, expected) in [
            (line.clone(), &with_fence),
            (format!("Here: {line}"), &with_fence),
            (format!("Here:\n{pretty}\nDone."), &with_fence),
            (format!("```json\n{pretty}\n```"), &with_fence),
            (format!("First\n```sh\nls [ -f x ]\n```\nthen\n```json\n{pretty}\n```"), &with_fence),
            ("[1] says: {\"markdown\":\"a\"}".into(), &json!({"markdown": "a"})),
            ("```{\"markdown\":\"a\"}```".into(), &json!({"markdown": "a"})),
            ("<think>{\"a\"}</think>{\"markdown\":\"a\"}".into(), &json!({"markdown": "a"})),
            ("{\"markdown\":\"b\"} or {\"markdown\":\"a\"}".into(), &json!({"markdown": "a"})),
        ] {
            assert_eq!(doc.parse(&answer).as_ref(), Ok(expected), "{answer}");
        }
        let numbers = OutputFormat::for_type::<Vec<u32>>();
        for (answer, expected) in [
            ("[1] According to my source it is [4, 5]", json!([4, 5])),
            ("[1] According to my source it is {\"value\": [4]}, see [22]", json!([4])),
            ("[1] and [2]:\n```\n[3]\n```", json!([3])),
        ] {
            assert_eq!(numbers.parse(answer), Ok(expected), "{answer}");
        }
        let number = OutputFormat::for_type::<u32>();
        assert_eq!(number.parse("It is\n```json\n42\n```\nor so."), Ok(json!(42)));
    }

    #[test]
    fn part_of_value_is_not_accepted_as_value() {
        let shape = OutputFormat::for_type::<Shape>();
        let circle = "{\"kind\": \"Circle\", \"radius\": 1}";
        for answer in [
            format!("{{\"kind\": \"Group\", \"shapes\": [{circle}, ]}}"),
            format!("{{\"kind\": \"Group\", \"shapes\": [{circle}"),
            format!("{{\"kind\": \"Group\", \"parts\": [\n{circle}\n]}}"),
        ] {
            assert!(shape.parse(&answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn only_added_wrapper_object_is_removed() {
        use std::collections::BTreeMap;
        let map = OutputFormat::for_type::<BTreeMap<String, Value>>();
        let (any, number) = (OutputFormat::for_type::<Value>(), OutputFormat::for_type::<u32>());
        for (form, answer, expected) in [
            (&map, json!({"value": {"x": 1}}), json!({"x": 1})),
            (&map, json!({"value": {"x": 1}, "y": 2}), json!({"value": {"x": 1}, "y": 2})),
            (&map, json!({"value": 1}), json!({"value": 1})),
            (&any, json!({"value": 3, "unit": "m"}), json!({"value": 3, "unit": "m"})),
            (&any, json!({"value": 3}), json!(3)),
            (&number, json!({"value": 3}), json!(3)),
            (&number, json!(3), json!(3)),
        ] {
            assert_eq!(form.parse(&answer.to_string()), Ok(expected), "{answer}");
        }
    }

    /// Strict servers require the root schema to be an object that is no choice.
    #[test]
    fn root_choice_is_wrapped_or_not_strict() {
        let of = |schema: Value| OutputFormat::new("a", schema, |_| Ok(()));
        let choice = json!([{"type": "string"}, {"type": "null"}]);
        let wrapped = of(json!({"anyOf": choice})).strict.unwrap();
        assert_eq!(wrapped["properties"]["value"]["anyOf"], choice);
        assert!(wrapped.get("anyOf").is_none());
        assert_eq!(of(json!({"type": "object", "properties": {}, "anyOf": choice})).strict, None);
    }

    #[test]
    fn error_names_the_defect() {
        let city = OutputFormat::for_type::<City>();
        assert_eq!(city.parse("[1] has {\"nam\": \"Oslo\"}").unwrap_err(), "missing field `name`");
        let problem = city.parse("Well: {\"name\": \"Oslo\",}").unwrap_err();
        assert!(problem.starts_with("it is no JSON: trailing comma"), "{problem}");
        assert!(city.parse("Oslo").unwrap_err().starts_with("it is no JSON"));
        let people = OutputFormat::for_type::<Vec<Person>>();
        for (person, problem) in [
            (r#"{"title": 5}"#, "in `value`: [0].title: invalid type: integer `5`, expected a string"),
            (
                r#"{"title": "Dr", "age": -1}"#,
                "in `value`: [0].age: invalid value: integer `-1`, expected u32",
            ),
            ("{}", "in `value`: [0]: missing field `title`"),
        ] {
            assert_eq!(people.parse(&format!(r#"{{"value": [{person}]}}"#)).unwrap_err(), problem);
        }
        assert_eq!(OutputFormat::new("the city!", json!({}), |_| Ok(())).name, "thecity");
        assert_eq!(OutputFormat::new("…", json!({}), |_| Ok(())).name, "answer");
    }
}
