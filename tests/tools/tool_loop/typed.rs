//! Tools whose arguments are a type.

use advisor_chain::tools::schema_for;
use advisor_tests::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool_loop::support::*;

/// What to look up.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Weather {
    /// The city, in English.
    city: String,
    days: Option<u8>,
    #[serde(default)]
    unit: Unit,
    #[serde(default)]
    around: Vec<Place>,
}

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    #[default]
    Celsius,
    Fahrenheit,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Place {
    north: f64,
}

/// A type that holds itself.
#[derive(Debug, Deserialize, JsonSchema)]
struct Folder {
    #[serde(default)]
    folders: Vec<Self>,
}

#[test]
fn the_schema_is_that_of_the_type() {
    let schema = schema_for::<Weather>();
    let expected = json!({
        "type": "object",
        "description": "What to look up.",
        "properties": {
            "city": {"type": "string", "description": "The city, in English."},
            "days": {"type": ["integer", "null"], "minimum": 0, "maximum": 255},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "around": {
                "type": "array",
                "items": {"type": "object", "properties": {"north": {"type": "number"}}, "required": ["north"]},
            },
        },
        "required": ["city"],
    });
    assert_eq!(schema, expected);
    assert_eq!(schema.to_string(), schema_for::<Weather>().to_string(), "the same each time");
}

/// Only a type that holds itself is referred to, and nothing is referred to elsewhere.
#[tokio::test]
async fn recursive_type_has_self_contained_schema() {
    let schema = schema_for::<Folder>().to_string();
    assert!(schema.contains("\"$ref\":\"#") && !schema.contains("://"), "{schema}");
    let count = |folder: &Folder| folder.folders.len();
    let tool = FnTool::typed("count", "Counts.", move |folder: Folder, _| async move {
        Ok(folder.folders.iter().map(count).sum::<usize>().to_string())
    });
    let result = result_of(tool, r#"{"folders":[{"folders":[{},{}]},{}]}"#).await;
    assert_eq!((result.text().as_str(), result.is_error), ("2", false));
    let tool = FnTool::typed("count", "Counts.", |_: Folder, _| async { Ok("never") });
    let result = result_of(tool, r#"{"folders":[{"folders":[{"folders":7}]}]}"#).await;
    assert!(
        result.is_error && result.text().contains("/folders/0/folders/0/folders: 7"),
        "{}",
        result.text()
    );
}

/// A type that is no object is refused like any other definition.
#[tokio::test]
async fn non_object_arguments_are_refused_at_client_build() {
    let model = ScriptedModel::new([]);
    let texts = FnTool::typed("tell", "Tells.", |texts: Vec<String>, _| async move { Ok(texts.concat()) });
    let error = client(&model, ToolCallAdvisor::new()).tool(texts).build().unwrap_err();
    assert!(error.to_string().contains("`tell` needs an object schema"), "{error}");
}

/// Arguments that fit the schema and not the type give an error that names the place as well.
#[tokio::test]
async fn law_t2_typed_arguments_fitting_schema_only_name_location() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Page {
        sizes: BTreeMap<String, Vec<u32>>,
    }
    for (arguments, says) in [
        (
            r#"{"sizes":{"a":[1,4294967296]}}"#,
            "/sizes/a/1: invalid value: integer `4294967296`, expected u32",
        ),
        (r#"{"sizes":{"a/b~c":[1.5]}}"#, "/sizes/a~1b~0c/0: "),
    ] {
        let definition = ToolDefinition::new("page", "Shows.", json!({"type": "object"}));
        let untyped = FnTool::new(definition, |page: Page| async move { Ok(json!(page.sizes)) });
        let typed = FnTool::typed("page", "Shows.", |page: Page, _| async move { Ok(json!(page.sizes)) });
        for tool in [untyped, typed] {
            let result = result_of(tool, arguments).await;
            let text = result.text();
            assert!(result.is_error && text.starts_with("not started: the arguments do not fit"), "{text}");
            assert!(text.contains(says), "{arguments}: {text}");
        }
    }
}
