//! Deviations of gateways and servers, each as it was reported.

use super::*;

#[test]
fn q59_arguments_only_at_the_end() {
    // lidge-jun/opencodex#4652.
    let whole = json!({"type": "response.function_call_arguments.done", "item_id": "fc_0", "output_index": 0,
        "arguments": "{\"a\":1}"});
    let start = added(0, call("0", "add", ""));
    let end = done(0, call("0", "add", "{\"a\":1}"));
    let expected = ["add({\"a\":1})"];
    assert_eq!(blocks(&[start.clone(), whole.clone(), end.clone(), completed(vec![])]), expected);
    assert_eq!(blocks(&[start.clone(), whole.clone(), completed(vec![])]), expected);
    assert_eq!(blocks(&[start, end.clone(), completed(vec![])]), expected);
    assert_eq!(blocks(&[end, completed(vec![])]), expected);
    // With a name, as some servers send it, and without any item.
    let named = json!({"type": "response.function_call_arguments.done", "output_index": 0, "name": "add",
        "arguments": {"a": 1}});
    assert_eq!(blocks(&[named, completed(vec![])]), expected);
}

#[test]
fn ids_that_change_in_every_event() {
    // GitHub Copilot: only the index is stable.
    let delta = |id: i64, index: i64, delta: &str| {
        json!({"type": "response.output_text.delta", "item_id": format!("x{id}"),
        "output_index": index, "content_index": 0, "delta": delta})
    };
    let end = |id: i64| {
        json!({"type": "response.output_text.done", "item_id": format!("x{id}"), "output_index": 1,
        "content_index": 0, "text": "Hello"})
    };
    let events = [
        added(0, json!({"type": "reasoning", "id": "x1", "summary": []})),
        done(0, json!({"type": "reasoning", "id": "x2", "summary": []})),
        added(1, json!({"type": "message", "id": "x3", "content": []})),
        delta(4, 1, "Hel"),
        delta(5, 1, "lo"),
        end(6),
        done(1, message("x7", "Hello")),
        completed(vec![json!({"type": "reasoning", "id": "x8", "summary": []}), message("x9", "Hello")]),
    ];
    assert_eq!(blocks(&events), ["reasoning: ", "text: Hello"]);
}

#[test]
fn no_index_and_ends_after_everything() {
    // llama.cpp: items are known by their ids, and all of them end last.
    let start = |item: Value| json!({"type": "response.output_item.added", "item": item});
    let end = |item: Value| json!({"type": "response.output_item.done", "item": item});
    let say = |delta: &str| json!({"type": "response.output_text.delta", "item_id": "msg_1", "delta": delta});
    let write = |id: &str, delta: &str| json!({"type": "response.function_call_arguments.delta", "item_id": id, "delta": delta});
    let events = [
        start(json!({"type": "message", "id": "msg_1", "content": []})),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}}),
        say("Let me"),
        say(" check"),
        start(call("a", "time", "")),
        write("fc_a", "{\"tz\":"),
        write("fc_a", "1}"),
        start(call("b", "time", "")),
        write("fc_b", "{}"),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "text": "Let me check"}),
        json!({"type": "response.content_part.done", "item_id": "msg_1", "part": {"type": "output_text", "text": "Let me check"}}),
        end(message("msg_1", "Let me check")),
        end(call("a", "time", "{\"tz\":1}")),
        end(call("b", "time", "{}")),
        completed(vec![
            message("msg_1", "Let me check"),
            call("a", "time", "{\"tz\":1}"),
            call("b", "time", "{}"),
        ]),
    ];
    assert_eq!(blocks(&events), ["text: Let me check", "time({\"tz\":1})", "time({})"]);
}

#[test]
fn content_that_begins_at_one() {
    // Bedrock counts the parts of a message on from those of the reasoning before it.
    let event = |kind: &str, key: &str| {
        let mut event = json!({"type": kind, "item_id": "msg_1", "output_index": 1, "content_index": 1});
        event[key] = json!("Hi");
        event
    };
    let events = [
        event("response.output_text.delta", "delta"),
        event("response.output_text.done", "text"),
        done(1, message("msg_1", "Hi")),
        completed(vec![json!({"type": "reasoning", "summary": []}), message("msg_1", "Hi")]),
    ];
    assert_eq!(blocks(&events), ["text: Hi", "reasoning: "]);
}

#[test]
fn parts_that_did_not_stream_are_taken_from_the_whole_item() {
    let part = |text: &str| json!({"type": "output_text", "text": text});
    let item =
        json!({"type": "message", "id": "msg_0", "content": [part("a"), part(""), part("b"), part("c")]});
    let delta = |place: i64, delta: &str| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": place, "delta": delta});
    let summary = |text: &str| json!({"type": "summary_text", "text": text});
    let reasoning =
        json!({"type": "reasoning", "id": "rs_1", "summary": [summary("x"), summary("y"), summary("z")]});
    let thought = |place: i64, delta: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 1, "summary_index": place, "delta": delta});
    let events = [
        delta(0, "a"),
        delta(3, "c"),
        thought(1, "y"),
        done(0, item.clone()),
        done(1, reasoning.clone()),
        completed(vec![item, reasoning]),
    ];
    assert_eq!(blocks(&events), ["text: a", "text: c", "reasoning: y\n\nx\n\nz", "text: b"]);
}

