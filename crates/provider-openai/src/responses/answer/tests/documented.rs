//! Everything that OpenAI documents for answers of the Responses API, each in a written answer: events, output items,
//! parts, annotations, ends and errors.

use advisor_test_support::documented::{assert_covered, outline};

use super::*;

/// Of the API reference and of openai-python 3.57.0 (`types/responses`), in the form of [`assert_covered`].
const DOCUMENTED: &[&str] = &[
    "type=response.created",
    "type=response.queued",
    "type=response.in_progress",
    "type=response.completed",
    "type=response.incomplete",
    "type=response.failed",
    "type=error",
    "type=response.output_item.added",
    "type=response.output_item.done",
    "type=response.content_part.added",
    "type=response.content_part.done",
    "type=response.output_text.delta",
    "type=response.output_text.done",
    "type=response.output_text.annotation.added",
    "type=response.refusal.delta",
    "type=response.refusal.done",
    "type=response.reasoning_text.delta",
    "type=response.reasoning_text.done",
    "type=response.reasoning_summary_part.added",
    "type=response.reasoning_summary_part.done",
    "type=response.reasoning_summary_text.delta",
    "type=response.reasoning_summary_text.done",
    "type=response.function_call_arguments.delta",
    "type=response.function_call_arguments.done",
    "type=response.custom_tool_call_input.delta",
    "type=response.custom_tool_call_input.done",
    "type=response.web_search_call.in_progress",
    "type=response.web_search_call.searching",
    "type=response.web_search_call.completed",
    "type=response.file_search_call.in_progress",
    "type=response.file_search_call.searching",
    "type=response.file_search_call.completed",
    "type=response.code_interpreter_call.in_progress",
    "type=response.code_interpreter_call.interpreting",
    "type=response.code_interpreter_call.completed",
    "type=response.code_interpreter_call_code.delta",
    "type=response.code_interpreter_call_code.done",
    "type=response.image_generation_call.in_progress",
    "type=response.image_generation_call.generating",
    "type=response.image_generation_call.partial_image",
    "type=response.image_generation_call.completed",
    "type=response.mcp_call.in_progress",
    "type=response.mcp_call.completed",
    "type=response.mcp_call.failed",
    "type=response.mcp_call_arguments.delta",
    "type=response.mcp_call_arguments.done",
    "type=response.mcp_list_tools.in_progress",
    "type=response.mcp_list_tools.completed",
    "type=response.mcp_list_tools.failed",
    "type=response.shell_call_command.added",
    "type=response.shell_call_command.delta",
    "type=response.shell_call_command.done",
    "type=response.shell_call_output_content.delta",
    "type=response.shell_call_output_content.done",
    "type=response.compaction.compacting",
    "type=response.audio.delta",
    "type=response.audio.done",
    "type=response.audio.transcript.delta",
    "type=response.audio.transcript.done",
    "item.type=message",
    "item.type=reasoning",
    "item.type=function_call",
    "item.type=function_call_output",
    "item.type=custom_tool_call",
    "item.type=custom_tool_call_output",
    "item.type=web_search_call",
    "item.type=file_search_call",
    "item.type=code_interpreter_call",
    "item.type=image_generation_call",
    "item.type=computer_call",
    "item.type=computer_call_output",
    "item.type=local_shell_call",
    "item.type=local_shell_call_output",
    "item.type=shell_call",
    "item.type=shell_call_output",
    "item.type=apply_patch_call",
    "item.type=apply_patch_call_output",
    "item.type=mcp_call",
    "item.type=mcp_list_tools",
    "item.type=mcp_approval_request",
    "item.type=mcp_approval_response",
    "item.type=tool_search_call",
    "item.type=tool_search_output",
    "item.type=additional_tools",
    "item.type=program",
    "item.type=program_output",
    "item.type=compaction",
    "part.type=output_text",
    "part.type=refusal",
    "part.type=reasoning_text",
    "part.type=summary_text",
    "annotation.type=url_citation",
    "annotation.type=file_citation",
    "annotation.type=container_file_citation",
    "annotation.type=file_path",
    "sequence_number",
    "obfuscation",
    "logprobs",
    "response.id",
    "response.model",
    "response.usage.input_tokens",
    "response.usage.input_tokens_details.cached_tokens",
    "response.usage.output_tokens",
    "response.usage.output_tokens_details.reasoning_tokens",
    "response.usage.total_tokens",
    "response.status=completed",
    "response.status=failed",
    "response.status=in_progress",
    "response.status=cancelled",
    "response.status=queued",
    "response.status=incomplete",
    "response.incomplete_details.reason=max_output_tokens",
    "response.incomplete_details.reason=max_messages",
    "response.incomplete_details.reason=content_filter",
    "response.incomplete_details.reason=steered",
    "response.error.code=server_error",
    "response.error.code=rate_limit_exceeded",
    "response.error.code=invalid_prompt",
];

