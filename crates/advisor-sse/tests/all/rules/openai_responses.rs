//! Each rule of Responses, whose events are numbered, and a stream that breaks it.

use advisor_sse::Frame;
use serde_json::{Value, json};

use super::{Rules, Texts, broken, missing, named, validate, with, without};

const CREATED: &str = r#"{"type":"response.created","response":{"id":"r","status":"in_progress"}}"#;
const BEGUN: &str = r#"{"type":"response.in_progress","response":{"id":"r","status":"in_progress"}}"#;
const FAILED: &str = r#"{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"the request took too long"}}}"#;
const ERROR: &str = r#"{"type":"error","code":"timeout","message":"the request took too long","error":{"type":"server_error","code":"timeout","message":"the request took too long"}}"#;
const ITEM: &str =
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m"}}"#;
const PART: &str = r#"{"type":"response.content_part.added","item_id":"m","output_index":0,"content_index":0,"part":{"type":"output_text"}}"#;
const PIECE: &str =
    r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"Hi"}"#;
const TEXT: &str =
    r#"{"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":"Hi"}"#;
const PART_END: &str = r#"{"type":"response.content_part.done","item_id":"m","output_index":0,"content_index":0,"part":{"type":"output_text"}}"#;
const ITEM_END: &str =
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m"}}"#;
const REFUSAL: &str =
    r#"{"type":"response.refusal.done","item_id":"m","output_index":0,"content_index":0,"refusal":"Hi"}"#;
const REASONING: &str =
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"m"}}"#;
const SUMMARY: &str = r#"{"type":"response.reasoning_summary_part.added","item_id":"m","output_index":0,"summary_index":0,"part":{"type":"summary_text"}}"#;
const THOUGHT: &str = r#"{"type":"response.reasoning_summary_text.delta","item_id":"m","output_index":0,"summary_index":0,"delta":"Hm"}"#;
const CALL: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"look"}}"#;
const INPUT: &str =
    r#"{"type":"response.function_call_arguments.delta","item_id":"f","output_index":0,"delta":"{}"}"#;
const ARGUMENTS: &str =
    r#"{"type":"response.function_call_arguments.done","item_id":"f","output_index":0,"arguments":"{}"}"#;
const CALL_END: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"look"}}"#;
const APPROVAL: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"mcp_approval_request","id":"t.c","name":"look","arguments":"{}","server_label":"chain"}}"#;
const SERVER_CALL: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"mcp_call","id":"s","name":"look","server_label":"chain"}}"#;
const RUN: &str = r#"{"type":"response.mcp_call.in_progress","item_id":"s","output_index":0}"#;
const SERVER_ARGUMENTS: &str =
    r#"{"type":"response.mcp_call_arguments.done","item_id":"s","output_index":0,"arguments":""}"#;
const RAN: &str = r#"{"type":"response.mcp_call.completed","item_id":"s","output_index":0}"#;
const SERVER_CALL_END: &str =
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"mcp_call","id":"s"}}"#;
const EMPTY: &str = r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}"#;
const CUT: &str = r#"{"type":"response.incomplete","response":{"id":"r","status":"incomplete","output":[],"incomplete_details":{"reason":"max_output_tokens"}}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","id":"m"}]}}"#;

const TEXTS: [Texts; 14] = [
    (&[], CREATED, &["/type", "/response/id"]),
    (&[CREATED, BEGUN], ERROR, &["/code", "/message", "/error/type", "/error/code", "/error/message"]),
    (&[CREATED, BEGUN, ERROR], FAILED, &["/response/id", "/response/error/code", "/response/error/message"]),
    (&[CREATED, BEGUN], ITEM, &["/item/type", "/item/id"]),
    (&[CREATED, BEGUN], CALL, &["/item/call_id", "/item/name"]),
    (&[CREATED, BEGUN], SERVER_CALL, &["/item/name", "/item/server_label"]),
    (&[CREATED, BEGUN, ITEM], PART, &["/item_id", "/part/type"]),
    (&[CREATED, BEGUN, ITEM, PART], PIECE, &["/item_id", "/delta"]),
    (&[CREATED, BEGUN, ITEM, PART, PIECE], TEXT, &["/item_id", "/text"]),
    (&[CREATED, BEGUN, ITEM, PART, PIECE, TEXT], PART_END, &["/item_id", "/part/type"]),
    (&[CREATED, BEGUN, ITEM, PART, PIECE, TEXT, PART_END], ITEM_END, &["/item/type", "/item/id"]),
    (&[CREATED, BEGUN, CALL], INPUT, &["/delta"]),
    (&[CREATED, BEGUN, CALL, INPUT], ARGUMENTS, &["/arguments"]),
    (&[CREATED, BEGUN], CUT, &["/response/incomplete_details/reason"]),
];

