//! Tests of `responses::answer`.

#![allow(clippy::needless_pass_by_value, reason = "events are built in place")]

mod quirks;
mod replay;

use advisor_core::{
    AggregatorSettings, Block, BlockContent, ChatResponse, Chunk, ErrorKind, FinishReason, Media, Result,
};
use advisor_test_support::decoding::read_answer;
use advisor_testkit::split;
use proptest::collection::vec;
use proptest::{prop_assert_eq, proptest};
use provider_http::answer::AnswerDecoder;
use provider_http::redaction::Redaction;
use provider_http::sse::SseLimits;
use serde_json::json;

use super::*;

type Decoder = AnswerDecoder<Responses>;

fn decoder() -> Decoder {
    let format = Responses::new("openai-responses@test");
    AnswerDecoder::new(format, SseLimits::default(), Redaction::default())
}

fn read_with(decoder: Decoder, pieces: &[&[u8]]) -> Result<ChatResponse> {
    read_answer(decoder, AggregatorSettings::default(), pieces).response
}

/// The outcome in a form that can be compared.
fn told(outcome: &Result<ChatResponse>) -> (Vec<String>, String) {
    let end = match outcome {
        Ok(response) => format!("{:?} {:?}", &response.finish, response.usage.as_ref()),
        Err(error) => format!("{:?} {error}", error.kind()),
    };
    (blocks_of(outcome), end)
}

/// The blocks of an answer, or of the part before an error.
fn blocks_of(outcome: &Result<ChatResponse>) -> Vec<String> {
    let response = match outcome {
        Ok(response) => Some(response),
        Err(error) => error.partial(),
    };
    let tell = |content: &BlockContent| match content {
        BlockContent::Text(text) => format!("text: {text}"),
        BlockContent::Reasoning(text) => format!("reasoning: {text}"),
        BlockContent::Refusal(text) => format!("refusal: {text}"),
        BlockContent::ToolCall(call) if call.complete => format!("{}({})", call.name, call.arguments),
        BlockContent::ToolCall(call) => format!("{}({} …", call.name, call.arguments),
        BlockContent::Citation(citation) => format!("citation: {}", citation.url.as_deref().unwrap_or("-")),
        BlockContent::Media(media) => format!("media: {}", media.mime),
        BlockContent::Opaque(opaque) => format!("opaque: {}", opaque.name),
        _ => "other".to_owned(),
    };
    response.into_iter().flat_map(ChatResponse::blocks).map(|(_, block)| tell(block.content())).collect()
}

/// Reads a body whole, byte by byte and at random splits. All outcomes are equal.
fn read(body: &str) -> Result<ChatResponse> {
    let bytes = body.as_bytes();
    let whole = read_with(decoder(), &[bytes]);
    let each: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(told(&read_with(decoder(), &each)), told(&whole), "byte by byte");
    for split in split::random_splits(bytes, 20_261_125, 8) {
        assert_eq!(told(&read_with(decoder(), &split.pieces)), told(&whole), "{split:?}");
    }
    whole
}

/// Frames events as OpenAI does: the name of an event is its type.
fn framed(events: &[Value]) -> String {
    let frame =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("message"));
    events.iter().map(frame).collect()
}

fn outcome(events: &[Value]) -> Result<ChatResponse> {
    read(&framed(events))
}

/// The data on the closed blocks of a complete answer.
fn closed_data(events: &[Value]) -> Value {
    let chunks = read_answer(decoder(), AggregatorSettings::default(), &[framed(events).as_bytes()]).chunks;
    let closed = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Closed { content, .. } => Some(content),
        _ => None,
    });
    closed.flat_map(Block::provider_data).map(|data| data.value.clone()).collect()
}

/// The blocks of a complete answer.
fn blocks(events: &[Value]) -> Vec<String> {
    let outcome = outcome(events);
    assert!(outcome.is_ok(), "{outcome:?}");
    blocks_of(&outcome)
}

fn added(index: i64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: i64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn text(index: i64, delta: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": format!("msg_{index}"), "output_index": index,
        "content_index": 0, "delta": delta, "logprobs": [], "obfuscation": "x"})
}

