//! Calls, whole and in pieces.

use advisor_core::ToolCall;

use super::*;

fn call(call: Value) -> Value {
    parts(json!([{ "functionCall": call }]))
}

fn calls(events: &[Value]) -> Vec<ToolCall> {
    let ReadAnswer { response, .. } = read(events);
    response.expect("an answer").tool_calls().map(|(_, call)| call.clone()).collect()
}

/// A call in pieces, without its end.
fn pieces(name: &str, pieces: &[Value]) -> Vec<Value> {
    let begin = call(json!({"name": name, "willContinue": true}));
    let more = pieces.iter().map(|piece| call(json!({"partialArgs": [piece], "willContinue": true})));
    [begin].into_iter().chain(more).collect()
}

fn string(path: &str, text: &str, continues: bool) -> Value {
    let mut piece = json!({"jsonPath": path, "stringValue": text});
    if continues {
        piece["willContinue"] = true.into();
    }
    piece
}

#[test]
fn q12_q28_whole_calls_keep_ids_order_and_spelling() {
    let one = json!({"functionCall": {"name": "add", "args": {"b": 3, "a": [1.50, "x  y", {"c": null}]}, "id": "8hd"}, "thoughtSignature": "sig"});
    let two = json!({"functionCall": {"name": "add", "args": {}}});
    let ReadAnswer { chunks, response, .. } =
        read(&[text("Wait."), parts(json!([one, two])), call(json!({"name": "now"})), text("."), stop()]);
    let response = response.expect("an answer");
    let blocks = response.message().blocks();
    assert_eq!(blocks.iter().map(kind_of).collect::<Vec<_>>(), ["text", "call", "call", "call", "text"]);
    let calls: Vec<_> = response.tool_calls().map(|(_, call)| call).collect();
    assert_eq!(calls[0].id, "8hd");
    assert!(calls[1].id.starts_with("call_") && calls[1].id != calls[2].id);
    assert_eq!((calls[0].name.as_str(), calls[2].name.as_str()), ("add", "now"));
    assert!(calls.iter().all(|call| call.complete));
    assert_eq!(calls[0].parsed_arguments().expect("JSON"), json!({"b": 3, "a": [1.50, "x  y", {"c": null}]}));
    assert_eq!(calls[2].parsed_arguments().expect("JSON"), json!({}));
    // The first parallel call alone is signed.
    assert_eq!(data(&blocks[1]), [json!({"thoughtSignature": "sig"})]);
    assert_eq!((data(&blocks[2]).len(), data(&blocks[3]).len()), (0, 0));
    // A whole call ends at once: its block closes before the text after it opens.
    let closed = |chunk: &Chunk| matches!(chunk, Chunk::Closed { block, .. } if block.position() == 1);
    let opened = |chunk: &Chunk| matches!(chunk, Chunk::Opened { block, .. } if block.position() == 4);
    assert!(chunks.iter().position(closed) < chunks.iter().position(opened));
}

#[test]
fn arguments_in_pieces_are_one_text() {
    let mut events = pieces(
        "paint",
        &[
            string("$.title", "A \"qu", true),
            string("$.title", "o\\te\"\n", true),
            string("$.title", "d", true),
            string("$.title", " é😀", true),
            string("$.title", "", false),
            json!({"jsonPath": "$.size", "numberValue": 1.5}),
            json!({"jsonPath": "$.deep.list[0].name", "stringValue": "n"}),
            json!({"jsonPath": "$.deep.list[0].flag", "boolValue": false}),
            json!({"jsonPath": "$.deep.list[1].nothing", "nullValue": "NULL_VALUE"}),
            json!({"jsonPath": "$.deep['odd key.']", "numberValue": -2}),
            json!({"jsonPath": "$.last[0]", "stringValue": ""}),
        ],
    );
    events.extend([call(json!({})), stop()]);
    let calls = calls(&events);
    let expected = json!({
        "title": "A \"quo\\te\"\nd é😀", "size": 1.5,
        "deep": {"list": [{"name": "n", "flag": false}, {"nothing": null}], "odd key.": -2}, "last": [""],
    });
    assert_eq!(calls[0].parsed_arguments().expect(&calls[0].arguments), expected);
    assert!(calls[0].complete && calls.len() == 1);
}

