//! Everything that Ollama documents for answers of `/api/chat`, each in a written answer: members of lines, reasons for
//! the end, and errors.

use advisor_test_support::documented::outline;
use serde_json::json;

use super::*;

/// A written answer and its outline, of `docs/api.md` and of the `ollama` package 0.6.3 for Python (`_types.py`).
type Row = (Vec<Value>, Vec<&'static str>);

#[allow(clippy::needless_pass_by_value, reason = "the values are made for it")]
fn piece(message: Value) -> Value {
    json!({"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": false})
}

fn end(reason: &str) -> Value {
    json!({"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": reason, "total_duration": 9, "load_duration": 1, "prompt_eval_count": 7,
        "prompt_eval_duration": 2, "eval_count": 3, "eval_duration": 6})
}

fn rows() -> Vec<Row> {
    let hi = || piece(json!({"role": "assistant", "content": "Hi", "images": null, "tool_name": null}));
    let mut likely = hi();
    likely["logprobs"] = json!([{"token": "Hi", "logprob": -0.1, "bytes": [72, 105],
        "top_logprobs": [{"token": "Hi", "logprob": -0.1}]}]);
    let call = json!({"id": "call_1", "function": {"index": 0, "name": "look", "arguments": {"at": "Oslo"}}});
    let png = "iVBORw0KGgo=";
    let mut rows = vec![
        (vec![hi(), end("stop")], vec!["text Hi", "Stop stop"]),
        (vec![likely, end("stop")], vec!["text Hi", "Stop stop"]),
        (
            vec![piece(json!({"role": "assistant", "content": "", "thinking": "Hm"})), hi(), end("stop")],
            vec!["reasoning Hm", "text Hi", "Stop stop"],
        ),
        (
            vec![piece(json!({"role": "assistant", "content": "", "tool_calls": [call]})), end("stop")],
            vec!["call look({\"at\":\"Oslo\"})", "Stop stop"],
        ),
        (
            vec![
                piece(json!({"role": "assistant", "content": "Look:", "images": [png, "AQID"]})),
                end("stop"),
            ],
            vec![
                "text Look:",
                "media image/png of 8 bytes",
                "media application/octet-stream of 3 bytes",
                "Stop stop",
            ],
        ),
        (vec![hi(), end("length")], vec!["text Hi", "Length length"]),
        (vec![end("load")], vec!["Empty load"]),
        (vec![end("unload")], vec!["Empty unload"]),
    ];
    for (words, line) in [
        ("an error was encountered while running the model: EOF", "error Provider { status: None }"),
        ("the input length exceeds the context length", "error ContextOverflow"),
    ] {
        rows.push((vec![hi(), json!({ "error": words })], vec!["text Hi", line]));
    }
    rows
}

#[test]
fn every_documented_part_is_read_as_listed() {
    for (lines, expected) in rows() {
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(outline(&read(&body).0), expected, "{body}");
    }
}
