//! Everything that OpenAI and compatible servers document for streams of Chat Completions, each in a written answer.
//! The parts are fields of events, of deltas and of calls, finish reasons, token counts and errors.

use advisor_test_support::documented::{assert_covered, outline};
use serde_json::{Value, json};

use super::*;

/// The documented names, in the form of [`assert_covered`]. The first are those of the API reference and of
/// openai-python 3.57.0 (`types/chat/chat_completion_chunk.py`). Those of the named servers follow.
const DOCUMENTED: &[&str] = &[
    "id",
    "object=chat.completion.chunk",
    "created",
    "model",
    "service_tier",
    "system_fingerprint",
    "obfuscation",
    "moderation",
    "choices.index",
    "choices.delta.role=assistant",
    "choices.delta.content",
    "choices.delta.refusal",
    "choices.delta.tool_calls.index",
    "choices.delta.tool_calls.id",
    "choices.delta.tool_calls.type=function",
    "choices.delta.tool_calls.function.name",
    "choices.delta.tool_calls.function.arguments",
    "choices.delta.function_call.name",
    "choices.delta.function_call.arguments",
    "choices.delta.audio.id",
    "choices.delta.audio.data",
    "choices.delta.audio.transcript",
    "choices.delta.audio.expires_at",
    "choices.delta.annotations.type=url_citation",
    "choices.delta.annotations.url_citation.url",
    "choices.logprobs.content",
    "choices.logprobs.refusal",
    "choices.finish_reason=stop",
    "choices.finish_reason=length",
    "choices.finish_reason=tool_calls",
    "choices.finish_reason=content_filter",
    "choices.finish_reason=function_call",
    "usage.prompt_tokens",
    "usage.completion_tokens",
    "usage.total_tokens",
    "usage.prompt_tokens_details.cached_tokens",
    "usage.prompt_tokens_details.audio_tokens",
    "usage.completion_tokens_details.reasoning_tokens",
    "usage.completion_tokens_details.audio_tokens",
    "usage.completion_tokens_details.accepted_prediction_tokens",
    "usage.completion_tokens_details.rejected_prediction_tokens",
    "error.message",
    "error.type",
    "error.code",
    "error.param",
    // Azure OpenAI.
    "prompt_filter_results",
    "choices.content_filter_results",
    "choices.content_filter_offsets",
    // DeepSeek, xAI, llama.cpp.
    "choices.delta.reasoning_content",
    "choices.finish_reason=insufficient_system_resource",
    "usage.prompt_cache_hit_tokens",
    "timings",
    // Groq, Ollama, OpenRouter, vLLM.
    "choices.delta.reasoning",
    "choices.delta.executed_tools",
    "x_groq.usage",
    "x_groq.error",
    "choices.stop_reason",
    // OpenRouter.
    "choices.delta.reasoning_details.type=reasoning.text",
    "choices.delta.reasoning_details.type=reasoning.summary",
    "choices.delta.reasoning_details.type=reasoning.encrypted",
    "choices.delta.images.image_url.url",
    "choices.native_finish_reason",
    "choices.error.message",
    "provider",
    // Mistral.
    "choices.delta.content.type=text",
    "choices.delta.content.type=thinking",
    "choices.delta.content.type=reference",
    "choices.finish_reason=model_length",
    "choices.finish_reason=error",
    // Perplexity and xAI.
    "citations",
    // Moonshot.
    "choices.usage.cached_tokens",
];

/// A written answer and its outline.
type Row = (Vec<Value>, Vec<&'static str>);

fn rows() -> Vec<Row> {
    [texts(), reasonings(), others(), calls(), ends(), counts(), errors()].concat()
}

#[allow(clippy::needless_pass_by_value, reason = "deltas are built in place")]
fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn hi() -> Value {
    delta(json!({"content": "Hi"}))
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn texts() -> Vec<Row> {
    let mut full = hi();
    for (field, value) in [
        ("id", json!("chatcmpl-1")),
        ("object", json!("chat.completion.chunk")),
        ("created", json!(1)),
        ("model", json!("m")),
        ("service_tier", json!("default")),
        ("system_fingerprint", json!("fp")),
        ("obfuscation", json!("x")),
        ("moderation", json!({"input": {}, "output": {}})),
        ("provider", json!("p")),
        ("timings", json!({"predicted_n": 1})),
    ] {
        full[field] = value;
    }
    full["choices"][0]["logprobs"] = json!({"content": [{"token": "Hi", "logprob": -0.1}], "refusal": null});
    full["choices"][0]["content_filter_results"] = json!({"hate": {"filtered": false}});
    full["choices"][0]["content_filter_offsets"] = json!({"check_offset": 0});
    full["choices"][0]["stop_reason"] = Value::Null;
    full["choices"][0]["native_finish_reason"] = Value::Null;
    let begun = delta(json!({"role": "assistant", "content": "", "refusal": null}));
    let filtered = json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]});
    let parts = json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "Hi"}, {"type": "reference", "reference_ids": [1]}]});
    let stop = || finish("stop");
    vec![
        (vec![filtered, begun, full, stop()], vec!["text Hi", "Stop stop"]),
        (vec![delta(json!({"content": null, "refusal": "No."})), stop()], vec!["refusal No.", "Stop stop"]),
        (vec![delta(parts), stop()], vec!["reasoning Hm", "text Hi", "opaque reference", "Stop stop"]),
    ]
}

