//! Tools whose arguments are a type.
use advisor_chain::tools::schema_for;
use advisor_tests::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool_loop::support::*;

/// What to look up.
#[derive(Debug, Deserialize, JsonSchema)]
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
    let tool = FnTool::from_args("count", "Counts.", move |folder: Folder| async move {
        Ok(folder.folders.iter().map(count).sum::<usize>().to_string())
    });
    let result = result_of(tool, r#"{"folders":[{"folders":[{},{}]},{}]}"#).await;
    assert_eq!((result.text().as_str(), result.is_error), ("2", false));
    let tool = FnTool::from_args("count", "Counts.", |_: Folder| async { Ok("never") });
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
    let texts = FnTool::from_args("tell", "Tells.", |texts: Vec<String>| async move { Ok(texts.concat()) });
    let error = client(&model, ToolCallAdvisor::new()).tool(texts).build().unwrap_err();
    assert!(error.to_string().contains("`tell` needs an object schema"), "{error}");
}

/// The context that a tool received.
#[derive(Debug, Clone, Default, PartialEq)]
struct Given {
    conversation: Option<ConversationKey>,
    turn: String,
    key: String,
    fact: Option<u32>,
    written: String,
}

/// The tool knows the call, the turn and the conversation, and reports how far it is.
#[tokio::test]
async fn a_typed_tool_is_given_its_invocation() {
    let arguments = r#"{ "city": "Oslo", "days": 2, "around": [{"north": 1.5}, {"north": 2}] }"#;
    for phase in [Phase::Round, Phase::Turn] {
        let given = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&given);
        let weather = FnTool::typed("weather", "Tells the weather.", move |args: Weather, call| {
            seen.lock().unwrap().push(Given {
                conversation: call.conversation.clone(),
                turn: call.turn.id().to_string(),
                key: call.key.to_string(),
                fact: call.turn.extensions().get(),
                written: call.call.arguments.clone(),
            });
            async move {
                call.progress.report("half way").await;
                let north: f64 = args.around.iter().map(|place| place.north).sum();
                Ok(format!("sunny in {} for {:?}, {north} north", args.city, args.days))
            }
        });
        let model = ScriptedModel::new([
            Answer::from_calls([("c1", "weather", arguments)]),
            Answer::from_text("Done."),
        ]);
        let client = client(&model, streaming(ToolCallStreaming::All))
            .advisor_in(phase, ChatMemoryAdvisor::new(InMemoryStore::new()))
            .tool(weather)
            .build()
            .unwrap();
        let conversation = ConversationKey::in_tenant("tenant", "conversation").unwrap();
        let prompt = client.prompt().user("go").conversation(conversation.clone()).extension(7_u32);
        let run = read(prompt.turn(TurnId::new("turn-1").unwrap()).stream()).await;
        let events: Vec<_> = run.lines().into_iter().filter(|line| line.starts_with("tool c1")).collect();
        assert_eq!(
            events[1..],
            ["tool c1 progress half way", "tool c1 finished: sunny in Oslo for Some(2), 3.5 north"]
        );
        let expected = Given {
            conversation: Some(conversation),
            turn: "turn-1".into(),
            key: "turn-1/1/0".into(),
            fact: Some(7),
            written: arguments.into(),
        };
        assert_eq!(*given.lock().unwrap(), [expected], "{phase}");
    }
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
        let typed = FnTool::from_args("page", "Shows.", |page: Page| async move { Ok(json!(page.sizes)) });
        for tool in [untyped, typed] {
            let result = result_of(tool, arguments).await;
            let text = result.text();
            assert!(result.is_error && text.starts_with("not started: the arguments do not fit"), "{text}");
            assert!(text.contains(says), "{arguments}: {text}");
        }
    }
}

/// A result is any type that converts to an output, any value by `ToolOutput::json`, or an error by `?`.
#[tokio::test]
async fn typed_tool_answers_with_texts_values_and_errors() {
    #[derive(Serialize)]
    struct Forecast {
        degrees: i32,
        unit: Unit,
    }
    let json = FnTool::from_args("weather", "Tells.", |args: Weather| async {
        ToolOutput::json(&Forecast { degrees: 21, unit: args.unit })
    });
    let result = result_of(json, r#"{"city":"Oslo"}"#).await;
    assert_eq!(result.parts, [json!({"degrees": 21, "unit": "celsius"}).into()]);

    let failing = FnTool::from_args("weather", "Tells.", |args: Weather| async move {
        let number: i32 = args.city.parse()?;
        if number < 0 { Err(ToolError::new("it is negative")) } else { Ok(json!(number)) }
    });
    let result = result_of(failing, r#"{"city":"Oslo"}"#).await;
    assert_eq!((result.text().as_str(), result.is_error), ("invalid digit found in string", true));

    let map: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
    assert!(ToolOutput::json(&map).is_err(), "keys are texts");
}

/// A tool without arguments takes a struct without fields.
#[tokio::test]
async fn typed_tool_without_arguments_takes_empty_struct() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    assert_eq!(schema_for::<Nothing>(), json!({"type": "object"}));
    for arguments in ["", "{}"] {
        let time = FnTool::from_args("time", "Tells the time.", |_: Nothing| async { Ok("12:00") });
        assert_eq!(result_of(time, arguments).await.text(), "12:00");
    }
}
