//! Quirks of servers that speak the Messages API, by their numbers.

use advisor_core::BlockKind::{Text, ToolCall};

use super::*;

/// An answer with one block, and then one call with these events.
fn call_of(events: impl IntoIterator<Item = Value>) -> Vec<Value> {
    [start()].into_iter().chain(events).chain([finish("tool_use"), end()]).collect()
}

fn arguments(response: &ChatResponse) -> Vec<String> {
    runnable(response).into_iter().map(|(_, arguments)| arguments).collect()
}

#[test]
fn q21_q25_call_without_arguments_has_none() {
    for pieces in [vec![], vec![input(0, "")], vec![input(0, ""), input(0, "")]] {
        let events = [tool(0, "t", "now")].into_iter().chain(pieces).chain([stop(0)]);
        let response = response_to(&call_of(events));
        assert_eq!(arguments(&response), [""]);
        let (_, call) = response.tool_calls().next().expect("a call");
        assert_eq!(call.parsed_arguments().expect("an object"), json!({}));
    }
}

#[test]
fn q22_empty_object_before_arguments_is_dropped() {
    let pieces = [tool(0, "t", "f"), input(0, "{}"), input(0, "{\"a\":"), input(0, "1}"), stop(0)];
    assert_eq!(arguments(&response_to(&call_of(pieces))), ["{\"a\":1}"]);
}

#[test]
fn q23_input_in_the_start_counts_if_no_other_comes() {
    let call = |input: Value| open(0, json!({"type": "tool_use", "id": "t", "name": "f", "input": input}));
    let whole = response_to(&call_of([call(json!({"a": 1})), stop(0)]));
    assert_eq!(arguments(&whole), ["{\"a\":1}"]);
    let without_end = response_to(&call_of([call(json!({"a": 1}))]));
    assert_eq!(arguments(&without_end), ["{\"a\":1}"]);
    let both = [call(json!({"a": 1})), input(0, ""), input(0, "{\"a\":"), input(0, " 1}"), stop(0)];
    assert_eq!(arguments(&response_to(&call_of(both))), ["{\"a\": 1}"]);
}

#[test]
fn q24_missing_input_is_none() {
    for block in [
        json!({"type": "tool_use", "id": "t", "name": "f"}),
        json!({"type": "tool_use", "id": "t", "name": "f", "input": null}),
        json!({"type": "tool_use", "id": "t", "name": "f", "input": ""}),
    ] {
        let response = response_to(&call_of([open(0, block.clone()), input(0, "{\"a\":1}"), stop(0)]));
        assert_eq!(arguments(&response), ["{\"a\":1}"]);
        assert_eq!(arguments(&response_to(&call_of([open(0, block), stop(0)]))), [""]);
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

#[test]
fn q62_arguments_that_are_no_json_are_kept() {
    let response =
        response_to(&call_of([tool(0, "t", "f"), input(0, "{\"a\": tru"), input(0, "e,}"), stop(0)]));
    assert_eq!(arguments(&response), ["{\"a\": true,}"]);
    assert!(response.tool_calls().next().expect("a call").1.parsed_arguments().is_err());
}

#[test]
fn q56_deltas_of_another_number_belong_to_the_open_block() {
    let response = response_to(&[
        start(),
        text(2),
        say(3, "a"),
        say(3, "b"),
        say(3, "c"),
        stop(3),
        tool(3, "t", "f"),
        input(4, "{\"a\":"),
        input(4, "1"),
        input(4, "}"),
        stop(4),
        text(4),
        say(4, "d"),
        say(4, "e"),
        stop(4),
        finish("tool_use"),
        end(),
    ]);
    assert_eq!(kinds(&response), [Text, ToolCall, Text]);
    assert_eq!((response.text().as_str(), arguments(&response)), ("abcde", vec!["{\"a\":1}".to_owned()]));
}

#[test]
fn deltas_that_always_have_one_number_belong_to_the_open_block() {
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let response = response_to(&[
        start(),
        text(0),
        say(0, "a"),
        say(0, "b"),
        say(0, "c"),
        stop(0),
        text(1),
        say(0, "d"),
        say(0, "e"),
        stop(0),
        tool(2, "t", "f"),
        input(0, "{\"a\":"),
        input(0, "1"),
        input(0, "2}"),
        stop(0),
        open(3, search),
        input(0, "{\"q\":"),
        input(0, "3"),
        input(0, "4}"),
        stop(0),
        finish("tool_use"),
        end(),
    ]);
    assert_eq!((response.text().as_str(), arguments(&response)), ("abcde", vec!["{\"a\":12}".to_owned()]));
    assert_eq!(opaque(&response)[0].1["input"], json!({"q": 34}));
    assert_eq!(response.blocks().filter(|(_, block)| block.kind() == Text).count(), 2);
}

#[test]
fn blocks_that_all_have_one_number_stay_apart() {
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let response = response_to(&[
        start(),
        text(0),
        say(0, "a"),
        say(0, "b"),
        say(0, "c"),
        stop(0),
        tool(0, "t", "f"),
        input(0, "{\"a\":"),
        input(0, "1"),
        input(0, "2}"),
        stop(0),
        open(0, search),
        input(0, "{\"q\":"),
        input(0, "3"),
        input(0, "4}"),
        stop(0),
        tool(0, "u", "g"),
        input(0, "{\"a\":"),
        input(0, "5"),
        input(0, "6}"),
        stop(0),
        finish("tool_use"),
        end(),
    ]);
    assert_eq!(response.text(), "abc");
    assert_eq!(arguments(&response), ["{\"a\":12}", "{\"a\":56}"]);
    assert_eq!(opaque(&response)[0].1["input"], json!({"q": 34}));
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