fn arguments(index: i64, delta: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc_{index}"),
        "output_index": index, "delta": delta})
}

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": name,
        "arguments": arguments, "status": "completed"})
}

fn completed(output: Vec<Value>) -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "model": "m", "object": "response",
        "status": "completed", "output": output,
        "usage": {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 12}}})
}

#[test]
fn text_and_calls_keep_their_order_and_usage_arrives() {
    let events = [
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "m", "status": "in_progress"}}),
        json!({"type": "response.queued", "response": {"id": "resp_1"}}),
        added(0, json!({"type": "message", "id": "msg_0", "content": []})),
        text(0, "I "),
        text(0, "look."),
        done(0, message("msg_0", "I look.")),
        added(1, call("1", "add", "")),
        arguments(1, "{\"a\":"),
        arguments(1, "1}"),
        done(1, call("1", "add", "{\"a\":1}")),
        text(2, "Done."),
        done(2, message("msg_2", "Done.")),
        completed(vec![
            message("msg_0", "I look."),
            call("1", "add", "{\"a\":1}"),
            message("msg_2", "Done."),
        ]),
    ];
    let response = outcome(&events).expect("an answer");
    let expected = ["text: I look.", "add({\"a\":1})", "text: Done."];
    assert_eq!(blocks(&events), expected);
    assert_eq!(response.finish.reason, FinishReason::ToolCalls);
    assert_eq!(response.finish.as_written.as_deref(), Some("completed"));
    let usage = response.usage.as_ref().expect("counts");
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (Some(7), Some(5), Some(12)));
    assert_eq!((usage.cached_input_tokens, usage.reasoning_tokens), (Some(3), Some(2)));
    assert_eq!((response.response_id.as_deref(), response.model.as_deref()), (Some("resp_1"), Some("m")));
}

#[test]
fn parallel_calls_interleave_and_stay_apart() {
    let events = [
        added(0, call("a", "f", "")),
        added(1, call("b", "g", "")),
        arguments(0, "{\"x\""),
        arguments(1, "{\"y\""),
        arguments(0, ":1}"),
        arguments(1, ":2}"),
        completed(vec![]),
    ];
    assert_eq!(blocks(&events), ["f({\"x\":1})", "g({\"y\":2})"]);
}

#[test]
fn refusal_is_its_own_kind_of_block() {
    let delta = |delta: &str| json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": delta});
    let part = json!({"type": "refusal", "refusal": "I cannot."});
    let events = [
        delta("I "),
        delta("cannot."),
        json!({"type": "response.refusal.done", "output_index": 0, "content_index": 0, "refusal": "I cannot."}),
        json!({"type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": part}),
        completed(vec![json!({"type": "message", "content": [part]})]),
    ];
    assert_eq!(blocks(&events), ["refusal: I cannot."]);
}

#[test]
fn parts_of_reasoning_are_paragraphs_of_one_block_that_keeps_the_item() {
    let delta = |part: i64, delta: &str| {
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1",
        "output_index": 0, "summary_index": part, "delta": delta})
    };
    let item = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "secret",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Second."}]});
    let events = [
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "early"})),
        delta(0, "Fir"),
        delta(0, "st."),
        delta(1, "Second."),
        done(0, item.clone()),
        text(1, "4"),
        completed(vec![item.clone(), message("msg_1", "4")]),
    ];
    let response = outcome(&events).expect("an answer");
    assert_eq!(blocks(&events), ["reasoning: First.\n\nSecond.", "text: 4"]);
    let data: Vec<_> = response.blocks().flat_map(|(_, block)| block.provider_data()).collect();
    assert_eq!(data.len(), 1, "once, whatever repeats it");
    assert_eq!((data[0].format.as_str(), &data[0].value), ("openai-responses@test", &item));
}

