//! Arguments that do not fit their schema and can only mean one thing.

use Leniency::{Lenient, NullIsAbsent, Strict};
use advisor_chain::tools::Leniency;
use advisor_tests::prelude::*;

use crate::tool_loop::support::*;

/// Returns a schema with all types that matter here.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "note": {"type": ["string", "null"]},
            "days": {"type": "integer", "minimum": 1},
            "most": {"type": ["integer", "null"]},
            "share": {"type": "number"},
            "exact": {"type": "boolean"},
            "either": {"type": ["boolean", "integer"]},
            "step": {"type": "integer", "enum": [5, 10]},
            "a/b~c": {"type": "integer"},
            "place": {"$ref": "#/$defs/place"},
            "rows": {"type": "array", "items": {"$ref": "#/$defs/place"}},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "any": {"anyOf": [{"type": "integer"}, {"type": "array"}]},
            "perhaps": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["city"],
        "$defs": {
            "place": {
                "type": "object",
                "properties": {"north": {"type": "number"}, "name": {"type": "string"}},
                "required": ["north"],
                "additionalProperties": false,
            },
        },
    })
}

/// Returns the arguments that the tool receives, or the text that the model reads in their place.
async fn given(
    arguments: &str,
    of_loop: Option<Leniency>,
    of_tool: Option<Leniency>,
) -> Result<Value, String> {
    let mut definition = ToolDefinition::new("look", "Looks.", schema());
    if let Some(leniency) = of_tool {
        definition = ToolDefinition { leniency: Some(leniency), ..definition };
    }
    let tool = FnTool::new(definition, |arguments: Value| async move { Ok(arguments) });
    let advisor = ToolCallAdvisor::builder();
    let advisor = match of_loop {
        Some(leniency) => advisor.leniency(leniency),
        None => advisor,
    };
    let model =
        ScriptedModel::new([Answer::from_calls([("c1", "look", arguments)]), Answer::from_text("Done.")]);
    let response = response_of(client(&model, advisor.build().unwrap()).tool(tool)).await;
    let lines = transcript_lines(&response.transcript);
    // The arguments are stored and sent as the model wrote them.
    let written = format!("call c1 look {arguments}");
    assert_eq!(lines[1], written);
    assert_eq!(transcript_lines(&model.prompts()[1].messages)[1], written);
    match lines[2].strip_prefix("result c1: ") {
        Some(given) => Ok(serde_json::from_str(given).unwrap()),
        None => Err(lines[2].clone()),
    }
}

/// Returns arguments, their converted form, and the first leniency that accepts them.
fn cases() -> Vec<(Value, Value, Leniency)> {
    let oslo = |name: &str, value: Value| json!({"city": "Oslo", name: value});
    let same = |value: Value, leniency| (value.clone(), value, leniency);
    vec![
        same(json!({"city": "Oslo"}), Strict),
        // A value that fits stays unchanged.
        same(oslo("note", json!(null)), Strict),
        same(json!({"city": "3", "note": "true"}), Strict),
        // Null for what may be left out.
        (oslo("days", json!(null)), json!({"city": "Oslo"}), NullIsAbsent),
        (oslo("place", json!(null)), json!({"city": "Oslo"}), NullIsAbsent),
        (oslo("a/b~c", json!(null)), json!({"city": "Oslo"}), NullIsAbsent),
        (
            oslo("rows", json!([{"north": 1, "name": null}, {"north": 2}])),
            oslo("rows", json!([{"north": 1}, {"north": 2}])),
            NullIsAbsent,
        ),
        (
            json!({"city": "Oslo", "days": null, "unit": null, "note": null}),
            json!({"city": "Oslo", "note": null}),
            NullIsAbsent,
        ),
        // Texts that can only be one number or boolean.
        (oslo("days", json!("3")), oslo("days", json!(3)), Lenient),
        (oslo("days", json!("18446744073709551615")), oslo("days", json!(u64::MAX)), Lenient),
        (oslo("share", json!("-0.5e1")), oslo("share", json!(-5.0)), Lenient),
        (oslo("exact", json!("true")), oslo("exact", json!(true)), Lenient),
        (oslo("either", json!("false")), oslo("either", json!(false)), Lenient),
        (oslo("perhaps", json!("1")), oslo("perhaps", json!(1)), Lenient),
        (oslo("step", json!("10")), oslo("step", json!(10)), Lenient),
        (oslo("a/b~c", json!("7")), oslo("a/b~c", json!(7)), Lenient),
        (oslo("sizes", json!(["1", 2, "3"])), oslo("sizes", json!([1, 2, 3])), Lenient),
        (
            json!({"city": "Oslo", "days": "3", "place": {"north": "59.9", "name": null}, "unit": null}),
            json!({"city": "Oslo", "days": 3, "place": {"north": 59.9}}),
            Lenient,
        ),
    ]
}

