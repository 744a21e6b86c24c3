//! The deltas of one event or a few.

use advisor_core::{Finish, FinishReason, Media, MediaDelta, Usage};

use super::*;
use crate::wire::FORMAT;
use provider_http::json::read;

fn converter() -> ChatCompletions {
    ChatCompletions::new(ThinkTags::AsText, FORMAT.into())
}

/// Converts an event with a converter.
fn convert_one(converter: &mut ChatCompletions, json: &str, deltas: &mut VecDeque<Delta>) -> Meaning {
    let mut event = Event::default();
    read(json, |json| event.read(json)).expect(json);
    converter.convert(&mut event, deltas)
}

/// Converts these events with a new converter. Returns one list of deltas for each, and those at the end.
fn convert_to_end(events: &[&str]) -> (Vec<Vec<Delta>>, Vec<Delta>) {
    let mut converter = converter();
    let convert = |json: &&str| {
        let mut deltas = VecDeque::new();
        convert_one(&mut converter, json, &mut deltas);
        deltas.into()
    };
    let deltas = events.iter().map(convert).collect();
    let mut last = VecDeque::new();
    converter.finish(&mut last);
    (deltas, last.into())
}

fn convert(events: &[&str]) -> Vec<Vec<Delta>> {
    convert_to_end(events).0
}

