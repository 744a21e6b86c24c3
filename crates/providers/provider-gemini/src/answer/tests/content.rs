//! Text, thoughts, media, and parts that only Gemini understands.

use super::*;

#[test]
fn text_and_thoughts_are_separate_blocks() {
    let thought = |text: &str| parts(json!([{"text": text, "thought": true}]));
    let blocks = blocks(&[
        thought("Hm"),
        thought(", well"),
        text("Grüße"),
        text(" \"all\" 😀\n"),
        parts(json!([{"text": "?", "thought": false}, {"text": "!"}])),
        stop(),
    ]);
    let contents: Vec<_> = blocks.iter().map(Block::content).collect();
    assert_eq!(
        contents,
        [
            &BlockContent::Reasoning("Hm, well".to_owned()),
            &BlockContent::Text("Grüße \"all\" 😀\n?!".to_owned()),
        ]
    );
}

#[test]
fn q66_signature_stays_on_its_part() {
    let signed = |text: &str| parts(json!([{"text": text, "thoughtSignature": "sig"}]));
    // On the last text: its bytes are known, so that it goes back alone.
    let tail = blocks(&[text("One, "), signed("two"), stop()]);
    assert_eq!(tail[0].as_text(), Some("One, two"));
    assert_eq!(data(&tail[0]), [json!({"thoughtSignature": "sig", "signedBytes": 3})]);
    // A text after it is a separate part.
    let split = blocks(&[signed("One"), text(", two"), text(", three"), stop()]);
    assert_eq!(split.iter().map(Block::as_text).collect::<Vec<_>>(), [Some("One"), Some(", two, three")]);
    assert_eq!((data(&split[0]).len(), data(&split[1]).len()), (1, 0));
    // On an empty part after text, as Gemini 3 ends its answers.
    let empty = blocks(&[text("One"), text(", two"), signed(""), stop()]);
    assert_eq!(empty.len(), 1);
    assert_eq!(data(&empty[0]), [json!({"thoughtSignature": "sig", "signedBytes": 0})]);
    // On an empty part after a call, it is a block without text.
    let after_call =
        blocks(&[parts(json!([{"functionCall": {"name": "f", "args": {}}}])), signed(""), stop()]);
    assert_eq!(after_call.iter().map(kind_of).collect::<Vec<_>>(), ["call", "text"]);
    assert_eq!((after_call[1].as_text(), data(&after_call[1]).len()), (Some(""), 1));
    // On an empty part before a call, too.
    let before_call =
        blocks(&[signed(""), parts(json!([{"functionCall": {"name": "f", "args": {}}}])), stop()]);
    assert_eq!(before_call.iter().map(kind_of).collect::<Vec<_>>(), ["text", "call"]);
    // On a thought.
    let thought = parts(json!([{"text": "Hm", "thought": true, "thoughtSignature": "sig"}]));
    let thoughts = blocks(&[thought, text("One"), stop()]);
    assert_eq!(data(&thoughts[0]), [json!({"thoughtSignature": "sig", "signedBytes": 2, "thought": true})]);
    assert_eq!(data(&thoughts[1]), [] as [Value; 0]);
}

#[test]
fn q66_signature_of_nothing_is_no_answer() {
    let ReadAnswer { response, .. } =
        read(&[parts(json!([{"text": "", "thoughtSignature": "sig"}])), stop()]);
    let response = response.expect("an answer");
    assert!(response.message().blocks().is_empty());
    assert_eq!(response.finish.reason, FinishReason::Empty);
}

