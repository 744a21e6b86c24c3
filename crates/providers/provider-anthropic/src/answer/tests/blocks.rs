//! The kinds of blocks, and their deltas.

use advisor_core::BlockKind::{Citation, Reasoning, Text, ToolCall};
use advisor_core::{ErrorKind, FinishReason};

use super::*;
use crate::wire::FORMAT;

#[test]
fn text_thinking_and_calls_keep_their_order() {
    let response = response_to(&[
        start(),
        ping(),
        open(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        think(0, "Let me "),
        think(0, "see."),
        sign(0, "c2ln"),
        stop(0),
        text(1),
        say(1, "I "),
        ping(),
        say(1, "look \"é😀\"."),
        stop(1),
        tool(2, "toolu_1", "look"),
        input(2, ""),
        input(2, r#"{"at":"#),
        input(2, r#" "Oslo"}"#),
        stop(2),
        tool(3, "toolu_2", "look"),
        input(3, r#"{"at": "Rome"}"#),
        stop(3),
        text(4),
        say(4, "Done."),
        stop(4),
        finish("tool_use"),
        end(),
    ]);
    assert_eq!(kinds(&response), [Reasoning, Text, ToolCall, ToolCall, Text]);
    assert_eq!(reasoning(&response), "Let me see.");
    assert_eq!(response.text(), "I look \"é😀\".Done.");
    let expected = [("look", r#"{"at": "Oslo"}"#), ("look", r#"{"at": "Rome"}"#)];
    assert_eq!(runnable(&response), expected.map(|(name, input)| (name.to_owned(), input.to_owned())));
    assert_eq!(response.finish.reason, FinishReason::ToolCalls);
    assert_eq!(response.finish.as_written.as_deref(), Some("tool_use"));
    assert_eq!(
        (response.response_id.as_deref(), response.model.as_deref()),
        (Some("msg_1"), Some("claude-x"))
    );
    let (_, thought) = response.blocks().next().expect("a block");
    assert_eq!(thought.provider_data()[0].value, json!({"signature": "c2ln"}));
    assert_eq!(thought.provider_data()[0].format, *FORMAT);
}

#[test]
fn thinking_that_is_not_shown_keeps_its_signature() {
    let response = response_to(&[
        start(),
        open(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        sign(0, "c2ln"),
        stop(0),
        text(1),
        say(1, "4"),
        stop(1),
        finish("end_turn"),
        end(),
    ]);
    assert_eq!(kinds(&response), [Reasoning, Text]);
    assert_eq!(response.blocks().next().expect("a block").1.provider_data().len(), 1);
}

#[test]
fn server_tools_are_whole_opaque_blocks() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "https://a.example", "encrypted_content": "eA=="}]});
    let hidden = json!({"type": "redacted_thinking", "data": "ZGF0YQ=="});
    let mcp =
        json!({"type": "mcp_tool_use", "id": "m", "name": "ask", "server_name": "wiki", "input": {"q": 1}});
    let mut events = vec![start(), open(0, hidden.clone()), stop(0), open(1, search)];
    events.extend([input(1, ""), input(1, r#"{"query": "#), input(1, r#""x"}"#), stop(1)]);
    events.extend([
        open(2, found.clone()),
        stop(2),
        open(3, mcp.clone()),
        stop(3),
        finish("pause_turn"),
        end(),
    ]);
    let response = response_to(&events);
    let searched =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let expected = [
        ("redacted_thinking", hidden),
        ("server_tool_use", searched),
        ("web_search_tool_result", found),
        ("mcp_tool_use", mcp),
    ];
    assert_eq!(opaque(&response), expected.map(|(name, value)| (name.to_owned(), value)));
    assert_eq!(response.tool_calls().count(), 0);
    assert_eq!(response.finish.reason, FinishReason::Paused);
}

#[test]
fn unknown_blocks_collect_their_deltas() {
    let response = response_to(&[
        start(),
        open(0, json!({"type": "compaction", "content": null})),
        delta(0, json!({"type": "compaction_delta", "content": "All of it.", "encrypted_content": null})),
        stop(0),
        open(1, json!({"type": "poem", "text": "Roses", "lines": 0})),
        delta(1, json!({"type": "text_delta", "text": " are"})),
        delta(1, json!({"type": "lines_delta", "lines": 2})),
        delta(1, json!({"type": "citations_delta", "citation": {"url": "u"}})),
        delta(1, json!({"type": "citations_delta", "citation": {"url": "v"}})),
        stop(1),
        open(2, json!("no object")),
        stop(2),
        finish("end_turn"),
        end(),
    ]);
    let poem =
        json!({"type": "poem", "text": "Roses are", "lines": 2, "citations": [{"url": "u"}, {"url": "v"}]});
    let expected = [
        ("compaction", json!({"type": "compaction", "content": "All of it."})),
        ("poem", poem),
        ("unknown", json!({})),
    ];
    assert_eq!(opaque(&response), expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn input_that_was_cut_off_stays_a_text() {
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let response = response_to(&[start(), open(0, search), input(0, "{\"que"), finish("max_tokens"), end()]);
    assert_eq!(opaque(&response)[0].1["input"], "{\"que");
}

#[test]
fn citations_stand_beside_their_text() {
    let at_page =
        json!({"type": "page_location", "cited_text": "q", "document_title": "t", "document_index": 0});
    let on_web = json!({"type": "web_search_result_location", "url": "https://a.example", "title": "A",
        "cited_text": "c", "encrypted_index": "eA=="});
    let found = json!({"type": "search_result_location", "source": "s", "title": "u", "cited_text": "c"});
    let response = response_to(&[
        start(),
        open(0, json!({"type": "text", "text": "", "citations": []})),
        say(0, "It is "),
        delta(0, json!({"type": "citations_delta", "citation": at_page})),
        say(0, "so."),
        stop(0),
        open(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "citations_delta", "citation": on_web})),
        say(1, "Sure."),
        delta(1, json!({"type": "citations_delta", "citation": found})),
        stop(1),
        finish("end_turn"),
        end(),
    ]);
    assert_eq!(response.text(), "It is so.Sure.");
    let blocks: Vec<_> = response.blocks().map(|(_, block)| block.clone()).collect();
    assert_eq!(kinds(&response), [Text, Citation, Text, Citation, Citation]);
    assert_eq!(blocks[0].provider_data()[0].value, json!({"citation": at_page}));
    assert_eq!(blocks[2].provider_data()[0].value, json!({"citation": on_web}));
    let BlockContent::Citation(cited) = blocks[3].content() else { panic!("a citation") };
    assert_eq!((cited.url.as_deref(), cited.title.as_deref()), (Some("https://a.example"), Some("A")));
    let BlockContent::Citation(cited) = blocks[1].content() else { panic!("a citation") };
    assert_eq!((cited.title.as_deref(), cited.quote.as_deref()), (Some("t"), Some("q")));
    let BlockContent::Citation(cited) = blocks[4].content() else { panic!("a citation") };
    assert_eq!((cited.url.as_deref(), cited.title.as_deref()), (Some("s"), Some("u")));
}

#[test]
fn whole_answer_is_read_like_a_streamed_one() {
    let content = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "Oslo"}},
        {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
        {"type": "redacted_thinking", "data": "eA=="},
    ]);
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 9, "output_tokens": 5}});
    let (_, whole) = result_of(whole.to_string().as_bytes());
    let streamed = response_to(&[
        start(),
        open(0, json!({"type": "thinking", "thinking": ""})),
        think(0, "Hm."),
        sign(0, "c2ln"),
        stop(0),
        text(1),
        say(1, "I look."),
        stop(1),
        tool(2, "toolu_1", "look"),
        input(2, r#"{"at":"Oslo"}"#),
        stop(2),
        tool(3, "toolu_2", "now"),
        stop(3),
        open(4, json!({"type": "redacted_thinking", "data": "eA=="})),
        stop(4),
        finish("tool_use"),
        end(),
    ]);
    assert_eq!(whole.expect("an answer"), streamed);
    assert_eq!(runnable(&streamed).len(), 2);
}

