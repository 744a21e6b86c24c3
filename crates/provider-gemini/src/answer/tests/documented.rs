//! Everything that the Gemini API documents for answers, each in a written answer: parts, sources, finish reasons,
//! blocked prompts, token counts and errors.

use advisor_test_support::documented::outline;

use super::*;

/// A written answer and its outline, of the API reference (ai.google.dev, Vertex AI) and of google-genai 3.6.1.
type Row = (Vec<Value>, Vec<&'static str>);

fn rows() -> Vec<Row> {
    [contents(), calls(), sources(), ends(), blocked(), errors()].concat()
}

fn contents() -> Vec<Row> {
    let mut full = text("Hi");
    full["responseId"] = "r".into();
    full["createTime"] = "2026-01-01T00:00:00Z".into();
    full["modelStatus"] = json!({"modelStage": "STABLE"});
    full["usageMetadata"] = json!({"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 1, "toolUsePromptTokenCount": 4, "totalTokenCount": 14,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5}], "trafficType": "ON_DEMAND"});
    for (field, value) in [
        ("avgLogprobs", json!(-0.1)),
        ("continuationToken", json!("eA==")),
        ("logprobsResult", json!({"chosenCandidates": []})),
        ("safetyRatings", json!([{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}])),
        ("tokenCount", json!(2)),
    ] {
        full["candidates"][0][field] = value;
    }
    let ran = |outcome: &str| json!({"codeExecutionResult": {"outcome": outcome, "output": "1\n"}});
    let cases = [
        (json!({"text": "Hm", "thought": true, "thoughtSignature": "c2ln"}), "reasoning Hm"),
        (json!({"text": "Hi", "partMetadata": {}, "videoMetadata": {}, "mediaResolution": {}}), "text Hi"),
        (json!({"executableCode": {"language": "PYTHON", "code": "1"}}), "opaque executableCode"),
        (ran("OUTCOME_OK"), "opaque codeExecutionResult"),
        (ran("OUTCOME_FAILED"), "opaque codeExecutionResult"),
        (ran("OUTCOME_DEADLINE_EXCEEDED"), "opaque codeExecutionResult"),
        (
            json!({"inlineData": {"mimeType": "image/png", "data": "AQID", "displayName": "a.png"}}),
            "media image/png of 3 bytes",
        ),
        (
            json!({"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "AQI="}}),
            "media audio/L16;rate=24000 of 2 bytes",
        ),
        (json!({"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/f"}}), "media video/mp4 gs://b/f"),
        (json!({"functionResponse": {"name": "f", "response": {}}}), "opaque functionResponse"),
        (json!({"toolCall": {"toolType": "FILE_SEARCH", "id": "x", "args": {}}}), "opaque toolCall"),
        (json!({"toolResponse": {"toolType": "FILE_SEARCH", "id": "x"}}), "opaque toolResponse"),
        (json!({"audioTranscription": {"text": "Hi"}}), "opaque audioTranscription"),
        (json!({"mediaProcessing": {}}), "opaque mediaProcessing"),
    ];
    let row = |(part, line)| (vec![parts(json!([part])), stop()], vec![line, "Stop STOP"]);
    [(vec![full, stop()], vec!["text Hi", "Stop STOP"])].into_iter().chain(cases.map(row)).collect()
}

fn calls() -> Vec<Row> {
    let piece = |call: Value| parts(json!([{ "functionCall": call }]));
    let value = |path: &str, kind: &str, value: Value| json!({"jsonPath": path, kind: value});
    let streamed = [
        piece(json!({"id": "c", "name": "f", "willContinue": true})),
        piece(
            json!({"partialArgs": [{"jsonPath": "$.s", "stringValue": "a", "willContinue": true}], "willContinue": true}),
        ),
        piece(json!({"partialArgs": [value("$.s", "stringValue", json!("b"))], "willContinue": true})),
        piece(
            json!({"partialArgs": [value("$.n", "numberValue", json!(1)), value("$.b", "boolValue", json!(true)),
            value("$.z", "nullValue", json!("NULL_VALUE"))], "willContinue": true}),
        ),
        piece(json!({})),
        stop(),
    ];
    vec![
        (
            vec![piece(json!({"id": "c", "name": "f", "args": {"a": 1}})), stop()],
            vec!["call f({\"a\":1})", "Stop STOP"],
        ),
        (streamed.into(), vec![r#"call f({"b":true,"n":1,"s":"ab","z":null})"#, "Stop STOP"]),
    ]
}

fn sources() -> Vec<Row> {
    let chunks = json!([
        {"web": {"uri": "https://a", "title": "A", "domain": "a"}},
        {"retrievedContext": {"uri": "gs://b", "title": "B", "text": "q"}},
        {"maps": {"uri": "https://c", "title": "C", "placeId": "places/1"}},
        {"image": {"sourceUri": "https://d", "imageUri": "https://d/i.png", "title": "D"}},
    ]);
    let grounding = json!({"groundingChunks": chunks, "groundingSupports": [{"segment": {"endIndex": 2}}],
        "searchEntryPoint": {"renderedContent": "<p>"}, "webSearchQueries": ["q"], "retrievalMetadata": {}});
    let with = |field: &str, value: Value| {
        let mut event = text("Hi");
        event["candidates"][0][field] = value;
        vec![event, stop()]
    };
    let cited = "citation https://e";
    vec![
        (
            with("groundingMetadata", grounding),
            vec![
                "text Hi", "citation https://a, A", "citation gs://b, B, q", "citation https://c, C",
                "citation https://d, D", "opaque groundingMetadata", "Stop STOP",
            ],
        ),
        (
            with("citationMetadata", json!({"citationSources": [{"uri": "https://e", "startIndex": 0}]})),
            vec!["text Hi", cited, "Stop STOP"],
        ),
        (
            with("citationMetadata", json!({"citations": [{"uri": "https://e", "title": "E"}]})),
            vec!["text Hi", "citation https://e, E", "Stop STOP"],
        ),
        (
            with("urlContextMetadata", json!({"urlMetadata": [{"retrievedUrl": "https://f"}]})),
            vec!["text Hi", "opaque urlContextMetadata", "Stop STOP"],
        ),
    ]
}

fn ends() -> Vec<Row> {
    let failed = "error Provider { status: None }";
    let ends = [
        ("STOP", "Stop STOP"),
        ("MAX_TOKENS", "Length MAX_TOKENS"),
        ("SAFETY", "ContentFilter SAFETY"),
        ("RECITATION", "ContentFilter RECITATION"),
        ("LANGUAGE", "ContentFilter LANGUAGE"),
        ("BLOCKLIST", "ContentFilter BLOCKLIST"),
        ("PROHIBITED_CONTENT", "ContentFilter PROHIBITED_CONTENT"),
        ("SPII", "ContentFilter SPII"),
        ("MODEL_ARMOR", "ContentFilter MODEL_ARMOR"),
        ("IMAGE_SAFETY", "ContentFilter IMAGE_SAFETY"),
        ("IMAGE_PROHIBITED_CONTENT", "ContentFilter IMAGE_PROHIBITED_CONTENT"),
        ("IMAGE_RECITATION", "ContentFilter IMAGE_RECITATION"),
        ("OTHER", "Other(\"OTHER\") OTHER"),
        ("ESCALATION", "Other(\"ESCALATION\") ESCALATION"),
        ("PUP_LIMITED_DISABLED", "Other(\"PUP_LIMITED_DISABLED\") PUP_LIMITED_DISABLED"),
        ("CONTINUATION", "Other(\"CONTINUATION\") CONTINUATION"),
        ("IMAGE_OTHER", failed),
        ("NO_IMAGE", failed),
        ("MALFORMED_FUNCTION_CALL", failed),
        ("MALFORMED_RESPONSE", failed),
        ("UNEXPECTED_TOOL_CALL", failed),
        ("TOO_MANY_TOOL_CALLS", failed),
        ("MISSING_THOUGHT_SIGNATURE", "error InvalidHistory"),
    ];
    let row = |(reason, line)| {
        let mut last = finish(reason);
        last["candidates"][0]["finishMessage"] = "m".into();
        (vec![text("Hi"), last], vec!["text Hi", line])
    };
    // The word for none: the answer goes on.
    let unspecified =
        (vec![text("Hi"), finish("FINISH_REASON_UNSPECIFIED"), stop()], vec!["text Hi", "Stop STOP"]);
    ends.map(row).into_iter().chain([unspecified]).collect()
}

fn blocked() -> Vec<Row> {
    let reasons = [
        ("BLOCKED_REASON_UNSPECIFIED", "ContentFilter BLOCKED_REASON_UNSPECIFIED"),
        ("SAFETY", "ContentFilter SAFETY"),
        ("OTHER", "ContentFilter OTHER"),
        ("BLOCKLIST", "ContentFilter BLOCKLIST"),
        ("PROHIBITED_CONTENT", "ContentFilter PROHIBITED_CONTENT"),
        ("IMAGE_SAFETY", "ContentFilter IMAGE_SAFETY"),
        ("MODEL_ARMOR", "ContentFilter MODEL_ARMOR"),
        ("JAILBREAK", "ContentFilter JAILBREAK"),
    ];
    let row = |(reason, line)| {
        let feedback = json!({"blockReason": reason, "blockReasonMessage": "m", "safetyRatings": []});
        (vec![json!({"promptFeedback": feedback, "modelVersion": "m"})], vec![line])
    };
    reasons.map(row).into()
}

fn errors() -> Vec<Row> {
    let statuses = [
        (400, "INVALID_ARGUMENT", "error InvalidRequest"),
        (400, "FAILED_PRECONDITION", "error InvalidRequest"),
        (401, "UNAUTHENTICATED", "error Authentication"),
        (403, "PERMISSION_DENIED", "error Authentication"),
        (404, "NOT_FOUND", "error NotFound"),
        (429, "RESOURCE_EXHAUSTED", "error RateLimited { retry_after: None }"),
        (500, "INTERNAL", "error Provider { status: Some(500) }"),
        (503, "UNAVAILABLE", "error Provider { status: Some(503) }"),
        (504, "DEADLINE_EXCEEDED", "error Provider { status: Some(504) }"),
    ];
    let row = |(code, status, line)| {
        let error = json!({"error": {"code": code, "message": "m", "status": status}});
        (vec![text("Hi"), error], vec!["text Hi", line])
    };
    statuses.map(row).into()
}

#[test]
fn every_documented_part_is_read_as_listed() {
    for (events, expected) in rows() {
        assert_eq!(outline(&read(&events).response), expected, "{events:#?}");
    }
}