#[test]
fn media_of_the_model_are_blocks() {
    let image = |thought: bool| json!({"inlineData": {"mimeType": "image/png", "data": "AQID"}, "thought": thought, "thoughtSignature": "sig"});
    let audio = json!({"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "BAU="}});
    let file = json!({"fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/file"}});
    let blocks = blocks(&[parts(json!([image(true), image(false)])), parts(json!([audio, file])), stop()]);
    assert_eq!(blocks.iter().map(kind_of).collect::<Vec<_>>(), ["opaque", "media", "media", "media"]);
    let media = |at: usize| match blocks[at].content() {
        BlockContent::Media(media) => media.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(media(1), advisor_core::Media::from_bytes("image/png", vec![1, 2, 3]));
    assert_eq!(data(&blocks[1]), [json!({"thoughtSignature": "sig"})]);
    let chunks = read(&[parts(json!([image(false)])), stop()]).chunks;
    let closed = chunks.iter().find_map(|chunk| match chunk {
        Chunk::Closed { content, .. } => Some(content),
        _ => None,
    });
    assert_eq!(closed, Some(&blocks[1]), "the closed block has the signature");
    assert_eq!(media(2), advisor_core::Media::from_bytes("audio/L16;rate=24000", vec![4, 5]));
    assert_eq!(media(3), advisor_core::Media::from_url("video/mp4", "gs://bucket/file"));
}

#[test]
fn unknown_parts_are_kept_whole() {
    let known = [
        json!({"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
        json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}, "thoughtSignature": "s"}),
        json!({"toolCall": {"toolType": "FILE_SEARCH", "id": "x"}, "thoughtSignature": "s"}),
        json!({"toolResponse": {"toolType": "FILE_SEARCH", "id": "x"}}),
        json!({"somethingNew": [1, {"a": null}]}),
        json!({"inlineData": {"mimeType": "image/png", "data": "no base64"}}),
    ];
    let mut events: Vec<Value> = known.iter().map(|part| parts(json!([part]))).collect();
    events.extend([text("Done."), stop()]);
    let blocks = blocks(&events);
    let names =
        ["executableCode", "codeExecutionResult", "toolCall", "toolResponse", "somethingNew", "inlineData"];
    for ((block, part), name) in blocks.iter().zip(&known).zip(names) {
        let BlockContent::Opaque(opaque) = block.content() else { panic!("{block:?}") };
        assert_eq!((opaque.format.as_str(), opaque.name.as_str(), &opaque.value), ("gemini", name, part));
    }
    assert_eq!(blocks.last().and_then(Block::as_text), Some("Done."));
    // A text stays a text beside unknown fields.
    let ReadAnswer { response, .. } = read(&[parts(json!([{"text": "Hi", "somethingNew": 1}])), stop()]);
    assert_eq!(response.expect("an answer").text(), "Hi");
}

#[test]
fn sources_come_once_with_the_end() {
    let grounding = |uris: &[&str]| {
        let chunks: Vec<Value> =
            uris.iter().map(|uri| json!({"web": {"uri": uri, "title": uri[8..].to_owned()}})).collect();
        json!({"groundingChunks": chunks, "webSearchQueries": ["q"]})
    };
    let event = |text: &str, metadata: Value| json!({"candidates": [{"content": {"parts": [{"text": text}]}, "groundingMetadata": metadata}]});
    let mut last = event("!", grounding(&["https://a", "https://b", "https://a"]));
    last["candidates"][0]["finishReason"] = "STOP".into();
    last["candidates"][0]["citationMetadata"] =
        json!({"citationSources": [{"uri": "https://c", "startIndex": 1}]});
    last["candidates"][0]["urlContextMetadata"] = json!({"urlMetadata": [{"retrievedUrl": "https://d"}]});
    let late =
        json!({"candidates": [{"citationMetadata": {"citations": [{"uri": "https://e", "title": "e"}]}}]});
    let blocks = blocks(&[event("Hi", json!({})), event(" you", grounding(&["https://a"])), last, late]);
    let kinds: Vec<_> = blocks.iter().map(kind_of).collect();
    assert_eq!(kinds, ["text", "citation", "citation", "citation", "opaque", "opaque", "citation"]);
    let urls: Vec<_> = blocks
        .iter()
        .filter_map(|block| match block.content() {
            BlockContent::Citation(citation) => citation.url.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(urls, ["https://c", "https://a", "https://b", "https://e"]);
}

/// An editor of text would not see the copies.
#[test]
fn copies_of_the_answer_are_removed_from_its_grounding() {
    let support = |segment: Value| json!({"segment": segment, "groundingChunkIndices": [0]});
    let with = |supports: Value| {
        let mut event = text("Mallory did.");
        event["candidates"][0]["groundingMetadata"] = json!({"groundingSupports": supports});
        event
    };
    let reported = json!([
        support(json!({"startIndex": 0, "endIndex": 7, "text": "Mallory"})),
        support(json!({"endIndex": 12})),
        support(json!("Mallory"))["groundingChunkIndices"],
    ]);
    let blocks = blocks(&[with(reported), stop()]);
    let Some(BlockContent::Opaque(opaque)) = blocks.last().map(Block::content) else { panic!("{blocks:?}") };
    let kept = json!({"groundingSupports": [
        support(json!({"startIndex": 0, "endIndex": 7})),
        support(json!({"endIndex": 12})),
        [0],
    ]});
    assert_eq!(opaque.value, kept);
}

#[test]
fn no_value_of_a_field_costs_the_answer() {
    for (field, value) in [
        ("index", json!("x")),
        ("content", json!(7)),
        ("finishReason", json!({})),
        ("groundingMetadata", json!("x")),
        ("citationMetadata", json!([1])),
        ("safetyRatings", json!([{"probability": 1e308}])),
    ] {
        let mut event = text("Hi");
        event["candidates"][0][field] = value.clone();
        let mut whole = vec![event, text("!"), stop()];
        if field == "content" {
            whole.insert(0, text("Hi"));
        }
        let ReadAnswer { response, .. } = read(&whole);
        assert_eq!(response.expect(field).text(), "Hi!", "{field}: {value}");
    }
    for part in
        [json!(1), json!(null), json!({"text": {}}), json!({"text": "", "functionCall": 3}), json!([])]
    {
        let ReadAnswer { response, .. } = read(&[text("Hi"), parts(json!([part, {"text": "!"}])), stop()]);
        assert_eq!(response.expect("an answer").text(), "Hi!", "{part}");
    }
    let odd =
        r#"{"candidates":[{"content":{"parts":[{"text":"a\ud83db"}]},"finishReason":"STOP","x":1e999}]}"#;
    let ReadAnswer { response, .. } = read_pieces(&[format!("data: {odd}\n\n").as_bytes()]);
    assert!(response.expect("an answer").text().starts_with('a'));
}

#[test]
fn q53_usage_is_cumulative_and_sums_what_is_counted_apart() {
    let counted = |text: &str, counts: Value| {
        let mut event = super::text(text);
        event["usageMetadata"] = counts;
        event
    };
    let ReadAnswer { response, .. } = read(&[
        counted("a", json!({"promptTokenCount": 17, "candidatesTokenCount": 1, "totalTokenCount": 18})),
        counted("b", json!({"promptTokenCount": 17, "candidatesTokenCount": 2, "totalTokenCount": 19})),
        counted("c", json!({"promptTokenCount": 17, "candidatesTokenCount": 3, "totalTokenCount": 20})),
        counted("d", json!({"trafficType": "ON_DEMAND"})),
        json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {
            "promptTokenCount": 17, "candidatesTokenCount": 241, "totalTokenCount": 772, "cachedContentTokenCount": 5,
            "toolUsePromptTokenCount": 102, "thoughtsTokenCount": 412}}),
    ]);
    let usage = response.expect("an answer").usage.expect("usage");
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(119), Some(653)));
    assert_eq!(
        (usage.total_tokens, usage.cached_input_tokens, usage.reasoning_tokens),
        (Some(772), Some(5), Some(412))
    );
    // A later event that counts less, or only a part, takes nothing back.
    let whole = json!({"promptTokenCount": 17, "candidatesTokenCount": 3, "thoughtsTokenCount": 40, "totalTokenCount": 60});
    let ReadAnswer { response: less, .. } = read(&[
        counted("a", whole.clone()),
        counted("b", whole.clone()),
        counted("c", whole),
        counted(
            "d",
            json!({"promptTokenCount": 0, "candidatesTokenCount": 0, "thoughtsTokenCount": 0, "totalTokenCount": 0}),
        ),
        counted(
            "e",
            json!({"promptTokenCount": 0, "candidatesTokenCount": 0, "thoughtsTokenCount": 0, "totalTokenCount": 0}),
        ),
        counted("f", json!({"candidatesTokenCount": 5})),
        stop(),
    ]);
    let usage = less.expect("an answer").usage.expect("usage");
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (Some(17), Some(45), Some(60)));
    let ReadAnswer { response: odd, .. } = read(&[
        counted("a", json!({"promptTokenCount": -1, "totalTokenCount": 1e300, "thoughtsTokenCount": "7"})),
        stop(),
    ]);
    let usage = odd.expect("an answer").usage.expect("usage");
    assert_eq!((usage.input_tokens, usage.total_tokens, usage.reasoning_tokens), (None, None, Some(7)));
}