/// Readers that join all reasoning of an answer need no separator of their own.
#[test]
fn later_items_of_reasoning_begin_a_paragraph() {
    let item =
        |id: &str| json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": id}]});
    let events = [done(0, item("a")), text(1, "4"), done(2, item("b")), completed(vec![])];
    assert_eq!(blocks(&events), ["reasoning: a", "text: 4", "reasoning: \n\nb"]);
}

/// A block whose text is edited loses its data, and the text must be nowhere else.
#[test]
fn no_block_keeps_text_that_it_does_not_show() {
    let parts = |kind: &str, texts: [&str; 3]| texts.map(|text| json!({"type": kind, "text": text}));
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": parts("summary_text", ["x", "y", "z"]),
        "content": parts("reasoning_text", ["a", "b", "c"])});
    let response = outcome(&[done(0, item.clone()), completed(vec![item])]).expect("an answer");
    let (_, block) = response.blocks().next().expect("a block");
    let value = &block.provider_data()[0].value;
    assert_eq!(value["content"], json!(parts("reasoning_text", ["a", "b", "c"])));
    assert_eq!(value["summary"], json!([]));
}

#[test]
fn reasoning_without_text_is_kept_for_its_data() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"});
    let events = [added(0, item.clone()), done(0, item.clone()), text(1, "4"), completed(vec![])];
    let response = outcome(&events).expect("an answer");
    assert_eq!(blocks(&events), ["reasoning: ", "text: 4"]);
    let (_, first) = response.blocks().next().expect("a block");
    assert_eq!(first.provider_data()[0].value, item);
}

#[test]
fn raw_reasoning_and_its_summary_are_shown_once() {
    let raw = |delta: &str| json!({"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": delta});
    let summary = json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "short"});
    let events = [raw("lo"), raw("ng"), summary, text(1, "4"), completed(vec![])];
    assert_eq!(blocks(&events), ["reasoning: long", "text: 4"]);
}

/// The snapshot fills what the end of an item lacks: an image, a text, arguments.
#[test]
fn content_that_only_the_snapshot_has_is_kept() {
    let image = |result: Value| json!({"type": "image_generation_call", "id": "ig_0", "status": "completed", "result": result});
    let empty = json!({"type": "message", "id": "msg_1", "content": []});
    let events = |snapshot: Vec<Value>| {
        vec![
            added(0, json!({"type": "image_generation_call", "id": "ig_0"})),
            json!({"type": "response.image_generation_call.partial_image", "item_id": "ig_0", "output_index": 0,
                "partial_image_b64": "AQ=="}),
            done(0, image(json!(null))),
            added(1, empty.clone()),
            done(1, empty.clone()),
            added(2, call("2", "f", "")),
            done(2, call("2", "f", "")),
            completed(snapshot),
        ]
    };
    let whole = vec![image(json!("AQID")), message("msg_1", "Hi"), call("2", "f", "{\"a\":1}")];
    assert_eq!(blocks(&events(whole)), ["f({\"a\":1})", "media: image/png", "text: Hi"]);
    assert_eq!(blocks(&events(Vec::new())), ["f()"], "nowhere");
    let failed = json!({"type": "image_generation_call", "id": "ig_0", "status": "failed", "result": null});
    assert_eq!(blocks(&[done(0, failed), completed(vec![])]), ["opaque: image_generation_call"]);
}

#[test]
fn server_side_work_is_opaque_and_never_a_call() {
    let kinds = [
        "web_search_call", "file_search_call", "code_interpreter_call", "computer_call", "mcp_call",
        "mcp_list_tools", "mcp_approval_request", "local_shell_call", "custom_tool_call", "tool_search_call",
        "compaction", "program", "shell_call_output", "something_new",
    ];
    for kind in kinds {
        let item = json!({"type": kind, "id": "x", "call_id": "call_x", "name": "search", "arguments": "{}", "input": "i"});
        let events = [
            added(0, json!({"type": kind, "id": "x", "status": "in_progress"})),
            json!({"type": format!("response.{kind}.in_progress"), "output_index": 0, "item_id": "x"}),
            json!({"type": "response.mcp_call_arguments.delta", "output_index": 0, "item_id": "x", "delta": "{}"}),
            json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "item_id": "x", "delta": "i"}),
            json!({"type": format!("response.{kind}.completed"), "output_index": 0, "item_id": "x"}),
            done(0, item.clone()),
            text(1, "Found."),
            completed(vec![item.clone(), message("msg_1", "Found.")]),
        ];
        assert_eq!(blocks(&events), [format!("opaque: {kind}"), "text: Found.".to_owned()]);
        let response = outcome(&events).expect("an answer");
        assert_eq!(response.finish.reason, FinishReason::Stop);
        let (_, first) = response.blocks().next().expect("a block");
        assert!(matches!(first.content(), BlockContent::Opaque(opaque) if opaque.value == item));
    }
}