/// Returns frames with their numbers, unless the data has another one.
fn numbered(stream: &[String]) -> Vec<Frame> {
    let number = |(place, data): (usize, &String)| match serde_json::from_str::<Value>(data) {
        Ok(Value::Object(mut event)) => {
            event.entry("sequence_number").or_insert(place.into());
            Value::from(event).to_string()
        }
        _ => data.clone(),
    };
    named(&stream.iter().enumerate().map(number).collect::<Vec<_>>())
}

/// Returns a stream that has begun, with these events.
fn begun<'a>(events: &[&'a str]) -> Vec<&'a str> {
    [&[CREATED, BEGUN], events].concat()
}

pub(super) fn rules() -> Rules {
    let at_1 = |event: &str| with(event, "/output_index", json!(1));
    let other_part = |event: &str| with(event, "/part/type", json!("refusal"));
    let of_part_1 = |event: &str| with(event, "/content_index", json!(1));
    let numbered_2 = r#"{"sequence_number":2,"type":"response.in_progress"}"#;
    let row = |rule: &str, events: &[&str]| broken(rule, &begun(events));
    let mut all = vec![
        broken("the data is no JSON object", &["[]"]),
        broken("the name of the event is its type", &[&format!("ping {CREATED}")]),
        broken("events are numbered", &[CREATED, numbered_2]),
        broken("events are numbered", &[CREATED, &numbered_2.replace('2', "0")]),
        broken("a response is created first", &[BEGUN]),
        broken("a response is created first", &[ITEM]),
        broken("a response is created first", &[CREATED, CREATED]),
        broken("a created response is in progress", &[CREATED, ITEM]),
        row("a created response is in progress", &[BEGUN]),
        broken("the status is that of the event", &[&with(CREATED, "/response/status", json!("queued"))]),
        row("the status is that of the event", &[&with(EMPTY, "/response/status", json!("incomplete"))]),
        row(
            "the status is that of the event",
            &[ERROR, &with(FAILED, "/response/status", json!("completed"))],
        ),
        row("an error precedes a failed response", &[FAILED]),
        row("an error precedes a failed response", &[ERROR, EMPTY]),
        row(
            "the codes of a failed response are a closed list",
            &[ERROR, &with(FAILED, "/response/error/code", json!("timeout"))],
        ),
        row(
            "token counts have those of the cache",
            &[&EMPTY.replace("[]", r#"[],"usage":{"input_tokens":1}"#)],
        ),
        broken("the id does not change", &[CREATED, &with(BEGUN, "/response/id", json!("r2"))]),
        row("the id does not change", &[&with(EMPTY, "/response/id", json!("r2"))]),
        row("the message `m` opens twice", &[ITEM, ITEM]),
        row("the message `m` opens twice", &[ITEM, ITEM_END, ITEM]),
        row("the message `m` closes while it is not open", &[ITEM_END]),
        row("the message `m` closes while it is not open", &[ITEM, ITEM_END, ITEM_END]),
        row("the message `m` is still open", &[ITEM, EMPTY]),
        row("the message `m` is extended while it is not open", &[ITEM, ITEM_END, PART]),
        row("the part `image` is unknown", &[&with(ITEM, "/item/type", json!("image"))]),
        row("items are numbered", &[&at_1(ITEM)]),
        row("items are numbered", &[&without(ITEM, "/output_index")]),
        row("items are numbered", &[ITEM, &CALL.replace("\"m\"", "\"f\"")]),
        row("items are numbered", &[ITEM, &at_1(PART)]),
        row("items are numbered", &[ITEM, PART, &at_1(PIECE)]),
        row("items are numbered", &[ITEM, &at_1(ITEM_END)]),
        row("the message `m` is extended while it is not open", &[REASONING, PART]),
        row("the reasoning `m` is extended while it is not open", &[ITEM, SUMMARY]),
        row("the output_text `m` is extended while it is not open", &[ITEM, PIECE]),
        row("the output_text `m` is extended while it is not open", &[ITEM, &other_part(PART), PIECE]),
        row(
            "the output_text `m` is extended while it is not open",
            &[ITEM, PART, PIECE, TEXT, PART_END, PIECE],
        ),
        row("the refusal `m` is extended while it is not open", &[ITEM, PART, REFUSAL]),
        row("the summary_text `m` is extended while it is not open", &[REASONING, THOUGHT]),
        row("the function_call `f` is extended while it is not open", &[INPUT]),
        row("the mcp_call `s` is extended while it is not open", &[RUN]),
        row("the string `name` is missing", &[&without(APPROVAL, "/item/name")]),
        row("the string `arguments` is missing", &[&without(APPROVAL, "/item/arguments")]),
        row("the string `server_label` is missing", &[&without(APPROVAL, "/item/server_label")]),
        row("the mcp_approval_request `t.c` is still open", &[APPROVAL, EMPTY]),
        row("the run `s` is still open", &[SERVER_CALL, RUN, SERVER_ARGUMENTS, SERVER_CALL_END]),
        row("the text `s` has not closed", &[SERVER_CALL, RUN, RAN]),
        row("the run `s` closes while it is not open", &[SERVER_CALL, SERVER_ARGUMENTS, RAN, RAN]),
        row("the run `s` is extended while it is not open", &[SERVER_CALL, SERVER_ARGUMENTS, RAN, RUN]),
        row("an item has one part", &[ITEM, &of_part_1(PART)]),
        row("an item has one part", &[ITEM, PART, &of_part_1(PIECE)]),
        row("an item has one part", &[REASONING, &without(SUMMARY, "/summary_index")]),
        row("the output_text `m` opens twice", &[ITEM, PART, PART]),
        row("the text `m` opens twice", &[ITEM, PART, &at_1(&CALL.replace("\"f\"", "\"m\""))]),
        row("the text `m` opens twice", &[ITEM, PART, &other_part(PART)]),
        row("the text `m` is extended while it is not open", &[ITEM, PART, PIECE, TEXT, PIECE]),
        row("the text `f` is extended while it is not open", &[CALL, INPUT, ARGUMENTS, INPUT]),
        row("the text `m` closes while it is not open", &[ITEM, PART, PIECE, TEXT, TEXT]),
        row("the text `f` closes while it is not open", &[CALL, INPUT, ARGUMENTS, ARGUMENTS]),
        row("the finished text is that of its pieces", &[ITEM, PART, TEXT]),
        row("the finished text is that of its pieces", &[CALL, ARGUMENTS]),
        row("the text `m` has not closed", &[ITEM, PART, PART_END]),
        row("the refusal `m` closes while it is not open", &[ITEM, PART, PIECE, TEXT, &other_part(PART_END)]),
        row(
            "the output_text `m` closes while it is not open",
            &[ITEM, PART, PIECE, TEXT, PART_END, PART_END],
        ),
        row("the output_text `m` is still open", &[ITEM, PART, PIECE, TEXT, ITEM_END]),
        row("the text `f` is still open", &[CALL, CALL_END]),
        row(
            "the reasoning `m` closes while it is not open",
            &[ITEM, &ITEM_END.replace("message", "reasoning")],
        ),
        row("the type `response.audio.delta` is unknown", &[r#"{"type":"response.audio.delta"}"#]),
        row(
            "the type `response.output_text.added` is unknown",
            &[ITEM, PART, &PIECE.replace("text.delta", "text.added")],
        ),
        row("a response has its output", &[&without(EMPTY, "/response/output")]),
        row("the last response has all items", &[ITEM, ITEM_END, EMPTY]),
        row("the last response has all items", &[COMPLETED]),
    ];
    all.extend(missing(&TEXTS));
    Rules {
        protocol: "Responses",
        check: validate::openai_responses,
        source: include_str!("../../../src/validate/openai_responses.rs"),
        frames: numbered,
        whole: &[CREATED, BEGUN, ITEM, PART, PIECE, TEXT, PART_END, ITEM_END, COMPLETED],
        broken: all,
    }
}
