//! Tests that any bytes, in any split, give one outcome and no panic.

use advisor_testkit::split;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use provider_gemini::recording;

/// Events: good ones, odd ones, errors, ends.
const EVENTS: [&str; 22] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"naïve \"text\" 😀"}]}}],"usageMetadata":{"promptTokenCount":1}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"so","thought":true}]},"index":0}],"responseId":"r"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"end","thoughtSignature":"s"}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"s"}]}}]}"#,
    r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"other"}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":[1,"x"]}},"thoughtSignature":"s"}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"g","willContinue":true}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x\n","willContinue":true}],"willContinue":true}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"y","willContinue":true}],"willContinue":true}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.b[0].c","numberValue":1}],"willContinue":true}}]}}],"usageMetadata":{"totalTokenCount":3}}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AQ=="}}]}}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"}},{"new":1}]}}]}"#,
    r#"{"candidates":[{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"u","title":"t"}}]}}]}"#,
    r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":2}}"#,
    r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#,
    r#"{"candidates":[{"finishReason":"SAFETY","index":1}]}"#,
    r#"{"promptFeedback":{"blockReason":"OTHER"}}"#,
    r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}"#,
    "null",
    "[]",
    "{\"candidates\":",
];

/// Bodies of such events in one of the framings, with noise between them.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let events = vec(select(EVENTS.to_vec()), 0..12);
    let noise = prop_oneof![
        8 => Just(Vec::new()),
        1 => select(vec![b": c\r\n\r\n".to_vec(), b"<p>".to_vec(), b"\xFF".to_vec(), b"\xEF\xBB\xBF".to_vec(), b"data: [DONE]\n\n".to_vec()]),
        1 => vec(any::<u8>(), 0..20),
    ];
    (events, select(vec!["\r\n", "\n", "["]), noise.clone(), noise).prop_map(
        |(events, framing, before, after)| {
            let body = match framing {
                "[" => format!("[{}]", events.join("\n,")),
                end => events.iter().map(|event| format!("data: {event}{end}{end}")).collect(),
            };
            [before, body.into_bytes(), after].concat()
        },
    )
}

fn pieces(body: &[u8], cuts: &[Index]) -> Vec<Bytes> {
    let offsets: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    split::pieces(body, &offsets).into_iter().map(Bytes::copy_from_slice).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]

    #[test]
    fn law_s5_any_body_split_has_same_outcome(
        body in body(),
        cuts in vec(any::<Index>(), 0..10),
    ) {
        let whole = recording::aggregate([Bytes::from(body.clone())]);
        prop_assert_eq!(recording::aggregate(pieces(&body, &cuts)), whole);
    }

    #[test]
    fn law_s1_a_body_completes_or_fails(body in body()) {
        let outcome = recording::aggregate([Bytes::from(body)]);
        prop_assert!(outcome["text"].is_string() && outcome["tool_calls"].is_array());
        prop_assert!(outcome["error"].is_null() || outcome["error"]["kind"].is_string());
    }
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
            let body = format!(
                r#"{{"candidates":[{{"content":{{"parts":[{part}]}},"groundingMetadata":{deep}}}]}}"#
            );
            let end = r#"{"candidates":[{"finishReason":"STOP"}]}"#;
            let outcome = recording::aggregate([Bytes::from(format!("data: {body}\n\ndata: {end}\n\n"))]);
            assert_eq!(outcome["error"].is_null(), depth <= 100, "{depth}: {outcome}");
        }
    }
    let path = format!("$.{}a", "a.".repeat(100_000));
    let piece = format!(
        r#"{{"functionCall":{{"name":"f","partialArgs":[{{"jsonPath":"{path}","numberValue":1}}]}}}}"#
    );
    let body = format!(r#"{{"candidates":[{{"content":{{"parts":[{piece}]}},"finishReason":"STOP"}}]}}"#);
    let outcome = recording::aggregate([Bytes::from(format!("data: {body}\n\n"))]);
    assert!(outcome["error"].is_null(), "{outcome}");
}