#[test]
fn generated_image_is_media() {
    let item = json!({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk=",
        "output_format": "webp"});
    let partial = json!({"type": "response.image_generation_call.partial_image", "output_index": 0,
        "partial_image_index": 0, "partial_image_b64": "aA=="});
    let events = [partial, done(0, item.clone()), completed(vec![item])];
    assert_eq!(blocks(&events), ["media: image/webp"]);
    let response = outcome(&events).expect("an answer");
    let (_, block) = response.blocks().next().expect("a block");
    let rest = json!({"type": "image_generation_call", "id": "ig_1", "status": "completed", "output_format": "webp"});
    assert_eq!((&block.provider_data()[0].value, closed_data(&events)), (&rest, json!([rest])));
    let broken = json!({"type": "image_generation_call", "id": "ig_1", "result": "no base64!"});
    assert_eq!(blocks(&[done(0, broken), completed(vec![])]), ["opaque: image_generation_call"]);
}

#[test]
fn fields_of_an_item_stay_with_its_block() {
    let item = |content: Value| json!({"type": "message", "id": "msg_0", "role": "assistant", "phase": "commentary", "content": content});
    let parts = json!([{"type": "output_text", "text": "Hi"}]);
    let function = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}", "namespace": "n"});
    let known = json!([{"phase": "commentary"}, {"namespace": "n"}]);
    let streamed = vec![added(0, item(json!([]))), text(0, "H"), text(0, "i"), done(0, item(parts.clone()))];
    let unannounced = vec![text(0, "Hi"), done(0, item(parts.clone()))];
    for mut events in [streamed, unannounced, vec![done(0, item(parts.clone()))], vec![]] {
        events.push(completed(vec![item(parts.clone()), function.clone()]));
        let response = outcome(&events).expect("an answer");
        let data: Vec<_> = response.blocks().map(|(_, block)| block.provider_data()).collect();
        let data: Value = data.into_iter().flatten().map(|data| data.value.clone()).collect();
        assert_eq!((&data, &closed_data(&events)), (&known, &known), "{events:?}");
    }
}

#[test]
fn citations_arrive_once() {
    let page = |n: i64| match n {
        3 => json!({"type": "file_citation", "file_id": "file_1", "filename": "b.pdf"}),
        n => json!({"type": "url_citation", "url": format!("https://example.org/{n}"), "title": "t"}),
    };
    let added = |n: i64| {
        json!({"type": "response.output_text.annotation.added", "output_index": 0,
        "content_index": 0, "annotation_index": n, "annotation": page(n)})
    };
    let part = json!({"type": "output_text", "text": "Hi", "annotations": [page(0), page(1), page(2), page(3), {"type": "file_path"}]});
    let item = json!({"type": "message", "id": "msg_0", "content": [part]});
    let events = [
        text(0, "Hi"),
        added(0),
        added(1),
        json!({"type": "response.content_part.done", "output_index": 0, "content_index": 0, "part": part}),
        done(0, item.clone()),
        completed(vec![item]),
    ];
    let expected = [
        "text: Hi",
        "citation: https://example.org/0",
        "citation: https://example.org/1",
        "citation: https://example.org/2",
        "citation: -",
    ];
    assert_eq!(blocks(&events), expected);
}

fn incomplete(reason: Value, output: Vec<Value>) -> Value {
    json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": reason, "output": output}})
}