/// Returns the deltas of one event whose only choice has this delta, and those at the end.
fn of_delta(delta: &str) -> Vec<Delta> {
    let (mut deltas, last) = convert_to_end(&[&format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#)]);
    deltas.remove(0).into_iter().chain(last).collect()
}

fn call(fragment: ToolCallDelta) -> Delta {
    Delta::tool_call(fragment)
}

fn data(value: Value) -> Delta {
    DeltaKind::ReasoningData(Box::new(ProviderData::new(FORMAT, value))).into()
}

fn opaque(name: &str, value: Value) -> Delta {
    DeltaKind::Opaque(Box::new(Opaque::new(FORMAT, name, value))).into()
}

#[test]
fn one_delta_object_gives_these_deltas() {
    let refusal = |text: &str| Delta::from(DeltaKind::Refusal(text.into()));
    let bare = |name: &str, arguments: &str| {
        let mut fragment = ToolCallDelta::default().with_arguments(arguments);
        fragment.name = Some(name.into());
        fragment
    };
    let cases: Vec<(&str, &str, Vec<Delta>)> = vec![
        ("text", r#"{"role":"assistant","content":"Hi"}"#, vec![Delta::text("Hi")]),
        ("nothing", r#"{"role":"assistant","content":"","refusal":null,"tool_calls":[]}"#, vec![]),
        ("a refusal", r#"{"content":null,"refusal":"No"}"#, vec![refusal("No")]),
        (
            "everything at once, in this order (Q50)",
            r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}],"content":"b","reasoning_content":"a"}"#,
            vec![Delta::reasoning("a"), Delta::text("b"), call(ToolCallDelta::start(0, "c", "f"))],
        ),
        (
            "reasoning_content goes first (Q63)",
            r#"{"reasoning_content":"a","reasoning":"b"}"#,
            vec![Delta::reasoning("a")],
        ),
        ("reasoning", r#"{"reasoning_content":"","reasoning":"b"}"#, vec![Delta::reasoning("b")]),
        (
            "reasoning beside its details is counted once",
            r#"{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}"#,
            vec![
                Delta::reasoning("b"),
                data(json!({"reasoning_details": [{"type": "reasoning.text", "text": "b", "index": 0}]})),
            ],
        ),
        (
            "details alone tell the reasoning",
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"a"},{"type":"reasoning.summary","summary":"b"},{"type":"reasoning.encrypted","data":"x"}]}"#,
            vec![
                Delta::reasoning("ab"),
                data(
                    json!({"reasoning_details": [{"type": "reasoning.text", "text": "a"}, {"type": "reasoning.summary", "summary": "b"},
                    {"type": "reasoning.encrypted", "data": "x"}]}),
                ),
            ],
        ),
        ("no details are none", r#"{"reasoning_details":[]}"#, vec![]),
        (
            "content as parts",
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"text","text":"c"},
                {"type":"refusal","refusal":"d"},{"type":"reference","reference_ids":[1]}]}"#,
            vec![
                Delta::reasoning("ab"),
                Delta::text("c"),
                refusal("d"),
                opaque("reference", json!({"type": "reference", "reference_ids": [1]})),
            ],
        ),
        (
            "thinking as a plain text",
            r#"{"content":[{"type":"thinking","thinking":"a"}]}"#,
            vec![Delta::reasoning("a")],
        ),
        (
            "the fields of reasoning go before its parts",
            r#"{"reasoning":"r","content":[{"type":"thinking","thinking":"a"}]}"#,
            vec![Delta::reasoning("r")],
        ),
        (
            "a whole call (Q19), its arguments an object (Q20)",
            r#"{"tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a":1}}}]}"#,
            vec![call({
                let mut fragment = bare("f", r#"{"a":1}"#);
                fragment.call_id = Some("c".into());
                fragment
            })],
        ),
        (
            "empty is absent (Q10, Q16, Q21)",
            r#"{"tool_calls":[{"index":0,"id":"","type":"","function":{"name":"","arguments":"1}"}}]}"#,
            vec![call(ToolCallDelta::arguments(0, "1}"))],
        ),
        (
            "several fragments of one event stay together (Q6)",
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"a"}},{"index":0,"function":{"arguments":"b"}}]}"#,
            vec![
                DeltaKind::ToolCalls(vec![
                    ToolCallDelta::arguments(0, "a"),
                    ToolCallDelta::arguments(0, "b"),
                ])
                .into(),
            ],
        ),
        (
            "signatures ride on the call (Q66)",
            r#"{"tool_calls":[{"index":0,"extra_content":{"google":{"thought_signature":"s"}},"function":{"x":1}}]}"#,
            vec![call({
                let mut fragment = ToolCallDelta::default();
                fragment.index = Some(0);
                let value =
                    json!({"extra_content": {"google": {"thought_signature": "s"}}, "function": {"x": 1}});
                fragment.provider_data = Some(ProviderData::new(FORMAT, value));
                fragment
            })],
        ),
        (
            "the first version's call",
            r#"{"function_call":{"name":"f","arguments":"{}"}}"#,
            vec![call(bare("f", "{}"))],
        ),
        (
            "a picture in the answer",
            r#"{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}},{"image_url":"https://x/y.png"},{"odd":1}]}"#,
            vec![
                Delta::media(Media::from_bytes("image/png", vec![1, 2, 3])),
                Delta::media(Media::from_url("image/*", "https://x/y.png")),
                opaque("image", json!({"odd": 1})),
            ],
        ),
        (
            "sound with its words",
            r#"{"audio":{"id":"a1","transcript":"Hi","data":"AA=="}}"#,
            vec![
                Delta::text("Hi"),
                Delta::media(MediaDelta {
                    media: Media::from_bytes("audio/pcm", vec![0]),
                    provider_data: Some(ProviderData::new(FORMAT, json!({"audio": {"id": "a1"}}))),
                }),
            ],
        ),
        (
            "a tool that ran on the server's side is no call",
            r#"{"executed_tools":[{"index":0,"type":"search"}]}"#,
            vec![opaque("executed_tools", json!({"index": 0, "type": "search"}))],
        ),
        (
            "a source",
            r#"{"annotations":[{"type":"url_citation","url_citation":{"url":"u","title":"t","content":"q","start_index":1}},{"type":"other"}]}"#,
            vec![{
                let mut citation = Citation::default();
                (citation.url, citation.title, citation.quote) =
                    (Some("u".into()), Some("t".into()), Some("q".into()));
                DeltaKind::Citation(Box::new(citation)).into()
            }],
        ),
    ];
    for (name, delta, expected) in cases {
        assert_eq!(of_delta(delta), expected, "{name}");
    }
}