fn reasonings() -> Vec<Row> {
    let details = |detail: Value| delta(json!({"reasoning": "Hm", "reasoning_details": [detail]}));
    let deltas = [
        delta(json!({"reasoning_content": "Hm"})),
        delta(json!({"reasoning": "Hm"})),
        details(json!({"type": "reasoning.text", "text": "Hm", "signature": "c2ln", "index": 0})),
        details(json!({"type": "reasoning.summary", "summary": "Hm", "index": 0})),
        details(json!({"type": "reasoning.encrypted", "data": "eA==", "index": 0})),
    ];
    let row = |thought| (vec![thought, hi(), finish("stop")], vec!["reasoning Hm", "text Hi", "Stop stop"]);
    deltas.map(row).into()
}

fn others() -> Vec<Row> {
    let cited =
        json!([{"type": "url_citation", "url_citation": {"url": "https://a", "title": "A", "content": "q"}}]);
    let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}}]);
    let ran = json!([{"index": 0, "type": "search", "arguments": "{}", "output": "o"}]);
    let mut last = finish("stop");
    last["citations"] = json!(["https://b"]);
    vec![
        (
            vec![delta(json!({"content": "Hi", "annotations": cited})), finish("stop")],
            vec!["text Hi", "citation https://a, A, q", "Stop stop"],
        ),
        (vec![hi(), last], vec!["text Hi", "citation https://b", "Stop stop"]),
        (
            vec![delta(json!({ "images": image })), finish("stop")],
            vec!["media image/png of 3 bytes", "Stop stop"],
        ),
        (
            vec![delta(json!({ "executed_tools": ran })), hi(), finish("stop")],
            vec!["opaque executed_tools", "text Hi", "Stop stop"],
        ),
    ]
}

fn calls() -> Vec<Row> {
    let begun = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "look", "arguments": ""}}]});
    let piece = |text: &str| delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}));
    let old = |call: Value| delta(json!({ "function_call": call }));
    vec![
        (
            vec![delta(begun), piece("{\"at\":"), piece("1}"), finish("tool_calls")],
            vec!["call look({\"at\":1})", "ToolCalls tool_calls"],
        ),
        (
            vec![
                old(json!({"name": "look", "arguments": ""})),
                old(json!({"arguments": "{\"at\":1}"})),
                finish("function_call"),
            ],
            vec!["call look({\"at\":1})", "ToolCalls function_call"],
        ),
    ]
}

fn ends() -> Vec<Row> {
    let ends = [
        ("stop", "Stop stop"),
        ("length", "Length length"),
        ("content_filter", "ContentFilter content_filter"),
        ("model_length", "Length model_length"),
        ("insufficient_system_resource", "Interrupted insufficient_system_resource"),
        ("error", "Interrupted error"),
    ];
    ends.map(|(reason, line)| (vec![hi(), finish(reason)], vec!["text Hi", line])).into()
}

fn counts() -> Vec<Row> {
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7, "prompt_cache_hit_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 0, "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0}});
    let mut of_moonshot = finish("stop");
    of_moonshot["choices"][0]["usage"] = json!({"prompt_tokens": 5, "cached_tokens": 1});
    let line = || vec!["text Hi", "Stop stop"];
    vec![
        (vec![hi(), finish("stop"), json!({"choices": [], "usage": usage})], line()),
        (vec![hi(), finish("stop"), json!({"choices": [], "x_groq": {"id": "r", "usage": usage}})], line()),
        (vec![hi(), of_moonshot], line()),
    ]
}

fn errors() -> Vec<Row> {
    let error = json!({"message": "m", "type": "server_error", "code": "rate_limit_exceeded", "param": null});
    let mut in_choice = hi();
    in_choice["choices"][0]["error"] = json!({"message": "m", "code": 502});
    vec![
        (vec![hi(), json!({ "error": error })], vec!["text Hi", "error RateLimited { retry_after: None }"]),
        (
            vec![hi(), json!({"choices": [], "x_groq": {"id": "r", "error": "m"}})],
            vec!["text Hi", "error Provider { status: None }"],
        ),
        (vec![in_choice], vec!["text Hi", "error Provider { status: Some(502) }"]),
    ]
}

/// Audio is neither text nor lost.
fn spoken() -> Vec<Value> {
    vec![
        delta(json!({"audio": {"id": "audio_1", "transcript": "Hi"}})),
        delta(json!({"audio": {"data": "AQI="}})),
        delta(json!({"audio": {"expires_at": 1}})),
        finish("stop"),
    ]
}

fn outline_of(events: &[Value]) -> Vec<String> {
    let framed = events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    outline(&read(format!("{framed}data: [DONE]\n\n").as_bytes()).0)
}

#[test]
fn every_documented_part_is_read_as_listed() {
    for (events, expected) in rows() {
        assert_eq!(outline_of(&events), expected, "{events:#?}");
    }
    let spoken = outline_of(&spoken());
    assert!(spoken.iter().any(|line| line == "text Hi"), "{spoken:?}");
}

#[test]
fn no_documented_part_lacks_a_row() {
    let rows: Vec<_> = rows().into_iter().map(|(events, _)| events).chain([spoken()]).collect();
    assert_covered(DOCUMENTED, rows.iter().flatten());
}
