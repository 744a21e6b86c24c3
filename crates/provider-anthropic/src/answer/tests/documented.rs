//! Everything that the Messages API documents for answers, each in a written answer: events, kinds of blocks, deltas,
//! citations, stop reasons, errors and fields.

use advisor_test_support::documented::outline;

use super::*;

/// A written answer and its outline, of the API reference and of anthropic-python 2.14.0 (`types/beta`).
type Row = (Vec<Value>, Vec<&'static str>);

/// An answer with this block, to which these deltas belong.
fn with_block(block: Value, deltas: &[Value]) -> Vec<Value> {
    let deltas = deltas.iter().map(|change| delta(0, change.clone()));
    [start(), ping(), open(0, block)]
        .into_iter()
        .chain(deltas)
        .chain([stop(0), finish("end_turn"), end()])
        .collect()
}

fn rows() -> Vec<Row> {
    [content(), server_tools(), cited(), ends(), errors()].concat()
}

fn content() -> Vec<Row> {
    let mut full = start();
    full["message"]["container"] = json!({"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"});
    for absent in ["context_management", "diagnostics", "stop_details", "stop_sequence"] {
        full["message"][absent] = Value::Null;
    }
    full["message"]["input_transformations"] = json!([{"type": "thinking_dropped", "message_index": 0}]);
    full["message"]["usage"] = json!({"input_tokens": 9, "output_tokens": 1, "cache_creation_input_tokens": 2,
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 2},
        "cache_read_input_tokens": 3, "fallback_credit": null, "inference_geo": "eu", "speed": "fast",
        "iterations": [{"type": "message", "input_tokens": 9}], "service_tier": "standard"});
    let mut last = finish("end_turn");
    last["context_management"] = json!({"applied_edits": [{"type": "clear_tool_uses_20250919"}]});
    last["usage"]["output_tokens_details"] = json!({"thinking_tokens": 3});
    last["usage"]["server_tool_use"] = json!({"web_search_requests": 0});
    last["delta"]["container"] = json!({"id": "container_1"});
    let text = json!({"type": "text_delta", "text": "Hi"});
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let thoughts = [
        json!({"type": "thinking_delta", "thinking": "Hm"}),
        json!({"type": "signature_delta", "signature": "c2ln"}),
    ];
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}, "caller": {"type": "direct"}});
    let input = json!({"type": "input_json_delta", "partial_json": "{\"at\":1}"});
    let compaction = json!({"type": "compaction_delta", "content": "In short.", "encrypted_content": null});
    vec![
        (vec![full, self::text(0), delta(0, text), stop(0), last, end()], vec!["text Hi", "Stop end_turn"]),
        (with_block(thinking, &thoughts), vec!["reasoning Hm", "Stop end_turn"]),
        (
            with_block(json!({"type": "redacted_thinking", "data": "eA=="}), &[]),
            vec!["opaque redacted_thinking", "Stop end_turn"],
        ),
        (with_block(call, &[input]), vec!["call look({\"at\":1})", "Stop end_turn"]),
        (
            with_block(json!({"type": "compaction", "content": null}), &[compaction]),
            vec!["opaque compaction", "Stop end_turn"],
        ),
    ]
}