#[test]
fn incomplete_answer_has_a_reason_that_forbids_calls() {
    let cases = [
        (json!({"reason": "max_output_tokens"}), FinishReason::Length, "max_output_tokens"),
        (json!({"reason": "content_filter"}), FinishReason::ContentFilter, "content_filter"),
        (json!({"reason": "a new one"}), FinishReason::Interrupted, "a new one"),
        (json!(null), FinishReason::Interrupted, "incomplete"),
    ];
    for (details, reason, written) in cases {
        let cut = json!({"type": "function_call", "id": "fc_0", "call_id": "c", "name": "f", "arguments": "{\"a\":",
            "status": "incomplete"});
        let events = [
            added(0, call("0", "f", "")),
            arguments(0, "{\"a\":"),
            done(0, cut.clone()),
            incomplete(details, vec![cut]),
        ];
        let response = outcome(&events).expect("an answer");
        assert_eq!(response.finish.reason, reason);
        assert_eq!(response.finish.as_written.as_deref(), Some(written));
        assert!(response.finish.reason.vetoes_calls());
        assert_eq!(blocks(&events), ["f({\"a\": …"]);
    }
}

/// The name of the last event says how the answer ended if its snapshot does not.
#[test]
fn last_event_without_a_status_counts_by_its_name() {
    for (name, reason) in [
        ("completed", FinishReason::ToolCalls),
        ("incomplete", FinishReason::Interrupted),
        ("cancelled", FinishReason::Interrupted),
    ] {
        for snapshot in [json!({"output": []}), json!(null)] {
            let events = [
                added(0, call("0", "f", "")),
                arguments(0, "{}"),
                json!({"type": format!("response.{name}"), "response": snapshot}),
            ];
            let response = outcome(&events).expect("an answer");
            assert_eq!(response.finish.reason, reason, "{name}");
            let runs = response.tool_calls().any(|(_, call)| call.complete);
            assert_eq!(runs, reason.leaves_calls_whole(), "{name}");
        }
    }
}