#[test]
fn raw_reasoning_that_ends_after_the_text() {
    // OpenRouter, whose snapshot has other ids than the stream.
    let delta = |delta: &str| {
        json!({"type": "response.reasoning_text.delta", "item_id": "rs_tmp_1", "output_index": 0,
        "content_index": 0, "delta": delta})
    };
    let item = |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]});
    let events = [
        added(0, json!({"type": "reasoning", "id": "rs_tmp_1", "summary": []})),
        delta("H"),
        delta("m."),
        text(1, "4"),
        done(1, message("msg_1", "4")),
        json!({"type": "response.reasoning_text.done", "item_id": "rs_tmp_1", "output_index": 0, "content_index": 0, "text": "Hm."}),
        done(0, item("rs_tmp_1")),
        completed(vec![item("rs_tmp_2"), message("msg_tmp_2", "4")]),
    ];
    assert_eq!(blocks(&events), ["reasoning: Hm.", "text: 4"]);
}

#[test]
fn law_t6_calls_of_one_index_stay_apart() {
    let write = |id: &str, delta: &str| json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": 0, "delta": delta});
    let events = [
        added(0, json!({"type": "message", "id": "msg_0", "content": []})),
        text(0, "Hi"),
        added(0, call("a", "f", "")),
        added(0, call("b", "f", "")),
        write("fc_a", "{\"x\":"),
        write("fc_b", "{\"x\":"),
        write("fc_a", "1}"),
        write("fc_b", "2}"),
        done(0, message("msg_0", "Hi")),
        done(0, call("a", "f", "{\"x\":1}")),
        done(0, call("b", "f", "{\"x\":2}")),
        completed(vec![message("msg_0", "Hi"), call("a", "f", "{\"x\":1}"), call("b", "f", "{\"x\":2}")]),
    ];
    assert_eq!(blocks(&events), ["text: Hi", "f({\"x\":1})", "f({\"x\":2})"]);
}

#[test]
fn law_t6_calls_without_items_ids_stay_apart() {
    let item = |call_id: &str, arguments: &str| json!({"type": "function_call", "call_id": call_id, "name": "f", "arguments": arguments});
    let start = |call_id: &str| json!({"type": "response.output_item.added", "item": item(call_id, "")});
    let end = |call_id: &str, arguments: &str| json!({"type": "response.output_item.done", "item": item(call_id, arguments)});
    let unnumbered =
        [start("a"), start("b"), end("a", "{\"x\":1}"), end("b", "{\"x\":2}"), completed(vec![])];
    assert_eq!(blocks(&unnumbered), ["f({\"x\":1})", "f({\"x\":2})"]);
    // The same index, and only one of them announced.
    let numbered = [
        added(0, item("a", "")),
        done(0, item("b", "{\"x\":2}")),
        done(0, item("a", "{\"x\":1}")),
        completed(vec![item("a", "{\"x\":1}"), item("b", "{\"x\":2}")]),
    ];
    assert_eq!(blocks(&numbered), ["f({\"x\":1})", "f({\"x\":2})"]);
}

#[test]
fn announcement_that_is_repeated_adds_nothing() {
    let start = |item: Value| json!({"type": "response.output_item.added", "item": item});
    let write = json!({"type": "response.function_call_arguments.delta", "item_id": "fc_a", "delta": "{}"});
    let without_index =
        [start(call("a", "f", "")), start(call("a", "f", "")), write.clone(), completed(vec![])];
    assert_eq!(blocks(&without_index), ["f({})"]);
    let with_index = [added(0, call("a", "f", "")), added(0, call("a", "f", "")), write, completed(vec![])];
    assert_eq!(blocks(&with_index), ["f({})"]);
}

#[test]
fn neither_index_nor_id() {
    let delta = |delta: &str| json!({"type": "response.output_text.delta", "delta": delta});
    let start = json!({"type": "response.output_item.added", "item": {"type": "message"}});
    let end = |text: &str| json!({"type": "response.output_item.done", "item": {"type": "message", "content": [{"type": "output_text", "text": text}]}});
    let events = [
        start.clone(),
        delta("o"),
        delta("ne"),
        end("one"),
        start,
        delta("t"),
        delta("wo"),
        end("two"),
        completed(vec![]),
    ];
    assert_eq!(blocks(&events), ["text: one", "text: two"]);
}

#[test]
fn snapshot_in_another_order_repeats_nothing() {
    let events = [
        added(0, call("a", "f", "")),
        arguments(0, "{\"x\":1}"),
        completed(vec![call("b", "g", "{\"y\":2}"), call("0", "h", "{}"), call("a", "f", "{\"x\":1}")]),
    ];
    assert_eq!(blocks(&events), ["f({\"x\":1})", "g({\"y\":2})", "h({})"]);
}

#[test]
fn values_of_other_forms_are_read_leniently() {
    let events = [
        json!({"type": "response.output_text.delta", "output_index": "0", "content_index": 0.0, "item_id": 7, "delta": "Hi"}),
        json!({"type": "response.output_text.done", "output_index": "0", "content_index": 0, "item_id": 7, "text": null}),
        json!({"type": "response.output_item.done", "output_index": "0", "item": null}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": "words"}),
        json!({"type": "response.completed", "response": {"output": {"no": "list"}, "usage": []}}),
    ];
    assert_eq!(outcome(&events).expect("an answer").text(), "Hi");
}

#[test]
fn json_that_the_usual_reader_refuses_is_repaired() {
    // A lone surrogate, a repeated key and a number out of range.
    let body = concat!(
        r#"data: {"type":"response.output_text.delta","output_index":0,"delta":"a\ud800"}"#,
        "\n\n",
        r#"data: {"type":"response.output_text.delta","output_index":0,"delta":"b","delta":"c"}"#,
        "\n\n",
        r#"data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","name":"f","name":"g","arguments":"{}","x":1e999}]}}"#,
        "\n\n",
    );
    let outcome = read(body);
    assert_eq!(blocks_of(&outcome), ["text: a\u{FFFD}c", "g({})"]);
}
