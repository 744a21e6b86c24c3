//! Each rule of Chat Completions, and a stream that breaks it.

use serde_json::json;

use super::{Rules, Texts, broken, missing, unnamed, validate, with, without};

const ROLE: &str = r#"{"id":"a","object":"chat.completion.chunk","created":7,"model":"chain","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
const PIECE: &str = r#"{"id":"a","object":"chat.completion.chunk","created":7,"model":"chain","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#;
const CALL: &str = r#"{"id":"a","object":"chat.completion.chunk","created":7,"model":"chain","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}]},"finish_reason":null}]}"#;
const FINISH: &str = r#"{"id":"a","object":"chat.completion.chunk","created":7,"model":"chain","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const COUNTS: &str = r#"{"id":"a","object":"chat.completion.chunk","created":7,"model":"chain","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
const ERROR: &str = r#"{"error":{"message":"an internal error","type":"server_error"}}"#;
const DONE: &str = "[DONE]";

const FIRST_CALL: &str = "/choices/0/delta/tool_calls/0";

const TEXTS: [Texts; 4] = [
    (&[], ROLE, &["/object", "/id", "/model"]),
    (
        &[ROLE],
        CALL,
        &[
            "/choices/0/delta/tool_calls/0/id",
            "/choices/0/delta/tool_calls/0/function/name",
            "/choices/0/delta/tool_calls/0/function/arguments",
        ],
    ),
    (&[], ERROR, &["/error/message", "/error/type"]),
    (&[ROLE], ERROR, &["/error/message", "/error/type"]),
];

pub(super) fn rules() -> Rules {
    let of_calls = with(FINISH, "/choices/0/finish_reason", json!("tool_calls"));
    let second = with(CALL, &format!("{FIRST_CALL}/index"), json!(1));
    let third = with(CALL, &format!("{FIRST_CALL}/index"), json!(2));
    let counts_early = with(PIECE, "", {
        let mut chunk: serde_json::Value = serde_json::from_str(PIECE).unwrap();
        chunk["usage"] = json!({"prompt_tokens": 1});
        chunk
    });
    let mut all = vec![
        broken("the data is no JSON object", &["[]"]),
        broken("`[DONE]` follows a finish reason or an error", &[DONE]),
        broken("`[DONE]` follows a finish reason or an error", &[ROLE, PIECE, DONE]),
        broken("only `[DONE]` follows", &[ROLE, FINISH, COUNTS, COUNTS]),
        broken("only `[DONE]` follows", &[ROLE, ERROR, PIECE]),
        broken("only `[DONE]` follows", &[ROLE, ERROR, ERROR]),
        broken("the object is a chunk", &[&with(ROLE, "/object", json!("chat.completion"))]),
        broken("a chunk has the time of its answer", &[&without(ROLE, "/created")]),
        broken("id, model and time do not change", &[ROLE, &with(PIECE, "/id", json!("b"))]),
        broken("id, model and time do not change", &[ROLE, &with(PIECE, "/model", json!("b"))]),
        broken("id, model and time do not change", &[ROLE, &with(PIECE, "/created", json!(8))]),
        broken("a chunk has one choice", &[&without(ROLE, "/choices")]),
        broken("a chunk has one choice", &[ROLE, &with(PIECE, "/choices", json!([{}, {}]))]),
        broken("token counts follow the finish reason", &[COUNTS]),
        broken("token counts follow the finish reason", &[ROLE, COUNTS]),
        broken("only the last chunk has token counts", &[ROLE, &counts_early]),
        broken("no choice follows the finish reason", &[ROLE, FINISH, PIECE]),
        broken("no choice follows the finish reason", &[ROLE, FINISH, FINISH]),
        broken("a choice has an index", &[&without(ROLE, "/choices/0/index")]),
        broken("a choice has a delta", &[&without(ROLE, "/choices/0/delta")]),
        broken("the role comes in the first chunk", &[PIECE]),
        broken("the role comes in the first chunk", &[FINISH]),
        broken("the role comes in the first chunk", &[ROLE, ROLE]),
        broken("calls are numbered", &[ROLE, &second]),
        broken("calls are numbered", &[ROLE, CALL, CALL]),
        broken("calls are numbered", &[ROLE, CALL, &third]),
        broken("calls are numbered", &[ROLE, CALL, &second, CALL]),
        broken("calls are numbered", &[ROLE, &without(CALL, &format!("{FIRST_CALL}/index"))]),
        broken("a call is one of a function", &[ROLE, &without(CALL, &format!("{FIRST_CALL}/type"))]),
        broken("the last delta is empty", &[ROLE, &with(PIECE, "/choices/0/finish_reason", json!("stop"))]),
        broken("the finish reason tells of calls", &[ROLE, CALL, FINISH]),
        broken("the finish reason tells of calls", &[ROLE, &of_calls]),
        broken("a choice has a finish reason or null", &[ROLE, &without(PIECE, "/choices/0/finish_reason")]),
    ];
    for count in ["prompt_tokens", "completion_tokens", "total_tokens"] {
        let counts = without(COUNTS, &format!("/usage/{count}"));
        all.push(broken("a chunk without choices has token counts", &[ROLE, FINISH, &counts]));
    }
    all.extend(missing(&TEXTS));
    Rules {
        protocol: "Chat Completions",
        check: validate::openai_chat,
        source: include_str!("../../../src/validate/openai_chat.rs"),
        frames: unnamed,
        whole: &[ROLE, PIECE, PIECE, FINISH, COUNTS, DONE],
        broken: all,
    }
}