#[test]
fn failures_keep_what_came_before_them() {
    let failed =
        |error: Value| json!({"type": "response.failed", "response": {"status": "failed", "error": error}});
    let cases = [
        (
            vec![failed(json!({"code": "rate_limit_exceeded", "message": "slow"}))],
            ErrorKind::RateLimited { retry_after: None },
        ),
        (
            vec![failed(json!({"code": "server_error", "message": "oops"}))],
            ErrorKind::Provider { status: None },
        ),
        (vec![failed(json!(null))], ErrorKind::Provider { status: None }),
        (
            vec![json!({"type": "error", "code": "invalid_api_key", "message": "no", "param": null})],
            ErrorKind::Authentication,
        ),
        (
            vec![
                json!({"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "m"}}),
                failed(json!({"code": "server_error", "message": "later"})),
            ],
            ErrorKind::Authentication,
        ),
        (vec![json!({"error": {"message": "m", "code": 429}})], ErrorKind::RateLimited { retry_after: None }),
        (
            vec![json!({"type": "response.error", "error": {"message": "m", "code": 500}})],
            ErrorKind::Provider { status: Some(500) },
        ),
    ];
    for (failure, kind) in cases {
        let mut events = vec![text(0, "Hel"), added(1, call("1", "f", "")), arguments(1, "{}")];
        events.extend(failure.clone());
        let outcome = outcome(&events);
        assert_eq!(outcome.as_ref().expect_err("a failure").kind(), kind, "{failure:?}");
        assert_eq!(blocks_of(&outcome), ["text: Hel", "f({} …"], "{failure:?}");
    }
}

#[test]
fn whole_answer_may_be_cut_failed_or_unfinished() {
    let whole = |status: &str, more: Value| {
        let mut answer = json!({"object": "response", "status": status, "output": [message("m", "Hi")]});
        if let (Some(answer), Some(more)) = (answer.as_object_mut(), more.as_object()) {
            answer.extend(more.clone());
        }
        read(&answer.to_string())
    };
    let cut = whole("incomplete", json!({"incomplete_details": {"reason": "max_output_tokens"}}));
    assert_eq!(cut.expect("an answer").finish.reason, FinishReason::Length);
    let failed = whole("failed", json!({"error": {"code": "server_error", "message": "m"}}));
    assert_eq!(failed.expect_err("a failure").kind(), ErrorKind::Provider { status: None });
    for status in ["queued", "in_progress"] {
        assert_eq!(whole(status, json!({})).expect_err("no end").kind(), ErrorKind::Truncated);
    }
}

#[test]
fn error_event_needs_no_json() {
    let error = read("event: error\ndata: overloaded\n\n").expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Provider { status: None });
}

#[test]
fn answer_ends_with_its_last_event_or_is_truncated() {
    let text = framed(&[text(0, "Hi")]);
    let truncated = read(&text).expect_err("nothing ended it");
    assert_eq!(truncated.kind(), ErrorKind::Truncated);
    let end = framed(&[completed(vec![])]);
    let late = framed(&[json!({"type": "error", "message": "late"})]);
    // A gateway's end marker, and an event after the end.
    for body in [format!("{text}{end}"), format!("{text}{end}data: [DONE]\n\n"), format!("{text}{end}{late}")]
    {
        assert_eq!(read(&body).expect("an answer").text(), "Hi");
    }
    let inferred = read(&format!("{text}data: [DONE]\n\n")).expect("an answer");
    assert!(inferred.finish.inferred);
    let cancelled = json!({"type": "response.cancelled", "response": {"status": "cancelled"}});
    let response = outcome(&[added(0, call("0", "f", "")), cancelled]).expect("an answer");
    assert_eq!(response.finish.reason, FinishReason::Interrupted);
}

#[test]
fn unknown_events_and_keepalives_are_ignored() {
    let events = [
        json!({"type": "keepalive", "sequence_number": 1}),
        json!({"type": "response.something.new", "delta": "x", "output_index": 0}),
        text(0, "Hi"),
        json!({"type": "vendor.event", "payload": [1, 2]}),
        completed(vec![]),
    ];
    assert_eq!(blocks(&events), ["text: Hi"]);
    assert_eq!(read(&format!("data: null\n\n{}", framed(&events))).expect("an answer").text(), "Hi");
}

#[test]
fn audio_is_media_at_its_end() {
    let piece = |data: &str| json!({"type": "response.audio.delta", "delta": data});
    let done = json!({"type": "response.audio.done"});
    let said = json!({"type": "response.audio.transcript.delta", "delta": "Hi"});
    // A piece may end inside a group of four letters, or be no base64; the end of the audio may be missing.
    for (events, bytes) in [
        (vec![piece("SUQ"), said.clone(), piece("zAQI="), done.clone()], &b"ID3\x01\x02"[..]),
        (vec![piece("SUQz"), piece("??"), said.clone()], b"ID3"),
    ] {
        let response = outcome(&[events, vec![completed(vec![])]].concat()).expect("an answer");
        let contents: Vec<_> = response.message().blocks().iter().map(Block::content).cloned().collect();
        let sound = BlockContent::Media(Media::from_bytes("audio/mpeg", bytes.to_vec()));
        assert_eq!(contents, [BlockContent::Text("Hi".into()), sound]);
    }
    assert_eq!(blocks(&[done, text(0, "Hi"), completed(vec![])]), ["text: Hi"], "no audio");
}

#[test]
fn law_r1_kept_audio_is_bounded() {
    let event = json!({"type": "response.audio.delta", "delta": "A".repeat(4 << 20)});
    let piece = framed(&[event]);
    let pieces: Vec<&[u8]> = std::iter::repeat_n(piece.as_bytes(), 30).collect();
    let error = read_with(decoder(), &pieces).expect_err("too much");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn invalid_json_is_a_protocol_error() {
    let error = read("data: {\"type\":\n\n").expect_err("an error");
    assert!(matches!(error.kind(), ErrorKind::Protocol { .. }), "{error:?}");
}

#[test]
fn law_r1_items_are_bounded() {
    let search = |id: &str| json!({"type": "web_search_call", "id": id});
    let many: Vec<Value> = (0..10_000).map(|n| added(n, search(&format!("ws_{n}")))).collect();
    let long = "x".repeat(200 << 10);
    let few: Vec<Value> = (0..5).map(|n| added(n, search(&format!("{n}{long}")))).collect();
    let known = json!({"type": "message", "id": "m", "phase": long});
    let heavy: Vec<Value> = (0..5).map(|n| added(n, known.clone())).collect();
    let part = |n: i64| json!({"type": "response.content_part.added", "output_index": 0, "content_index": n, "part": {"type": "output_text"}});
    let parts: Vec<Value> = (0..20_000).map(part).collect();
    let snapshot = vec![completed((0..10_000).map(|_| json!({"type": "x"})).collect())];
    for (flood, events) in [
        ("many items", many),
        ("few items with long ids", few),
        ("items with much data", heavy),
        ("parts of one item", parts),
        ("a snapshot", snapshot),
    ] {
        let error = read_with(decoder(), &[framed(&events).as_bytes()]).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{flood}");
    }
}

#[test]
fn law_r3_names_and_ids_show_no_secret() {
    let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    let item = json!({"type": "function_call", "id": "fc_0", "call_id": key, "name": key, "arguments": ""});
    let response = outcome(&[added(0, item), arguments(0, "{}"), completed(vec![])]).expect("an answer");
    let (_, call) = response.tool_calls().next().expect("a call");
    assert!(!call.id.contains(key) && !call.name.contains(key), "{call:?}");
}

proptest! {
    /// An event that is like the one before is not read. With a name of its own it is, and means the same.
    #[test]
    fn law_s5_repeated_events_mean_the_same(events in vec((0..3_usize, 0..12_usize, 0..6_usize), 1..40)) {
        const TEXTS: [&str; 6] = ["a", "bc", "{}", "response.output_text.delta", r"\u0061", "é"];
        let event = |(at, (item, kind, text)): (usize, &(usize, usize, usize))| {
            let text = TEXTS[*text];
            let (kind, rest) = match kind {
                0 => ("output_item.added", r#""item":{"id":"m","type":"message"}"#.to_owned()),
                1 => ("output_item.added", r#""item":{"id":"f","type":"function_call","call_id":"c","name":"f"}"#.to_owned()),
                2 => ("output_item.added", r#""item":{"id":"r","type":"reasoning"}"#.to_owned()),
                3 | 4 => ("output_text.delta", format!(r#""content_index":0,"delta":"{text}","obfuscation":"{at}""#)),
                5 => ("output_text.done", format!(r#""content_index":0,"text":"{text}""#)),
                6 => ("function_call_arguments.delta", format!(r#""delta":"{text}""#)),
                7 => ("function_call_arguments.done", format!(r#""arguments":"{text}""#)),
                8 => ("reasoning_summary_text.delta", format!(r#""summary_index":0,"delta":"{text}""#)),
                9 => ("reasoning_summary_text.done", format!(r#""summary_index":0,"text":"{text}""#)),
                10 => ("reasoning_text.done", format!(r#""content_index":0,"text":"{text}""#)),
                _ => ("output_item.done", r#""item":{"id":"m","type":"message"}"#.to_owned()),
            };
            format!(r#"data: {{"type":"response.{kind}","output_index":{item},{rest},"sequence_number":{at}}}"#)
        };
        let [repeated, named] = [false, true].map(|is_named| {
            let name = |at: usize| if is_named { format!("event: {at}\n") } else { String::new() };
            let framed = events.iter().enumerate().map(|(at, piece)| format!("{}{}\n\n", name(at), event((at, piece))));
            let body = framed.collect::<String>() + "data: [DONE]\n\n";
            read_answer(decoder(), AggregatorSettings::default(), &[body.as_bytes()])
        });
        prop_assert_eq!(&repeated.chunks, &named.chunks);
        named.assert_same(&repeated, "repeated");
    }
}
