//! Tools made of functions by `#[tool]`.

use std::fmt;

use advisor_chain::tool;
use advisor_tests::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool_loop::support::*;

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    #[default]
    Celsius,
    Fahrenheit,
}

#[derive(Debug, Serialize)]
struct Forecast {
    city: String,
    degrees: Vec<i32>,
    unit: Unit,
}

/// Tells the weather.
///
/// For up to a week.
#[tool]
async fn weather(
    /// The city, in English.
    city: String,
    days: Option<u8>,
    #[serde(default)] unit: Unit,
    /// The height above the sea.
    #[schemars(range(min = 0))]
    #[serde(default, rename = "above")]
    height: i32,
) -> Forecast {
    Forecast { city, degrees: vec![21 - height; usize::from(days.unwrap_or(1))], unit }
}

/// The same arguments as a struct.
mod as_struct {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    pub(super) struct Weather {
        /// The city, in English.
        city: String,
        days: Option<u8>,
        #[serde(default)]
        unit: super::Unit,
        /// The height above the sea.
        #[schemars(range(min = 0))]
        #[serde(default, rename = "above")]
        height: i32,
    }
}

/// The text of a result, or of an error result.
async fn text_of(tool: FnTool) -> Result<String, String> {
    let result = result_of(tool, "{}").await;
    let text = result.text().to_string();
    if result.is_error { Err(text) } else { Ok(text) }
}

/// A function gives the same definition as a closure with a struct.
#[test]
fn a_function_has_the_definition_of_a_typed_tool() {
    let typed = FnTool::typed(
        "weather",
        "Tells the weather.\n\nFor up to a week.",
        |_: as_struct::Weather, _| async { Ok("sunny") },
    );
    let expected = typed.definition();
    assert_eq!(weather_tool().definition(), expected);
    assert_eq!(expected.parameters["required"], json!(["city"]));
    assert_eq!(expected.parameters["properties"]["city"]["description"], "The city, in English.");
    assert_eq!(expected.parameters["properties"]["above"]["minimum"], 0);
}

#[tokio::test]
async fn a_function_reads_its_arguments_and_returns_a_value() {
    let result = result_of(weather_tool(), r#"{"city":"Oslo","unit":"fahrenheit","above":1}"#).await;
    assert_eq!(result.parts, [json!({"city": "Oslo", "degrees": [20], "unit": "fahrenheit"}).into()]);
}

/// Arguments that do not fit are an error result that names the place, and the function is not called.
#[tokio::test]
async fn law_t2_function_arguments_mismatch_names_the_location() {
    /// Draws.
    #[tool]
    fn draw(sizes: BTreeMap<String, Vec<u32>>) -> String {
        panic!("called with {sizes:?}")
    }
    for (tool, arguments, says) in [
        (weather_tool(), r#"{"city":"Oslo","days":256}"#, "/days: 256 is greater than"),
        (weather_tool(), r#"{"days":1}"#, "\"city\" is a required property"),
        (draw_tool(), r#"{"sizes":{"a":[1,4294967296]}}"#, "/sizes/a/1: invalid value"),
    ] {
        let result = result_of(tool, arguments).await;
        let text = result.text();
        assert!(
            result.is_error && text.starts_with("not started: the arguments do not fit the tool"),
            "{text}"
        );
        assert!(text.contains(says), "{arguments}: {text}");
    }
}

/// An error with a cause.
#[derive(Debug)]
struct Closed(std::num::ParseIntError);

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shop is closed")
    }
}

impl std::error::Error for Closed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn closed() -> Closed {
    Closed("x".parse::<u8>().unwrap_err())
}

/// An error that can only be displayed, like those of the crate `anyhow`: with its causes in the alternate form.
struct Report;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if f.alternate() { "the report: its cause" } else { "the report" })
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answered<T> = Result<T, BoxError>;

/// Every error is an error result with its text, whatever its type is called.
#[tokio::test]
async fn law_t2_every_error_of_a_function_is_an_error_result() {
    /// Fails.
    #[tool]
    async fn typed() -> Result<String, Closed> {
        Err(closed())
    }
    /// Fails.
    #[tool]
    async fn boxed() -> Answered<Forecast> {
        Err(closed().into())
    }
    /// Fails.
    #[tool]
    fn boxed_here() -> Result<(), Box<dyn std::error::Error>> {
        Err("it is late".into())
    }
    /// Fails.
    #[tool]
    fn text() -> Result<u8, String> {
        Err("it is late".into())
    }
    /// Fails.
    #[tool]
    fn report() -> Result<u8, Report> {
        Err(Report)
    }
    /// Fails.
    #[tool]
    fn own() -> Result<ToolOutput, ToolError> {
        Err(ToolError::new("my own"))
    }
    let with_cause = "the shop is closed: invalid digit found in string";
    for (tool, says) in [
        (typed_tool(), with_cause),
        (boxed_tool(), with_cause),
        (boxed_here_tool(), "it is late"),
        (text_tool(), "it is late"),
        (report_tool(), "the report: its cause"),
        (own_tool(), "my own"),
    ] {
        assert_eq!(text_of(tool).await, Err(says.to_owned()));
    }
}

/// A text stays a text, a part stays a part, nothing is "Done.", and any other value is JSON.
#[tokio::test]
async fn a_function_returns_any_serialisable_value() {
    /// Answers.
    #[tool]
    fn nothing() {}
    /// Answers.
    #[tool]
    async fn checked_nothing() -> Answered<()> {
        Ok(())
    }
    /// Answers.
    #[tool]
    fn text() -> &'static str {
        "a text"
    }
    /// Answers.
    #[tool]
    fn borrowed() -> Answered<std::borrow::Cow<'static, str>> {
        Ok("a text".into())
    }
    /// Answers.
    #[tool]
    fn number() -> u8 {
        7
    }
    /// Answers.
    #[tool]
    fn option() -> Option<Vec<u8>> {
        None
    }
    /// Answers.
    #[tool]
    fn hidden() -> impl Serialize {
        [true]
    }
    /// Answers.
    #[tool]
    fn part() -> Result<Part, Closed> {
        Ok(Part::from("a part"))
    }
    /// Answers.
    #[tool]
    fn output() -> ToolOutput {
        "an output".into()
    }
    /// Answers.
    #[tool]
    fn keys() -> BTreeMap<Vec<u8>, u8> {
        [(vec![1], 1)].into()
    }
    for (tool, says) in [
        (nothing_tool(), "Done."),
        (checked_nothing_tool(), "Done."),
        (text_tool(), "a text"),
        (borrowed_tool(), "a text"),
        (number_tool(), "7"),
        (option_tool(), "null"),
        (hidden_tool(), "[true]"),
        (part_tool(), "a part"),
        (output_tool(), "an output"),
    ] {
        assert_eq!(text_of(tool).await, Ok(says.to_owned()));
    }
    assert_eq!(text_of(keys_tool()).await, Err("key must be a string".to_owned()));
}