#[test]
fn calls_in_pieces_follow_one_another() {
    let mut events = vec![call(json!({"name": "read_theme"}))];
    for id in ["A", "B", "C"] {
        let long: Vec<Value> = (0..6).map(|n| string("$.id", &format!("{id}{n}"), true)).collect();
        events.extend(pieces("read_screen", &long));
        events.extend([
            call(json!({"partialArgs": [string("$.id", "", false)], "willContinue": true})),
            call(json!({})),
        ]);
    }
    events.push(stop());
    let calls = calls(&events);
    let arguments: Vec<_> = calls.iter().map(|call| call.arguments.as_str()).collect();
    let expected = |id: &str| format!("{{\"id\":\"{id}0{id}1{id}2{id}3{id}4{id}5\"}}");
    assert_eq!(arguments, ["", &expected("A"), &expected("B"), &expected("C")]);
    assert!(calls.iter().all(|call| call.complete));
}

/// No call runs with a part of such arguments.
#[test]
fn law_t2_pieces_without_a_place_are_no_arguments() {
    let number = |path: &str| json!({"jsonPath": path, "numberValue": 1});
    for wrong in [
        vec![number("$.a"), number("$.a")],
        vec![number("$.a[0]"), number("$.a[2]")],
        vec![number("$.a[0]"), number("$.a.b")],
        vec![number("$.a.b"), number("$.a[0]")],
        vec![number("a")],
        vec![number("$.a"), json!({"jsonPath": "$.b"})],
        vec![number("$.a"), json!({"jsonPath": "$.b", "numberValue": "NaN"})],
        vec![string("$.a", "x", true), number("$.a")],
        vec![json!({})],
    ] {
        let mut events = pieces("f", &wrong);
        // Later pieces repair nothing.
        events.extend(pieces("f", &[string("$.z", "}", true), string("$.z", "}", false)]).split_off(1));
        events.extend([call(json!({})), stop()]);
        let ReadAnswer { response, .. } = read(&events);
        assert_eq!(runnable(&response.expect("an answer")), [], "{wrong:?}");
    }
}

#[test]
fn law_t2_call_without_its_end_never_runs() {
    for open in [
        pieces("f", &[]),
        pieces("f", &[string("$.a", "x", true)]),
        pieces("f", &[string("$.a", "x", false)]),
    ] {
        for next in [stop(), call(json!({"name": "g", "args": {}})), finish("MAX_TOKENS")] {
            let events: Vec<Value> = open.iter().cloned().chain([next, stop()]).collect();
            let ReadAnswer { response, .. } = read(&events);
            let names: Vec<_> =
                runnable(&response.expect("an answer")).into_iter().map(|call| call.0).collect();
            assert!(!names.contains(&"f".to_owned()), "{names:?} of {events:?}");
        }
    }
}

#[test]
fn arguments_in_place_of_an_object_are_kept() {
    for (args, expected) in
        [(json!("{\"a\":1}"), "{\"a\":1}"), (json!([1, 2]), "[1,2]"), (json!(7), "7"), (Value::Null, "")]
    {
        let calls = calls(&[call(json!({"name": "f", "args": args})), stop()]);
        assert_eq!(calls[0].arguments, expected);
    }
}

#[test]
fn empty_function_call_is_no_call() {
    let ReadAnswer { response, .. } = read(&[text("a"), call(json!({})), call(json!({})), text("b"), stop()]);
    assert_eq!(response.expect("an answer").message().blocks().len(), 1);
    let nameless = calls(&[call(json!({"args": {"a": 1}})), stop()]);
    assert_eq!(nameless[0].name, ToolCall::UNNAMED);
}