/// Blocks of tools that the server runs, and of other work on its side: none is a call of ours.
fn server_tools() -> Vec<Row> {
    let result =
        |kind: &str, content: Value| json!({"type": kind, "tool_use_id": "srvtoolu_1", "content": content});
    let failed = json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"});
    let model = |name: &str| json!({ "model": name });
    let blocks = [
        (
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}),
            "opaque server_tool_use",
        ),
        (result("web_search_tool_result", failed), "opaque web_search_tool_result"),
        (
            result("web_fetch_tool_result", json!({"type": "web_fetch_result"})),
            "opaque web_fetch_tool_result",
        ),
        (result("advisor_tool_result", json!({"type": "advisor_result"})), "opaque advisor_tool_result"),
        (
            result("code_execution_tool_result", json!({"type": "code_execution_result"})),
            "opaque code_execution_tool_result",
        ),
        (
            result("bash_code_execution_tool_result", json!({"type": "bash_code_execution_result"})),
            "opaque bash_code_execution_tool_result",
        ),
        (
            result("text_editor_code_execution_tool_result", json!({})),
            "opaque text_editor_code_execution_tool_result",
        ),
        (result("tool_search_tool_result", json!({"tool_references": []})), "opaque tool_search_tool_result"),
        (
            json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "wiki", "input": {}}),
            "opaque mcp_tool_use",
        ),
        (result("mcp_tool_result", json!([{"type": "text", "text": "x"}])), "opaque mcp_tool_result"),
        (
            json!({"type": "mcp_tool_listing", "mcp_server_name": "wiki", "tools": []}),
            "opaque mcp_tool_listing",
        ),
        (json!({"type": "container_upload", "file_id": "file_1"}), "opaque container_upload"),
        (
            json!({"type": "fallback", "from": model("a"), "to": model("b"), "trigger": {"type": "refusal"}}),
            "opaque fallback",
        ),
    ];
    blocks.map(|(block, line)| (with_block(block, &[]), vec![line, "Stop end_turn"])).into()
}

fn cited() -> Vec<Row> {
    let document =
        |kind: &str| json!({"type": kind, "cited_text": "q", "document_index": 0, "document_title": "d"});
    let web = json!({"type": "web_search_result_location", "url": "https://a.example", "title": "A",
        "cited_text": "c", "encrypted_index": "eA=="});
    let found = json!({"type": "search_result_location", "source": "s", "title": "t", "cited_text": "c",
        "search_result_index": 0, "start_block_index": 0, "end_block_index": 0});
    let cases = [
        (document("char_location"), "citation d, q"),
        (document("page_location"), "citation d, q"),
        (document("content_block_location"), "citation d, q"),
        (web, "citation https://a.example, A, c"),
        (found, "citation s, t, c"),
    ];
    let text = || json!({"type": "text_delta", "text": "So."});
    let row = |(citation, line)| {
        let cited = json!({"type": "citations_delta", "citation": citation});
        let block = json!({"type": "text", "text": "", "citations": []});
        (with_block(block, &[text(), cited]), vec!["text So.", line, "Stop end_turn"])
    };
    cases.map(row).into()
}

fn ends() -> Vec<Row> {
    let ends = [
        ("end_turn", "Stop end_turn"),
        ("stop_sequence", "Stop stop_sequence"),
        ("max_tokens", "Length max_tokens"),
        ("model_context_window_exceeded", "Length model_context_window_exceeded"),
        ("tool_use", "ToolCalls tool_use"),
        ("pause_turn", "Paused pause_turn"),
        ("compaction", "Paused compaction"),
        ("refusal", "Refusal refusal"),
    ];
    let row = |(reason, line)| {
        let mut last = finish(reason);
        last["delta"]["stop_sequence"] = "END".into();
        last["delta"]["stop_details"] = json!({"type": "refusal", "category": "bio", "explanation": "e"});
        (vec![start(), text(0), say(0, "Hi"), stop(0), last, end()], vec!["text Hi", line])
    };
    ends.map(row).into()
}

/// An error in the stream has no status, so its type decides its kind.
fn errors() -> Vec<Row> {
    let kinds = [
        ("invalid_request_error", "error InvalidRequest"),
        ("not_found_error", "error NotFound"),
        ("authentication_error", "error Authentication"),
        ("billing_error", "error Authentication"),
        ("permission_error", "error Authentication"),
        ("rate_limit_error", "error RateLimited { retry_after: None }"),
        ("timeout_error", "error Provider { status: None }"),
        ("api_error", "error Provider { status: None }"),
        ("overloaded_error", "error Provider { status: None }"),
    ];
    let row = |(kind, line)| {
        let error = json!({"type": "error", "error": {"type": kind, "message": "m"}, "request_id": "req_1"});
        (vec![start(), text(0), say(0, "Hi"), error], vec!["text Hi", line])
    };
    kinds.map(row).into()
}

#[test]
fn every_documented_part_is_read_as_listed() {
    for (events, expected) in rows() {
        assert_eq!(outline(&result_of(&sse(&events)).1), expected, "{events:#?}");
    }
}