/// Other kinds of parts are kept as they are.
#[test]
fn media_in_a_list_of_content_are_media() {
    let media = |delta: &Delta| match &delta.kind {
        DeltaKind::Text(text) => text.to_string(),
        DeltaKind::Media(item) => item.media.mime.to_string(),
        DeltaKind::Opaque(opaque) => format!("opaque {}", opaque.name),
        other => panic!("{other:?}"),
    };
    let part = |kind: &str, url: &str| format!(r#"{{"type":"{kind}","{kind}":{{"url":"{url}"}}}}"#);
    let parts = [
        r#"{"type":"text","text":"Look: "}"#.to_owned(),
        part("image_url", "data:image/png;base64,AQID"),
        part("image_url", "https://example.org/a"),
        part("audio_url", "https://example.org/b"),
        part("video_url", "https://example.org/c"),
        part("image_url", "data:image/png;base64,?"),
        part("document_url", "https://example.org/d"),
    ];
    let event = format!(r#"{{"choices":[{{"delta":{{"content":[{}]}}}}]}}"#, parts.join(","));
    let deltas: Vec<String> = convert(&[&event]).remove(0).iter().map(media).collect();
    let expected =
        ["Look: ", "image/png", "image/*", "audio/*", "video/*", "opaque image_url", "opaque document_url"];
    assert_eq!(deltas, expected);
}

#[test]
fn finish_reasons_keep_the_providers_word() {
    use FinishReason::{ContentFilter, Interrupted, Length, Other, Paused, Refusal, Stop, ToolCalls};
    // One word of each reason.
    let cases = [
        ("stop", Stop),
        ("COMPLETE", Stop),
        ("length", Length),
        ("tool_calls", ToolCalls),
        ("content_filter", ContentFilter),
        ("refusal", Refusal),
        ("pause_turn", Paused),
        ("error", Interrupted),
        ("some_new_word", Other("some_new_word".into())),
    ];
    for (word, reason) in cases {
        let deltas =
            convert(&[&format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{word}"}}]}}"#)]).remove(0);
        assert_eq!(deltas, [Delta::finish(Finish::written(reason, word))], "{word}");
    }
    for none in [r#""""#, r#""null""#, "null", "{}", "[]"] {
        let deltas = convert(&[&format!(r#"{{"choices":[{{"finish_reason":{none}}}]}}"#)]).remove(0);
        assert_eq!(deltas, [], "{none}");
    }
}

#[test]
fn content_with_finish_reason_comes_before_it() {
    let event = r#"{"choices":[{"delta":{"content":"end"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let finish = Delta::finish(Finish::written(FinishReason::Stop, "stop"));
    assert_eq!(convert(&[event]), [[Delta::text("end"), finish, Delta::usage(Usage::new(1, 2))]]);
}

#[test]
fn usage_is_found_in_every_place() {
    let usage = vec![Delta::usage(Usage::new(1, 2))];
    for event in [
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        r#"{"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        r#"{"choices":null,"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        r#"{"choices":[{"delta":{},"usage":{"prompt_tokens":1,"completion_tokens":2}}]}"#,
        r#"{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":1,"completion_tokens":2}}}"#,
    ] {
        assert_eq!(convert(&[event]), std::slice::from_ref(&usage), "{event}");
    }
    assert_eq!(convert(&[r#"{"usage":null}"#, r#"{"usage":{}}"#]), [[], []]);
}

#[test]
fn reasoning_outside_the_completion_counts_as_output() {
    let output = |completion: u64, reasoning: u64, total: Option<u64>| {
        let mut counts = json!({"prompt_tokens": 288, "completion_tokens": completion,
            "completion_tokens_details": {"reasoning_tokens": reasoning}});
        total.into_iter().for_each(|total| counts["total_tokens"] = total.into());
        let deltas = convert(&[&json!({"choices": [], "usage": counts}).to_string()]).concat();
        let [Delta { kind: DeltaKind::Usage(usage), .. }] = &deltas[..] else { panic!("{deltas:?}") };
        assert_eq!((usage.input_tokens, usage.reasoning_tokens), (Some(288), Some(reasoning)));
        usage.output_tokens
    };
    // xAI: the recording `xai-grok-3-mini-high-reasoning-tool-01`.
    assert_eq!(output(27, 313, Some(628)), Some(340));
    // OpenAI, and servers whose total does not say.
    assert_eq!(output(379, 320, Some(667)), Some(379));
    assert_eq!(output(379, 320, None), Some(379));
    assert_eq!(output(27, 313, Some(999)), Some(27));
    assert_eq!(output(379, 0, Some(667)), Some(379));
}

#[test]
fn the_origin_is_told_once() {
    let event = r#"{"id":"a","model":"m","choices":[]}"#;
    let origin =
        |id: Option<&str>, model: Option<&str>| Delta::origin(id.map(Text::from), model.map(Text::from));
    assert_eq!(convert(&[event, event]), [vec![origin(Some("a"), Some("m"))], vec![]]);
    // Azure's first event has neither (Q60).
    assert_eq!(convert(&[r#"{"id":"","model":""}"#, event]), [vec![], vec![origin(Some("a"), Some("m"))]]);
    assert_eq!(
        convert(&[r#"{"id":"a"}"#, event]),
        [vec![origin(Some("a"), None)], vec![origin(None, Some("m"))]]
    );
}

#[test]
fn a_message_counts_only_where_no_delta_came() {
    let message = r#"{"choices":[{"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}]}"#;
    let both = r#"{"choices":[{"delta":{"content":"a"},"message":{"content":"all"}}]}"#;
    let finish = Delta::finish(Finish::written(FinishReason::Stop, "stop"));
    assert_eq!(convert(&[message]), [[Delta::text("all"), finish.clone()]]);
    assert_eq!(convert(&[both, message]), [[Delta::text("a")], [finish]]);
}

#[test]
fn calls_of_whole_message_are_distinguished_by_position() {
    let message = r#"{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":""}},
        {"id":"c","function":{"name":"f"}},{"index":9,"function":{"name":"f"}}]}}]}"#;
    let without_id = |index: i64| {
        let mut fragment = ToolCallDelta::start(index, "", "f");
        fragment.call_id = None;
        fragment
    };
    let calls = DeltaKind::ToolCalls(vec![ToolCallDelta::start(0, "c", "f"), without_id(1), without_id(2)]);
    assert_eq!(convert(&[message]), [[Delta::from(calls)]]);
}

/// What is read of entries with these numbers: texts, `.` for reasoning, `*` for a call, and `!` if they are refused.
fn read_of(entries: &[(u32, &str)]) -> String {
    let mut converter = converter();
    let mut read = String::new();
    for (index, text) in entries {
        let piece = match *text {
            "*" => json!({"tool_calls": [{"index": 0, "id": index, "function": {"name": "f"}}]}),
            "." => json!({"reasoning": "."}),
            "\n*" => {
                json!({"content": "\n", "tool_calls": [{"index": 0, "id": index, "function": {"name": "f"}}]})
            }
            text => json!({"content": text}),
        };
        let json = json!({"choices": [{"index": index, "delta": piece}]}).to_string();
        let mut deltas = VecDeque::new();
        let converted = convert_one(&mut converter, &json, &mut deltas);
        for delta in deltas {
            match delta.kind {
                DeltaKind::Text(text) | DeltaKind::Reasoning(text) => read.push_str(&text),
                DeltaKind::ToolCalls(_) => read.push('*'),
                other => panic!("{other:?}"),
            }
        }
        if matches!(converted, Meaning::Contradiction(_)) {
            return read + "!";
        }
    }
    read
}

/// One answer is asked for.
#[test]
fn of_several_answers_the_first_that_speaks_is_read() {
    for (entries, read) in [
        // Several answers.
        (&[(0, ""), (1, ""), (0, "a"), (1, "x"), (0, "b"), (1, "y")][..], "ab"),
        (&[(0, ""), (1, ""), (1, "a"), (0, "x"), (1, "b")], "ab"),
        (&[(1, ""), (1, "a"), (0, ""), (0, "x"), (1, "b")], "ab"),
        (&[(0, ""), (0, "a"), (1, ""), (1, "x"), (0, "b")], "ab"),
        (&[(0, "a"), (0, "b"), (1, ""), (1, "x"), (1, "y"), (0, "c"), (0, "*")], "abc*"),
        (&[(0, ""), (1, ""), (0, "."), (1, "."), (0, "a"), (1, "x"), (0, "b")], ".ab"),
        // They may be one.
        (&[(0, "a"), (0, "b"), (1, ""), (1, "x"), (2, ".")], "ab!"),
        (&[(0, "."), (0, "."), (0, "a"), (1, "x")], "..a!"),
        (&[(0, "a"), (0, ""), (1, "x")], "a!"),
        (&[(0, "a"), (1, "."), (0, "*"), (2, "x")], "a.*!"),
        (&[(0, "a"), (0, "b"), (1, "c"), (2, "d")], "ab!"),
        (&[(0, "a"), (0, "b"), (1, "\n*")], "ab!"),
        (&[(0, "a"), (0, "b"), (1, ""), (1, "x"), (1, "*")], "ab!"),
        // Their texts were mixed before that was known.
        (&[(0, "a"), (1, "x"), (0, "b")], "ax!"),
        (&[(0, "a"), (1, "*"), (1, "x")], "a*!"),
        (&[(0, ""), (1, ""), (0, "*"), (1, "*")], "*!"),
        (&[(0, "*"), (1, "*"), (0, "*")], "**!"),
        // Numbers of tokens (Q54).
        (&[(0, ""), (0, "*"), (1, "*"), (2, "*")], "***"),
        (&[(0, "a"), (1, "b"), (2, ""), (3, "c")], "abc"),
        (&[(0, ""), (0, "a"), (1, "b"), (2, "c"), (2, "d")], "abcd"),
        // Text and calls in different choices (Q55).
        (&[(0, ""), (0, "a"), (1, ""), (1, "*"), (0, "b"), (1, "*")], "a*b*"),
        (&[(1, "*"), (0, "a"), (0, "b"), (1, "*")], "*ab*"),
        (&[(0, "."), (0, "."), (1, "a"), (1, "b"), (1, "*")], "..ab*"),
    ] {
        assert_eq!(read_of(entries), read, "{entries:?}");
    }
    let whole = |first: Value, second: Value| {
        let event = json!({"choices": [{"index": 0, "message": first}, {"index": 1, "message": second}]});
        convert(&[&event.to_string()]).concat().len()
    };
    let empty = json!([{"type": "text", "text": ""}]);
    let ended = |text: &str, index: u32| {
        json!({"choices": [{"index": index, "delta": {"content": text}, "finish_reason": "stop"}]})
            .to_string()
    };
    let opened = |index: u32| json!({"choices": [{"index": index, "delta": {"content": empty}}]}).to_string();
    let said = |index: u32| json!({"choices": [{"index": index, "delta": {"content": "a"}}]}).to_string();
    let again = json!({"choices": [{"index": 0, "message": {"content": "aa"}}]}).to_string();
    let left_out = convert(&[&said(0), &said(0), &opened(1), &said(1), &ended("", 1)]);
    assert!(left_out[3].is_empty() && left_out[4].is_empty(), "{left_out:?}");
    let cut = json!({"choices": [{"index": 1, "delta": null, "finish_reason": "length"}]}).to_string();
    assert!(convert(&[&said(0), &said(0), &opened(1), &said(1), &cut])[4].is_empty());
    let ends = json!({"choices": [{"index": 0, "delta": null, "finish_reason": "stop"}]}).to_string();
    for (events, mixes) in [
        ([said(0), ends, said(1)].as_slice(), true),
        (&[ended("One.", 0), ended("Other.", 1)], true),
        (&[opened(0), opened(1), said(0), said(0)], false),
        (&[said(0), said(1), again], false),
    ] {
        let mut converter = converter();
        let mut converted = events.iter().map(|json| convert_one(&mut converter, json, &mut VecDeque::new()));
        let found = converted.any(|meaning| matches!(meaning, Meaning::Contradiction(_)));
        assert_eq!(found, mixes, "{events:?}");
    }
    let calls = json!([{"id": "c", "function": {"name": "f"}}]);
    let (text, call) = (json!({"content": "a"}), json!({"content": "", "tool_calls": calls}));
    assert_eq!((whole(text.clone(), call), whole(text.clone(), text)), (2, 1));
}

#[test]
fn citations_are_reported_once_at_answer_end() {
    let event = |finish: &str| {
        format!(
            r#"{{"citations":["u1",{{"url":"u2","title":"t"}}],"choices":[{{"delta":{{}},"finish_reason":{finish}}}]}}"#
        )
    };
    let events = [event("null"), event(r#""stop""#), event(r#""stop""#)];
    let deltas = convert(&events.iter().map(String::as_str).collect::<Vec<_>>());
    let source = |url: &str, title: Option<&str>| {
        let mut citation = Citation::default();
        (citation.url, citation.title) = (Some(url.into()), title.map(Text::from));
        Delta::from(DeltaKind::Citation(Box::new(citation)))
    };
    let finish = Delta::finish(Finish::written(FinishReason::Stop, "stop"));
    assert_eq!(
        deltas,
        [vec![], vec![source("u1", None), source("u2", Some("t")), finish.clone()], vec![finish]]
    );
}

#[test]
fn beside_an_error_there_is_no_finish() {
    for event in [
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"error":{"code":502}}"#,
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"error","error":{"code":502}}]}"#,
        r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"},{"index":1,"error":"m"}]}"#,
    ] {
        assert_eq!(convert(&[event]), [[Delta::text("a")]], "{event}");
    }
    let finish = Delta::finish(Finish::written(FinishReason::Stop, "stop"));
    let mut deltas = VecDeque::from([finish.clone()]);
    let event = r#"{"choices":[{"finish_reason":"stop"}],"error":"m"}"#;
    convert_one(&mut converter(), event, &mut deltas);
    assert_eq!(deltas, [finish], "what an event before it told stays");
}

#[test]
fn error_is_returned_beside_the_deltas() {
    let told = |json: &str| convert_one(&mut converter(), json, &mut VecDeque::new());
    for event in [r#"{"error":{"message":"m"},"choices":[]}"#, r#"{"choices":[{"error":{"message":"m"}}]}"#] {
        let Meaning::Failure(report) = told(event) else { panic!("{event}") };
        assert_eq!(report.message, "m".into());
    }
    for none in ["null", "{}", r#""""#, "false", "0"] {
        let event = format!(r#"{{"error":{none},"choices":[]}}"#);
        assert_eq!(told(&event), Meaning::Piece, "{none}");
    }
    assert_eq!(told(r#"{"choices":[{"delta":{}}]}"#), Meaning::Piece);
    assert_eq!(told(r#"{"choices":[{"message":{}}]}"#), Meaning::Whole);
}

/// Indexes that are no numbers become numbers: equal ones equal, others different.
#[test]
fn law_t6_odd_indexes_stay_apart() {
    let index_of = |index: &str| {
        let event = format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index}}}]}}}}]}}"#);
        let deltas = convert(&[&event]).concat();
        let [Delta { kind: DeltaKind::ToolCalls(calls), .. }] = deltas.as_slice() else {
            panic!("{deltas:?}")
        };
        calls[0].index
    };
    for (written, number) in [("7", 7), ("-1", -1), ("7.0", 7), (r#""7""#, 7)] {
        assert_eq!(index_of(written), Some(number), "{written}");
    }
    assert_eq!(["null", r#""""#].map(index_of), [None, None]);
    let odd =
        ["7.5", r#""x""#, r#""y""#, "1e400", "99999999999999999999", "-99999999999999999999", "[7]", "true"];
    let numbers: HashSet<_> = odd.iter().map(|odd| index_of(odd).expect("an index")).collect();
    assert_eq!(numbers.len(), odd.len());
    assert!(numbers.iter().all(|number| *number < i64::MIN / 2), "{numbers:?}");
    assert!(odd.iter().all(|odd| index_of(odd).is_some_and(|number| numbers.contains(&number))));
}

/// Pieces of raw details are one, as far as they differ only in their texts.
#[test]
fn details_of_reasoning_are_joined() {
    let event = |details: &str| format!(r#"{{"choices":[{{"delta":{{"reasoning_details":[{details}]}}}}]}}"#);
    let piece = |text: &str| event(&format!(r#"{{"type":"reasoning.text","text":"{text}","index":0}}"#));
    let signature = event(r#"{"type":"reasoning.text","signature":"s","index":0}"#);
    let said = r#"{"choices":[{"delta":{"content":"Hi"}}]}"#;
    let events = [piece(r"a\n"), piece(r#"\"b"#), signature, said.to_owned(), piece("c")];
    let (deltas, last) = convert_to_end(&events.each_ref().map(String::as_str));
    let detail = |text: &str| json!({"type": "reasoning.text", "text": text, "index": 0});
    let signed = json!({"type": "reasoning.text", "signature": "s", "index": 0});
    assert_eq!(deltas[..3], [vec![Delta::reasoning("a\n")], vec![Delta::reasoning("\"b")], vec![]]);
    assert_eq!(
        deltas[3],
        [data(json!({"reasoning_details": [detail("a\n\"b"), signed]})), Delta::text("Hi")]
    );
    assert_eq!(last, [data(json!({"reasoning_details": [detail("c")]}))]);
}

#[test]
fn law_r1_details_that_wait_are_bounded() {
    let text = "x".repeat(60 << 10);
    let event = format!(r#"{{"choices":[{{"delta":{{"reasoning_details":[{{"text":"{text}"}}]}}}}]}}"#);
    let emitted = convert(&[&event, &event, &event]).concat();
    assert_eq!(emitted.iter().filter(|delta| matches!(delta.kind, DeltaKind::ReasoningData(_))).count(), 1);
}