#[tokio::test]
async fn unambiguous_arguments_are_coerced() {
    for (arguments, becomes, first) in cases() {
        let arguments = arguments.to_string();
        for (leniency, takes) in
            [(Strict, first == Strict), (NullIsAbsent, first != Lenient), (Lenient, true)]
        {
            let given = given(&arguments, Some(leniency), None).await;
            assert_eq!(given.is_ok(), takes, "{leniency:?} {arguments}: {given:?}");
            if let Ok(given) = given {
                assert_eq!(given, becomes, "{leniency:?} {arguments}");
            }
        }
    }
}

/// Law T2: ambiguous arguments, and those that do not fit after conversion either, are refused as the model
/// wrote them.
#[tokio::test]
async fn law_t2_arguments_that_could_mean_several_things_are_refused() {
    let oslo = |name: &str, value: Value| json!({"city": "Oslo", name: value}).to_string();
    for (arguments, says) in [
        // Null where something is needed.
        (json!({"city": null}).to_string(), "/city: null is not of type \"string\""),
        ("null".to_string(), "\"city\" is a required property"),
        (oslo("sizes", json!([1, null])), "/sizes/1: null"),
        (oslo("place", json!({"north": null})), "/place/north: null"),
        (oslo("place", json!({"north": 1, "south": null})), "/place: "),
        // Texts that are not plainly a number or a boolean.
        (oslo("days", json!("")), "/days: \"\""),
        (oslo("days", json!(" 3")), "/days: \" 3\""),
        (oslo("days", json!("3.0")), "/days: \"3.0\""),
        (oslo("days", json!("+3")), "/days: \"+3\""),
        (oslo("days", json!("03")), "/days: \"03\""),
        (oslo("days", json!("18446744073709551616")), "/days: "),
        (oslo("share", json!("NaN")), "/share: \"NaN\""),
        (oslo("share", json!("1e999")), "/share: \"1e999\""),
        (oslo("exact", json!("True")), "/exact: \"True\""),
        (oslo("exact", json!(1)), "/exact: 1"),
        (oslo("city", json!(3)), "/city: 3"),
        (oslo("any", json!("3")), "/any: \"3\""),
        (oslo("place", json!("{\"north\":1}")), "/place: "),
        // A converted value that does not fit either is an error.
        (oslo("days", json!("0")), "/days: \"0\""),
        (oslo("step", json!("7")), "/step: \"7\""),
        // Others are taken back where one cannot be.
        (json!({"city": "Oslo", "unit": null, "days": "soon"}).to_string(), "/days: \"soon\""),
    ] {
        for leniency in [Strict, NullIsAbsent, Lenient] {
            let refused = given(&arguments, Some(leniency), None).await.unwrap_err();
            assert!(refused.starts_with("error c1: not started: the arguments do not fit"), "{refused}");
            assert!(refused.contains(says), "{leniency:?} {arguments}: {refused}");
        }
    }
}

/// Unless someone says otherwise, null counts as absent, and texts stay texts. A tool's own word goes before the loop's.
#[tokio::test]
async fn tool_leniency_overrides_loop_leniency() {
    let (null, text) = (r#"{"city":"Oslo","days":null}"#, r#"{"city":"Oslo","days":"3"}"#);
    for (of_loop, of_tool, takes) in [
        (None, None, [true, false]),
        (None, Some(Strict), [false, false]),
        (None, Some(Lenient), [true, true]),
        (Some(Strict), None, [false, false]),
        (Some(Strict), Some(Lenient), [true, true]),
        (Some(Lenient), Some(NullIsAbsent), [true, false]),
    ] {
        let taken =
            [given(null, of_loop, of_tool).await.is_ok(), given(text, of_loop, of_tool).await.is_ok()];
        assert_eq!(taken, takes, "{of_loop:?} {of_tool:?}");
    }
}
