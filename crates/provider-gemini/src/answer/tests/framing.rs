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

/// The end of one call and the beginning of the next have the form of earlier events.
#[test]
fn law_s5_calls_of_one_form_stay_apart() {
    let piece = |text: &str| {
        let piece = json!({"jsonPath": "$.a", "stringValue": text, "willContinue": true});
        parts(json!([{"functionCall": {"partialArgs": [piece], "willContinue": true}}]))
    };
    let mut events = Vec::new();
    for name in ["f", "g", "f", "without an end", "g"] {
        events.push(parts(json!([{"functionCall": {"name": name, "willContinue": true}}])));
        events.extend(["x", "y", "z", "z"].map(piece));
        if name != "without an end" {
            events.push(parts(json!([{"functionCall": {}}])));
            events.extend([text("1"), text("2"), text("3")]);
        }
    }
    events.push(stop());
    let ReadAnswer { response, .. } = read(&events);
    let response = response.expect("an answer");
    let expected = |name: &str| (name.to_owned(), json!({"a": "xyzz"}));
    assert_eq!(runnable(&response), ["f", "g", "f", "g"].map(expected));
    assert_eq!(response.text(), "123123123123");
}

#[test]
fn law_r1_arguments_in_pieces_are_bounded() {
    let piece = json!({"jsonPath": "$.a", "stringValue": "x".repeat(100), "willContinue": true});
    let piece = parts(json!([{"functionCall": {"partialArgs": [piece], "willContinue": true}}]));
    let mut events = vec![parts(json!([{"functionCall": {"name": "f", "willContinue": true}}]))];
    events.extend(std::iter::repeat_n(piece, 40));
    let limits = AggregatorLimits::default().with_answer_bytes(2000);
    let format = GenerateContent::new(FORMAT.into(), limits);
    let decoder = AnswerDecoder::new(format, SseLimits::default(), Redaction::default());
    let read = read_answer(decoder, AggregatorSettings::default(), &[&sse(&events, "\n")]);
    assert_eq!(read.response.expect_err("too large").kind(), advisor_core::ErrorKind::TooLarge);
}