#[test]
fn fields_of_a_call_that_are_not_known_stay_with_it() {
    let call = json!({"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "direct"}, "x": null});
    let response = response_to(&[start(), open(0, call), stop(0), finish("tool_use"), end()]);
    let (_, block) = response.blocks().next().expect("a block");
    assert_eq!(block.provider_data()[0].value, json!({"caller": {"type": "direct"}}));
}

#[test]
fn counts_are_cumulative_and_include_the_cache() {
    let mut begun = start();
    begun["message"]["usage"] = json!({"input_tokens": 9, "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20, "output_tokens": 1});
    let mut finished = finish("end_turn");
    finished["usage"] = json!({"input_tokens": 10, "output_tokens": 30, "cache_read_input_tokens": null,
        "output_tokens_details": {"thinking_tokens": 12}, "server_tool_use": {"web_search_requests": 1}});
    let response = response_to(&[begun, text(0), say(0, "a"), stop(0), finished, end()]);
    let usage = response.usage.as_ref().expect("counts");
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(130), Some(30)));
    assert_eq!((usage.cached_input_tokens, usage.cache_write_tokens), (Some(100), Some(20)));
    assert_eq!((usage.reasoning_tokens, usage.total()), (Some(12), Some(160)));
}

/// The counts of an answer with these in its beginning and at its end: input, output, read from the cache.
fn counted(first: Value, last: Value) -> [Option<u64>; 3] {
    let mut begun = start();
    begun["message"]["usage"] = first;
    let mut finished = finish("end_turn");
    finished["usage"] = last;
    let response = response_to(&[begun, text(0), say(0, "a"), stop(0), finished, end()]);
    let usage = response.usage.as_ref().expect("counts");
    [usage.input_tokens, usage.output_tokens, usage.cached_input_tokens]
}

#[test]
fn lower_count_takes_nothing_back() {
    let first = || json!({"input_tokens": 9, "cache_read_input_tokens": 100, "output_tokens": 1});
    for last in [
        json!({"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}),
        json!({"input_tokens": 3, "cache_read_input_tokens": 50, "output_tokens": 5}),
        json!({"input_tokens": 0, "cache_read_input_tokens": 100, "output_tokens": 5}),
        json!({"output_tokens": 5}),
    ] {
        assert_eq!(counted(first(), last.clone()), [Some(109), Some(5), Some(100)], "{last}");
    }
    assert_eq!(
        counted(
            json!({"input_tokens": 0, "output_tokens": 0}),
            json!({"input_tokens": 7, "output_tokens": 3})
        ),
        [Some(7), Some(3), None]
    );
}

/// A compaction is billed, and the counts of the answer leave it out.
#[test]
fn steps_of_an_answer_count_together() {
    let first = || json!({"input_tokens": 9, "output_tokens": 1});
    let compaction = json!({"type": "compaction", "input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": 7});
    let message =
        json!({"type": "message", "input_tokens": 9, "output_tokens": 16, "cache_read_input_tokens": 0});
    let last = |steps: Value| json!({"input_tokens": 9, "output_tokens": 16, "iterations": steps});
    assert_eq!(counted(first(), last(json!([compaction, message]))), [Some(1016), Some(66), Some(7)]);
    // The list may be missing, incomplete or odd.
    for steps in [json!(null), json!([]), json!([{"type": "message", "input_tokens": 9}]), json!([7, "x"])] {
        assert_eq!(counted(first(), last(steps))[..2], [Some(9), Some(16)]);
    }
}

/// A call whose block has no end runs only under a word that is known to leave it whole.
#[test]
fn law_t6_unknown_stop_reason_ends_no_call() {
    for (written, reason, runs) in [
        ("end_turn", FinishReason::Stop, true),
        ("stop_sequence", FinishReason::Stop, true),
        ("tool_use", FinishReason::ToolCalls, true),
        ("pause_turn", FinishReason::Paused, true),
        ("compaction", FinishReason::Paused, true),
        ("max_tokens", FinishReason::Length, false),
        ("model_context_window_exceeded", FinishReason::Length, false),
        ("refusal", FinishReason::Refusal, false),
        ("new_reason", FinishReason::Other("new_reason".into()), false),
    ] {
        let cut = response_to(&[start(), tool(0, "t", "f"), input(0, "{\"a\":1}"), finish(written), end()]);
        assert_eq!((&cut.finish.reason, !runnable(&cut).is_empty()), (&reason, runs), "{written}");
    }
    let ended = [start(), tool(0, "t", "f"), input(0, "{\"a\":1}"), stop(0), finish("new_reason"), end()];
    assert_eq!(runnable(&response_to(&ended)).len(), 1);
}

#[test]
fn invalid_values_count_as_absent() {
    let response = response_to(&[
        json!({"type": "message_start"}),
        json!({"type": "content_block_start", "index": "0", "content_block": {"type": "text", "text": {}}}),
        json!({"type": "content_block_delta", "index": 0.0, "delta": {"type": "text_delta", "text": "a"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": null}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "new": 1}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ["b"]}}),
        json!({"type": "content_block_stop"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": -1}}),
        end(),
    ]);
    assert_eq!(response.text(), "a");
    assert_eq!(response.usage, None);
    let error = result_of(b"event: message_start\ndata: {\"type\":\n\n").1.expect_err("no JSON");
    assert!(matches!(error.kind(), ErrorKind::Protocol { .. }));
}

#[test]
fn values_that_no_reader_represents_cost_no_answer() {
    let body = String::from_utf8(sse(&[start(), text(0), say(0, "a"), stop(0), finish("end_turn"), end()]));
    let body = body.expect("text");
    let odd = body
        .replace("\"output_tokens\":1", "\"output_tokens\":1e400")
        .replace("\"text\":\"a\"", "\"text\":\"a\\ud83d!\"");
    assert_ne!(odd, body);
    let response = result_of(odd.as_bytes()).1.expect("an answer");
    assert_eq!(response.text(), "a\u{FFFD}!");
}

/// The last events of an answer, with these reports about it.
fn reported(reason: &str, reports: &Value) -> [Value; 2] {
    let mut last = finish(reason);
    last["delta"]
        .as_object_mut()
        .expect("an object")
        .extend(reports.as_object().cloned().expect("an object"));
    [last, end()]
}

#[test]
fn reports_about_a_message_are_data_of_its_last_block() {
    let reports = json!({"container": {"id": "container_1", "expires_at": "2026-04-24T11:13:36Z"},
        "stop_details": {"type": "refusal", "category": "cyber", "explanation": "No."}});
    let run = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "bash", "input": {}});
    let blocks: [(Vec<Value>, &str); 3] = [
        (vec![text(0), say(0, "Hi"), stop(0)], "end_turn"),
        (vec![text(0), say(0, "Hi"), stop(0), open(1, run), stop(1)], "pause_turn"),
        (vec![tool(0, "t", "f"), input(0, "{}"), stop(0)], "tool_use"),
    ];
    for (blocks, reason) in blocks {
        let events = [vec![start()], blocks, reported(reason, &reports).to_vec()].concat();
        let response = response_to(&events);
        let (last, others) = response.message().blocks().split_last().expect("a block");
        let data: Vec<_> = last.provider_data().iter().map(|data| &data.value).collect();
        assert_eq!(data, [&reports], "{reason}");
        assert!(others.iter().all(|block| block.provider_data().is_empty()));
    }
    // An answer of nothing stays empty; the reason for a refusal is kept.
    let nothing = response_to(
        &[vec![start()], reported("end_turn", &json!({"container": {"id": "c"}})).to_vec()].concat(),
    );
    assert_eq!((nothing.message().blocks().len(), &nothing.finish.reason), (0, &FinishReason::Empty));
    let details = json!({"stop_details": {"type": "refusal", "explanation": "No."}});
    let refused = response_to(&[vec![start()], reported("refusal", &details).to_vec()].concat());
    assert_eq!(refused.message().blocks()[0].provider_data()[0].value, details);
    assert!(refused.message().is_empty_answer() && refused.finish.reason == FinishReason::Refusal);
}

#[test]
fn blocks_without_a_start_or_an_end_are_kept() {
    let response = response_to(&[
        start(),
        say(0, "a"),
        say(0, "b"),
        tool(1, "t", "f"),
        input(1, "{\"a\":1}"),
        text(2),
        say(2, "c"),
        finish("tool_use"),
        end(),
    ]);
    assert_eq!(response.text(), "abc");
    assert_eq!(runnable(&response), [("f".to_owned(), "{\"a\":1}".to_owned())]);
}

#[test]
fn event_name_counts_if_the_type_is_missing() {
    let mut events = [start(), text(0), say(0, "a"), stop(0), finish("end_turn"), end()];
    let body: Vec<u8> = events
        .iter_mut()
        .flat_map(|event| {
            let name = event["type"].take();
            format!("event: {}\ndata: {event}\n\n", name.as_str().unwrap_or_default()).into_bytes()
        })
        .collect();
    assert_eq!(result_of(&body).1.expect("an answer").text(), "a");
}

/// Pieces belong to the block of their number, or else to the last one; a new block of the same number is another one.
#[test]
fn q56_numbers_of_blocks_and_pieces_may_differ() {
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    for (starts, pieces) in
        [([0, 1, 2, 3], [0, 1, 2, 3]), ([2, 3, 4, 5], [3, 4, 5, 6]), ([0, 1, 2, 3], [0; 4]), ([0; 4], [0; 4])]
    {
        let [one, two, three, four] = pieces;
        let response = response_to(&[
            start(),
            text(starts[0]),
            say(one, "a"),
            say(one, "b"),
            stop(one),
            tool(starts[1], "t", "f"),
            input(two, "{\"a\":"),
            input(two, "12}"),
            stop(two),
            open(starts[2], search.clone()),
            input(three, "{\"q\":"),
            input(three, "34}"),
            stop(three),
            text(starts[3]),
            say(four, "c"),
            stop(four),
            finish("tool_use"),
            end(),
        ]);
        assert_eq!(kinds(&response), [Text, ToolCall, BlockKind::Opaque, Text], "{starts:?} {pieces:?}");
        assert_eq!(
            (response.text().as_str(), runnable(&response)),
            ("abc", vec![("f".to_owned(), "{\"a\":12}".to_owned())])
        );
        assert_eq!(opaque(&response)[0].1["input"], json!({"q": 34}));
    }
}
