//! Framings and whole answers.

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
fn law_r1_arguments_in_pieces_are_bounded() {
    let piece = json!({"jsonPath": "$.a", "stringValue": "x".repeat(100), "willContinue": true});
    let piece = parts(json!([{"functionCall": {"partialArgs": [piece], "willContinue": true}}]));
    let mut events = vec![parts(json!([{"functionCall": {"name": "f", "willContinue": true}}]))];
    events.extend(std::iter::repeat_n(piece, 40));
    let limits = AggregatorLimits { answer_bytes: 2000, ..AggregatorLimits::default() };
    let format = GenerateContent::new(FORMAT.into(), limits);
    let decoder = AnswerDecoder::new(format, SseLimits::default(), Redaction::default());
    let read = read_answer(decoder, AggregatorSettings::default(), &[&sse(&events, "\n")]);
    assert_eq!(read.response.expect_err("too large").kind(), advisor_core::ErrorKind::TooLarge);
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
