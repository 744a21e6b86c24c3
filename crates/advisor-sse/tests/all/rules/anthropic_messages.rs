//! Each rule of Anthropic's Messages, and a stream that breaks it.

use serde_json::json;

use super::{Rules, Texts, broken, missing, named, validate, with, without};

const START: &str = r#"{"type":"message_start","message":{"id":"m","role":"assistant","model":"chain","content":[],"usage":{"input_tokens":0,"output_tokens":0}}}"#;
const TEXT: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const PIECE: &str = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
const STOP: &str = r#"{"type":"content_block_stop","index":0}"#;
const THINKING: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#;
const THOUGHT: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#;
const CALL: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"look","input":{}}}"#;
const INPUT: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#;
const SERVER_CALL: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"mcp_tool_use","id":"s","name":"look","server_name":"chain","input":{}}}"#;
const RESULT: &str = r#"{"type":"content_block_start","index":1,"content_block":{"type":"mcp_tool_result","tool_use_id":"s","is_error":false,"content":[]}}"#;
const DELTA: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#;
const END: &str = r#"{"type":"message_stop"}"#;
const PING: &str = r#"{"type":"ping"}"#;
const ERROR: &str = r#"{"type":"error","error":{"type":"api_error","message":"an internal error"}}"#;

const TEXTS: [Texts; 10] = [
    (&[], START, &["/type", "/message/id", "/message/model"]),
    (&[START], TEXT, &["/content_block/type", "/content_block/text"]),
    (&[START], THINKING, &["/content_block/thinking"]),
    (&[START], CALL, &["/content_block/id", "/content_block/name"]),
    (&[START], SERVER_CALL, &["/content_block/id", "/content_block/name", "/content_block/server_name"]),
    (&[START, SERVER_CALL, STOP], RESULT, &["/content_block/tool_use_id"]),
    (&[START, TEXT], PIECE, &["/delta/type", "/delta/text"]),
    (&[START, THINKING], THOUGHT, &["/delta/thinking"]),
    (&[START, CALL], INPUT, &["/delta/partial_json"]),
    (&[START], DELTA, &["/delta/stop_reason"]),
];

pub(super) fn rules() -> Rules {
    let at_1 = |event: &str| with(event, "/index", json!(1));
    let (text_1, piece_1, stop_1, call_1) = (at_1(TEXT), at_1(PIECE), at_1(STOP), at_1(CALL));
    let order = |event: &str| format!("`{event}` is out of order");
    let start_with = |place: &str, value| with(START, place, value);
    let mut all = vec![
        broken("the data is no JSON object", &["[]"]),
        broken("the name of the event is its type", &[&format!("ping {START}")]),
        broken(&order("content_block_start"), &[TEXT]),
        broken(&order("ping"), &[PING]),
        broken(&order("message_stop"), &[END]),
        broken(&order("message_start"), &[START, START]),
        broken(&order("content_block_delta"), &[START, PIECE]),
        broken(&order("content_block_stop"), &[START, STOP]),
        broken(&order("content_block_start"), &[START, TEXT, &text_1]),
        broken(&order("content_block_delta"), &[START, TEXT, STOP, PIECE]),
        broken(&order("content_block_stop"), &[START, TEXT, STOP, STOP]),
        broken(&order("message_delta"), &[START, TEXT, DELTA]),
        broken(&order("message_stop"), &[START, TEXT, STOP, END]),
        broken(&order("content_block_start"), &[START, DELTA, TEXT]),
        broken(&order("content_block_delta"), &[START, TEXT, STOP, DELTA, PIECE]),
        broken(&order("message_delta"), &[START, DELTA, DELTA]),
        broken(&order("of_another"), &[START, r#"{"type":"of_another"}"#]),
        broken("blocks are numbered", &[START, &text_1]),
        broken("blocks are numbered", &[START, TEXT, STOP, TEXT]),
        broken("blocks are numbered", &[START, TEXT, STOP, &text_1, &stop_1, TEXT]),
        broken("blocks are numbered", &[START, TEXT, STOP, &with(TEXT, "/index", json!(2))]),
        broken("blocks are numbered", &[START, TEXT, &piece_1]),
        broken("blocks are numbered", &[START, TEXT, &stop_1]),
        broken("blocks are numbered", &[START, &without(TEXT, "/index")]),
        broken("the message is one of the assistant", &[&start_with("/message/role", json!("user"))]),
        broken("the message starts empty", &[&start_with("/message/content", json!([{"type": "text"}]))]),
        broken("the start has token counts", &[&without(START, "/message/usage/input_tokens")]),
        broken("the start has token counts", &[&without(START, "/message/usage/output_tokens")]),
        broken("a piece is of the kind of its block", &[START, TEXT, INPUT]),
        broken("a piece is of the kind of its block", &[START, THINKING, PIECE]),
        broken("a piece is of the kind of its block", &[START, CALL, PIECE]),
        broken("a block starts empty", &[START, &with(TEXT, "/content_block/text", json!("Hi"))]),
        broken("a call starts without input", &[START, &with(CALL, "/content_block/input", json!({"a": 1}))]),
        broken("calls come last", &[START, CALL, STOP, &text_1]),
        broken("the block `image` is unknown", &[START, &with(TEXT, "/content_block/type", json!("image"))]),
        broken("calls come last", &[START, CALL, STOP, &at_1(SERVER_CALL)]),
        broken(&order("content_block_delta"), &[START, SERVER_CALL, INPUT]),
        broken("each call of a server tool has a result", &[START, SERVER_CALL, STOP, DELTA]),
        broken("a result follows its call", &[START, &with(RESULT, "/index", json!(0))]),
        broken(
            "a result follows its call",
            &[START, SERVER_CALL, STOP, RESULT, &stop_1, &with(RESULT, "/index", json!(2))],
        ),
        broken(
            "a result has a list of contents",
            &[START, SERVER_CALL, STOP, &with(RESULT, "/content_block/content", json!("rain"))],
        ),
        broken(
            "the input of a server tool is an object",
            &[START, &with(SERVER_CALL, "/content_block/input", json!("{}"))],
        ),
        broken("the reason tells of calls", &[START, CALL, STOP, DELTA]),
        broken("the reason tells of calls", &[START, &with(DELTA, "/delta/stop_reason", json!("tool_use"))]),
        broken("the end has token counts", &[START, &without(DELTA, "/usage/output_tokens")]),
        broken("the string `message` is missing", &[&without(ERROR, "/error/message")]),
        broken("the string `type` is missing", &[START, DELTA, &without(ERROR, "/error/type")]),
        broken("the reason tells of calls", &[START, TEXT, STOP, &call_1, &stop_1, DELTA]),
    ];
    all.extend(missing(&TEXTS));
    Rules {
        protocol: "Messages",
        check: validate::anthropic_messages,
        source: include_str!("../../../src/validate/anthropic_messages.rs"),
        frames: named,
        whole: &[START, PING, THINKING, THOUGHT, PING, STOP, DELTA, PING, END],
        broken: all,
    }
}