/// The settings are fields of the definition; own settings replace name and description.
#[test]
fn settings_change_the_definition() {
    #[tool(
        exclusive,
        return_direct,
        effect = Effect::Pure,
        timeout = Duration::from_secs(5),
        name = "shop.close",
        description = concat!("Closes", " the shop.")
    )]
    async fn close() {}
    let tool = close_tool();
    let definition = tool.definition();
    assert_eq!(
        (definition.name.as_str(), definition.description.as_str()),
        ("shop.close", "Closes the shop.")
    );
    assert!(definition.exclusive && definition.return_direct);
    assert_eq!((definition.effect, definition.timeout), (Some(Effect::Pure), Some(Duration::from_secs(5))));
    assert_eq!(definition.parameters, json!({"type": "object"}));
}

/// Names may be keywords, and an argument may be mutable. A function under a condition has its tool under the same.
#[tokio::test]
async fn names_and_conditions_of_a_function_are_kept() {
    /// Finds.
    #[tool]
    #[cfg(test)]
    fn r#match(mut r#type: String) -> String {
        r#type.push('!');
        r#type
    }
    /// Never compiled.
    #[tool]
    #[cfg(not(test))]
    fn absent() -> NoSuchType {}
    let tool = match_tool();
    assert_eq!(tool.definition().name, "match");
    assert_eq!(result_of(tool, r#"{"type":"a book"}"#).await.text(), "a book!");
}

/// A parameter of the type `ToolInvocation`, by reference or by value, is the invocation; the model does not see it.
#[tokio::test]
async fn a_function_is_given_its_invocation() {
    /// Tells its key. Arguments may have the names of generated variables.
    #[tool]
    async fn key(call: u8, invocation: &ToolInvocation, arguments: u8, returned: u8) -> String {
        format!("{} with {}", invocation.key, call + arguments + returned)
    }
    /// Tells its key.
    #[tool]
    fn owned(invocation: ToolInvocation) -> String {
        invocation.turn.id().to_string()
    }
    let tool = key_tool();
    assert_eq!(tool.definition().parameters["required"], json!(["call", "arguments", "returned"]));
    let result = result_of(tool, r#"{"call":1,"arguments":2,"returned":4}"#).await;
    assert!(result.text().ends_with("/1/0 with 7"), "{}", result.text());
    let result = result_of(owned_tool(), "{}").await;
    assert!(!result.is_error && !result.text().is_empty());
}

/// A shop whose methods are tools.
#[derive(Debug, Default)]
struct Shop {
    sold: Mutex<Vec<String>>,
}

impl Shop {
    /// Sells an article.
    #[tool(effect = Effect::AtMostOnce)]
    async fn sell(&self, article: String, call: &ToolInvocation) -> Result<usize, Closed> {
        if article.is_empty() {
            return Err(closed());
        }
        self.sold.lock().unwrap().push(format!("{article} in {}", call.key.to_string().len() > 4));
        Ok(self.sold.lock().unwrap().len())
    }

    /// Counts the articles, on another thread.
    #[tool(blocking = 1)]
    fn count(&self, from: usize, call: &ToolInvocation) -> Vec<String> {
        assert!(!call.is_cancelled());
        self.sold.lock().unwrap()[from..].to_vec()
    }

    /// Lists the last article without a copy of it.
    #[tool]
    fn kind(&self) -> &'static str {
        "books"
    }
}

/// Methods are tools of a shared state, which outlives none of them.
#[tokio::test]
async fn methods_of_a_shared_state_are_tools() {
    let shop = Arc::new(Shop::default());
    assert_eq!(result_of(shop.sell_tool(), r#"{"article":"book"}"#).await.text(), "1");
    assert_eq!(result_of(shop.sell_tool(), r#"{"article":"lamp"}"#).await.text(), "2");
    let failed = result_of(shop.sell_tool(), r#"{"article":""}"#).await;
    assert!(failed.is_error && failed.text().starts_with("the shop is closed: "));
    assert_eq!(*shop.sold.lock().unwrap(), ["book in true", "lamp in true"]);
    let rest = result_of(shop.count_tool(), r#"{"from":1}"#).await;
    assert_eq!(rest.parts, [json!(["lamp in true"]).into()]);
    assert_eq!(text_of(shop.kind_tool()).await, Ok("books".into()));
    assert_eq!(Arc::strong_count(&shop), 1, "a dropped tool lets go of its state");
}