/// A written answer and its outline.
type Row = (Vec<Value>, Vec<&'static str>);

fn rows() -> Vec<Row> {
    [vec![said(), refused(), cited(), called()], reasoned(), audio(), server_side(), ends(), failures()]
        .concat()
}

/// An event of the first output item.
fn event(name: &str, fields: Value) -> Value {
    let mut event = json!({"type": format!("response.{name}"), "sequence_number": 1, "item_id": "x",
        "output_index": 0, "content_index": 0});
    for (key, value) in fields.as_object().into_iter().flatten() {
        event[key] = value.clone();
    }
    event
}

fn state(status: &str) -> Value {
    json!({"id": "resp_1", "model": "m", "object": "response", "status": status, "output": []})
}

fn said() -> Row {
    let part = |text: &str| json!({"part": {"type": "output_text", "text": text, "annotations": []}});
    let events = vec![
        event("created", json!({"response": state("in_progress")})),
        event("queued", json!({"response": state("queued")})),
        event("in_progress", json!({"response": state("in_progress")})),
        event("compaction.compacting", json!({})),
        added(0, json!({"type": "message", "id": "x", "role": "assistant", "content": []})),
        event("content_part.added", part("")),
        event("output_text.delta", json!({"delta": "H", "logprobs": [], "obfuscation": "abc"})),
        event("output_text.delta", json!({"delta": "i", "logprobs": [{"token": "i"}], "obfuscation": "d"})),
        event("output_text.done", json!({"text": "Hi", "logprobs": []})),
        event("content_part.done", part("Hi")),
        done(0, message("x", "Hi")),
        completed(vec![message("x", "Hi")]),
    ];
    (events, vec!["text Hi", "Stop completed"])
}

fn refused() -> Row {
    let part = |refusal: &str| json!({"part": {"type": "refusal", "refusal": refusal}});
    let events = vec![
        added(0, json!({"type": "message", "id": "x", "role": "assistant", "content": []})),
        event("content_part.added", part("")),
        event("refusal.delta", json!({"delta": "No."})),
        event("refusal.done", json!({"refusal": "No."})),
        event("content_part.done", part("No.")),
        completed(vec![]),
    ];
    (events, vec!["refusal No.", "Stop completed"])
}

fn cited() -> Row {
    let annotations = [
        json!({"type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 2}),
        json!({"type": "file_citation", "file_id": "file_1", "filename": "b.pdf", "index": 0}),
        json!({"type": "container_file_citation", "container_id": "c", "file_id": "file_2", "filename": "c.csv"}),
        json!({"type": "file_path", "file_id": "file_3", "index": 0}),
    ];
    let noted = annotations
        .map(|annotation| event("output_text.annotation.added", json!({ "annotation": annotation })));
    let said = event("output_text.delta", json!({"delta": "So."}));
    let events = [said].into_iter().chain(noted).chain([completed(vec![])]).collect();
    // A path is no source with a name or an address.
    let outline =
        vec!["text So.", "citation https://a, A", "citation b.pdf", "citation c.csv", "Stop completed"];
    (events, outline)
}

fn called() -> Row {
    let events = vec![
        added(0, call("x", "look", "")),
        event("function_call_arguments.delta", json!({"delta": "{\"at\":"})),
        event("function_call_arguments.delta", json!({"delta": "1}"})),
        event("function_call_arguments.done", json!({"name": "look", "arguments": "{\"at\":1}"})),
        done(0, call("x", "look", "{\"at\":1}")),
        completed(vec![]),
    ];
    (events, vec!["call look({\"at\":1})", "ToolCalls completed"])
}

fn reasoned() -> Vec<Row> {
    let item = |fields: Value| {
        let mut item = json!({"type": "reasoning", "id": "x", "encrypted_content": "eA==", "summary": []});
        for (key, value) in fields.as_object().into_iter().flatten() {
            item[key] = value.clone();
        }
        item
    };
    let raw = json!({"type": "reasoning_text", "text": "Hm"});
    let short = json!({"type": "summary_text", "text": "Hm"});
    let raw_events = vec![
        added(0, item(json!({}))),
        event("content_part.added", json!({"part": {"type": "reasoning_text", "text": ""}})),
        event("reasoning_text.delta", json!({"delta": "Hm"})),
        event("reasoning_text.done", json!({"text": "Hm"})),
        event("content_part.done", json!({ "part": raw })),
        done(0, item(json!({"content": [raw]}))),
        completed(vec![]),
    ];
    let summary = |name: &str, fields: Value| {
        let mut event = event(name, fields);
        event["summary_index"] = 0.into();
        event
    };
    let summary_events = vec![
        added(0, item(json!({}))),
        summary("reasoning_summary_part.added", json!({"part": {"type": "summary_text", "text": ""}})),
        summary("reasoning_summary_text.delta", json!({"delta": "Hm"})),
        summary("reasoning_summary_text.done", json!({"text": "Hm"})),
        summary("reasoning_summary_part.done", json!({ "part": short })),
        done(0, item(json!({"summary": [short]}))),
        completed(vec![]),
    ];
    let outline = || vec!["reasoning Hm", "Stop completed"];
    vec![(raw_events, outline()), (summary_events, outline())]
}

/// Audio belongs to no item. Its pieces cannot be played alone, so that it is shown as a whole.
fn audio() -> Vec<Row> {
    let bare = |name: &str, fields: Value| {
        let mut event = json!({"type": format!("response.audio{name}"), "sequence_number": 1});
        if let Some(delta) = fields.get("delta") {
            event["delta"] = delta.clone();
        }
        event
    };
    let events = vec![
        bare(".delta", json!({"delta": "AQI="})),
        bare(".transcript.delta", json!({"delta": "H"})),
        bare(".delta", json!({"delta": "AwQ="})),
        bare(".transcript.delta", json!({"delta": "i"})),
        bare(".done", json!({})),
        bare(".transcript.done", json!({})),
        completed(vec![]),
    ];
    vec![(events, vec!["text Hi", "media audio/pcm of 4 bytes", "Stop completed"])]
}

/// Work of the server: progress is not shown, and each item is one opaque block, or an image.
fn server_side() -> Vec<Row> {
    let kinds: [(&str, &[&str], &'static str); 22] = [
        (
            "web_search_call",
            &["web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed"],
            "opaque web_search_call",
        ),
        (
            "file_search_call",
            &["file_search_call.in_progress", "file_search_call.searching", "file_search_call.completed"],
            "opaque file_search_call",
        ),
        (
            "code_interpreter_call",
            &[
                "code_interpreter_call.in_progress",
                "code_interpreter_call_code.delta",
                "code_interpreter_call_code.done",
                "code_interpreter_call.interpreting",
                "code_interpreter_call.completed",
            ],
            "opaque code_interpreter_call",
        ),
        (
            "image_generation_call",
            &[
                "image_generation_call.in_progress",
                "image_generation_call.generating",
                "image_generation_call.partial_image",
                "image_generation_call.completed",
            ],
            "media image/png of 3 bytes",
        ),
        (
            "mcp_call",
            &[
                "mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done",
                "mcp_call.completed",
            ],
            "opaque mcp_call",
        ),
        ("mcp_call", &["mcp_call.in_progress", "mcp_call.failed"], "opaque mcp_call"),
        (
            "mcp_list_tools",
            &["mcp_list_tools.in_progress", "mcp_list_tools.completed"],
            "opaque mcp_list_tools",
        ),
        ("mcp_list_tools", &["mcp_list_tools.failed"], "opaque mcp_list_tools"),
        ("mcp_approval_request", &[], "opaque mcp_approval_request"),
        ("mcp_approval_response", &[], "opaque mcp_approval_response"),
        (
            "custom_tool_call",
            &["custom_tool_call_input.delta", "custom_tool_call_input.done"],
            "opaque custom_tool_call",
        ),
        (
            "shell_call",
            &["shell_call_command.added", "shell_call_command.delta", "shell_call_command.done"],
            "opaque shell_call",
        ),
        (
            "shell_call_output",
            &["shell_call_output_content.delta", "shell_call_output_content.done"],
            "opaque shell_call_output",
        ),
        ("function_call_output", &[], "opaque function_call_output"),
        ("custom_tool_call_output", &[], "opaque custom_tool_call_output"),
        ("computer_call", &[], "opaque computer_call"),
        ("computer_call_output", &[], "opaque computer_call_output"),
        ("local_shell_call", &[], "opaque local_shell_call"),
        ("local_shell_call_output", &[], "opaque local_shell_call_output"),
        ("apply_patch_call", &[], "opaque apply_patch_call"),
        ("apply_patch_call_output", &[], "opaque apply_patch_call_output"),
        ("tool_search_call", &[], "opaque tool_search_call"),
    ];
    let others: [(&str, &[&str], &'static str); 5] = [
        ("tool_search_output", &[], "opaque tool_search_output"),
        ("additional_tools", &[], "opaque additional_tools"),
        ("program", &[], "opaque program"),
        ("program_output", &[], "opaque program_output"),
        ("compaction", &[], "opaque compaction"),
    ];
    let row = |(kind, progress, line): (&str, &[&str], &'static str)| {
        let item = json!({"type": kind, "id": "x", "call_id": "call_x", "name": "n", "arguments": "{}", "input": "i",
            "result": "AQID", "status": "completed"});
        let progress =
            progress.iter().map(|name| event(name, json!({"delta": "d", "partial_image_b64": "AQ=="})));
        let events = [added(0, json!({"type": kind, "id": "x", "status": "in_progress"}))].into_iter();
        let events = events.chain(progress).chain([done(0, item), completed(vec![])]).collect();
        // The model has not answered yet.
        let end = if kind == "program_output" { "Paused completed" } else { "Stop completed" };
        (events, vec![line, end])
    };
    kinds.into_iter().chain(others).map(row).collect()
}

fn ends() -> Vec<Row> {
    let ends = [
        ("incomplete", "max_output_tokens", "Length max_output_tokens"),
        ("incomplete", "content_filter", "ContentFilter content_filter"),
        ("incomplete", "max_messages", "Interrupted max_messages"),
        ("incomplete", "steered", "Interrupted steered"),
        ("cancelled", "", "Interrupted cancelled"),
    ];
    let row = |(status, reason, line): (&str, &str, &'static str)| {
        let mut response = state(status);
        response["incomplete_details"] = json!({ "reason": reason });
        let end = json!({"type": format!("response.{status}"), "response": response});
        (vec![event("output_text.delta", json!({"delta": "Hi"})), end], vec!["text Hi", line])
    };
    ends.map(row).into()
}

fn failures() -> Vec<Row> {
    let hi = || event("output_text.delta", json!({"delta": "Hi"}));
    let codes = [
        ("server_error", "error Provider { status: None }"),
        ("rate_limit_exceeded", "error RateLimited { retry_after: None }"),
        ("invalid_prompt", "error InvalidInput"),
    ];
    let mut rows: Vec<Row> = codes
        .map(|(code, line)| {
            let mut response = state("failed");
            response["error"] = json!({"code": code, "message": "m"});
            (vec![hi(), json!({"type": "response.failed", "response": response})], vec!["text Hi", line])
        })
        .into();
    let error = json!({"type": "error", "code": "insufficient_quota", "message": "m", "param": null});
    rows.push((vec![hi(), error], vec!["text Hi", "error Authentication"]));
    rows
}

#[test]
fn every_documented_part_is_read_as_listed() {
    for (events, expected) in rows() {
        assert_eq!(outline(&outcome(&events)), expected, "{events:#?}");
    }
}

#[test]
fn no_documented_part_lacks_a_row() {
    let rows = rows();
    assert_covered(DOCUMENTED, rows.iter().flat_map(|(events, _)| events));
}
