//! Quirks of servers that speak the Messages API, by their numbers.

use advisor_core::BlockKind::{Opaque, Text, ToolCall};

use super::*;

/// An answer with one block, and then one call with these events.
fn call_of(events: impl IntoIterator<Item = Value>) -> Vec<Value> {
    [start()].into_iter().chain(events).chain([finish("tool_use"), end()]).collect()
}

fn arguments(response: &ChatResponse) -> Vec<String> {
    runnable(response).into_iter().map(|(_, arguments)| arguments).collect()
}

#[test]
fn q21_q25_q62_arguments_come_in_pieces_or_else_in_the_start() {
    let call = |input: Value| json!({"type": "tool_use", "id": "t", "name": "f", "input": input});
    let mut absent = call(json!({}));
    absent.as_object_mut().expect("an object").remove("input");
    for (block, pieces, expected) in [
        (call(json!({})), vec![], ""),
        (call(json!({})), vec!["", ""], ""),
        (call(json!({})), vec!["{}", "{\"a\":", "1}"], "{\"a\":1}"),
        (call(json!({"a": 1})), vec![], "{\"a\":1}"),
        (call(json!({"a": 1})), vec!["", "{\"a\":", " 1}"], "{\"a\": 1}"),
        (absent.clone(), vec![], ""),
        (absent, vec!["{\"a\":1}"], "{\"a\":1}"),
        (call(Value::Null), vec!["{\"a\":1}"], "{\"a\":1}"),
        (call(json!("")), vec![], ""),
        (call(json!({})), vec!["{\"a\": tru", "e,}"], "{\"a\": true,}"),
    ] {
        let pieces: Vec<Value> = pieces.into_iter().map(|piece| input(0, piece)).collect();
        for end in [vec![stop(0)], vec![]] {
            let events = [vec![open(0, block.clone())], pieces.clone(), end].concat();
            assert_eq!(arguments(&response_to(&call_of(events))), [expected], "{block} {pieces:?}");
        }
    }
}

#[test]
fn q12_q10_call_without_an_id_gets_one() {
    for block in [
        json!({"type": "tool_use", "name": "f", "input": {}}),
        json!({"type": "tool_use", "id": "", "name": "f", "input": {}}),
    ] {
        let response = response_to(&call_of([open(0, block), input(0, "{}"), stop(0)]));
        assert!(!response.tool_calls().next().expect("a call").1.id.is_empty());
    }
}

#[test]
fn q28_calls_decide_and_not_the_reason() {
    let events = [start(), tool(0, "t", "f"), input(0, "{}"), stop(0), finish("end_turn"), end()];
    assert_eq!(arguments(&response_to(&events)), ["{}"]);
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
        assert_eq!(kinds(&response), [Text, ToolCall, Opaque, Text], "{starts:?} {pieces:?}");
        assert_eq!((response.text().as_str(), arguments(&response)), ("abc", vec!["{\"a\":12}".to_owned()]));
        assert_eq!(opaque(&response)[0].1["input"], json!({"q": 34}));
    }
}

#[test]
fn q57_interleaved_blocks_come_together() {
    let response = response_to(&[
        start(),
        text(0),
        say(0, "a"),
        tool(1, "t", "f"),
        input(1, "{\"a\":"),
        say(0, "b"),
        tool(2, "u", "g"),
        input(2, "{\"b\":"),
        input(1, "1}"),
        stop(1),
        say(0, "c"),
        input(2, "2}"),
        stop(2),
        stop(0),
        finish("tool_use"),
        end(),
    ]);
    assert_eq!(kinds(&response), [Text, ToolCall, ToolCall]);
    assert_eq!(response.text(), "abc");
    assert_eq!(arguments(&response), ["{\"a\":1}", "{\"b\":2}"]);
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
    assert_eq!(arguments(&response), ["{\"a\":1}"]);
}

#[test]
fn q71_unknown_events_and_fields_are_ignored() {
    let mut said = say(0, "a");
    said["new"] = json!({"text": "x"});
    said["delta"]["role"] = "assistant".into();
    let response = response_to(&[
        json!({"type": "new_event", "index": 0, "text": "x"}),
        start(),
        text(0),
        said.clone(),
        json!({"type": "vendor.progress", "message": "working", "status": "running"}),
        said,
        stop(0),
        finish("end_turn"),
        end(),
    ]);
    assert_eq!(response.text(), "aa");
}

#[test]
fn q73_repeated_beginning_changes_nothing() {
    let events = [text(0), say(0, "a"), stop(0), finish("end_turn"), end()];
    let once = response_to(&[&[start()], &events[..]].concat());
    assert_eq!(response_to(&[&[start(), start()], &events[..]].concat()), once);
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

#[test]
fn q37_q39_comments_and_line_ends_do_not_matter() {
    let events = [start(), ping(), text(0), say(0, "a"), say(0, "b"), stop(0), finish("end_turn"), end()];
    let plain = String::from_utf8(sse(&events)).expect("text");
    let expected = response_to(&events);
    for body in [
        plain.replace('\n', "\r\n"),
        plain.replace('\n', "\r"),
        plain.replace("data: ", "data:"),
        plain.replace("event: ping", ": keep-alive\n\nevent: ping"),
        plain.trim_end().to_owned(),
    ] {
        assert_eq!(result_of(body.as_bytes()).1.expect("an answer"), expected, "{body}");
    }
}

/// Gateways that count in UTF-16 cut a character between two events.
#[test]
fn law_s5_character_cut_between_events_stays_whole() {
    let events = [
        start(),
        // The first half may come in the event that begins the block.
        open(0, json!({"type": "text", "text": "a<HIGH>"})),
        ping(),
        say(0, "<LOW>b<HIGH>"),
        say(0, "<LOW>c<HIGH>"),
        stop(0),
        tool(1, "t", "f"),
        input(1, "{\"a\":\"<HIGH>"),
        input(1, "<LOW>\"}"),
        stop(1),
        finish("tool_use"),
        end(),
    ];
    let body = String::from_utf8(sse(&events)).expect("text");
    let body = body.replace("<HIGH>", "\\ud83d").replace("<LOW>", "\\ude00");
    let response = result_of(body.as_bytes()).1.expect("an answer");
    assert_eq!(response.text(), "a😀b😀c");
    assert_eq!(runnable(&response), [("f".to_owned(), "{\"a\":\"😀\"}".to_owned())]);
}
