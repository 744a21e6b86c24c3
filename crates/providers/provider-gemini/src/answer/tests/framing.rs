//! Framings and whole answers.

use std::collections::VecDeque;

use provider_http::answer::{AnswerEvent, WireFormat};

use super::*;

#[test]
fn whole_answer_gives_the_same_response() {
    let mut event = parts(
        json!([{"text": "Hm", "thought": true}, {"text": "Hi"}, {"functionCall": {"name": "f", "args": {"a": 1}}}]),
    );
    event["candidates"][0]["finishReason"] = "STOP".into();
    event["usageMetadata"] = json!({"promptTokenCount": 3});
    let streamed = read(std::slice::from_ref(&event));
    let body = event.to_string().into_bytes();
    assert_same(&streamed, &read_pieces(&[&body]), "whole");
    assert_same(&streamed, &read_pieces(&body.chunks(1).collect::<Vec<_>>()), "byte by byte");
}

#[test]
fn end_marker_of_a_gateway_ends_the_answer() {
    let body = [sse(&[text("Hi"), stop()], "\n"), b"data: [DONE]\n\ndata: rubbish\n\n".to_vec()].concat();
    let ReadAnswer { response, .. } = read_pieces(&[&body]);
    assert_eq!(response.expect("an answer").text(), "Hi");
}

#[test]
fn law_r1_arguments_in_pieces_count_as_kept() {
    let piece = json!({"jsonPath": "$.a", "stringValue": "x".repeat(1000), "willContinue": true});
    let call =
        |name: &str| json!([{"functionCall": {"name": name, "partialArgs": [piece], "willContinue": true}}]);
    let mut format = format();
    for event in [parts(call("f")), parts(call("")), parts(call(""))] {
        let event = event.to_string();
        format.read(AnswerEvent { name: None, data: &event }, &mut VecDeque::new()).expect("JSON");
    }
    assert!(format.kept() > 3000);
    format.finish(&mut VecDeque::new());
    assert_eq!(format.kept(), 0);
}

#[test]
fn deeply_nested_values_cause_no_stack_overflow() {
    for depth in [3, 100, 100_000] {
        let deep = ["[".repeat(depth), "]".repeat(depth)].concat();
        for part in [
            format!(r#"{{"text":{deep}}}"#),
            format!(r#"{{"functionCall":{{"name":"f","args":{{"a":{deep}}}}}}}"#),
            format!(r#"{{"new":{deep}}}"#),
        ] {
            let event = format!(
                r#"{{"candidates":[{{"content":{{"parts":[{part}]}},"groundingMetadata":{deep},"finishReason":"STOP"}}]}}"#
            );
            let response = read_pieces(&[format!("data: {event}\n\n").as_bytes()]).response;
            assert!(response.is_ok(), "{depth}");
        }
    }
    let path = format!("$.{}a", "a.".repeat(100_000));
    let piece = json!({"name": "f", "partialArgs": [{"jsonPath": path, "numberValue": 1}]});
    let events = sse(&[parts(json!([{ "functionCall": piece }])), stop()], "\n");
    let response = read_pieces(&[&events]).response.expect("an answer");
    assert_eq!(runnable(&response), []);
}
