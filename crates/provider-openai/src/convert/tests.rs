use advisor_core::{Finish, FinishReason, Media, Usage};

use super::*;

/// Converts these events with a new converter. Returns one list of deltas for each.
fn convert_with(mode: TextMode, events: &[&str]) -> Vec<Vec<Delta>> {
    let mut converter = Converter::new(mode, Redaction::default());
    let read = |json: &&str| {
        let mut deltas = VecDeque::new();
        converter.convert(serde_json::from_str(json).expect(json), &mut deltas);
        deltas.into()
    };
    events.iter().map(read).collect()
}

fn convert(events: &[&str]) -> Vec<Vec<Delta>> {
    convert_with(TextMode::Increments, events)
}

/// Returns the deltas of one event whose only choice has this delta.
fn of_delta(delta: &str) -> Vec<Delta> {
    convert(&[&format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#)]).remove(0)
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
                DeltaKind::Media(Box::new(Media::from_bytes("image/png", vec![1, 2, 3]))).into(),
                DeltaKind::Media(Box::new(Media::from_url("image/*", "https://x/y.png"))).into(),
                opaque("image", json!({"odd": 1})),
            ],
        ),
        (
            "sound with its words",
            r#"{"audio":{"id":"a1","transcript":"Hi","data":"AA=="}}"#,
            vec![Delta::text("Hi"), opaque("audio", json!({"id": "a1", "transcript": "Hi", "data": "AA=="}))],
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

#[test]
fn finish_reasons_keep_the_providers_word() {
    use FinishReason::{ContentFilter, Interrupted, Length, Other, Paused, Refusal, Stop, ToolCalls};
    let cases = [
        ("stop", Stop),
        ("STOP", Stop),
        ("eos", Stop),
        ("end_turn", Stop),
        ("length", Length),
        ("model_length", Length),
        ("MAX_TOKENS", Length),
        ("tool_calls", ToolCalls),
        ("function_call", ToolCalls),
        ("content_filter", ContentFilter),
        ("refusal", Refusal),
        ("pause_turn", Paused),
        ("error", Interrupted),
        ("insufficient_system_resource", Interrupted),
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

#[test]
fn choices_keep_their_numbers() {
    let event = r#"{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}},{"index":-3,"delta":{"content":"c"}}]}"#;
    assert_eq!(convert(&[event]), [[Delta::text("b").with_choice(1), Delta::text("a"), Delta::text("c")]]);
}

#[test]
fn cumulative_text_is_told_as_increments() {
    let event = |index: u32, text: &str| {
        format!(r#"{{"choices":[{{"index":{index},"delta":{{"content":"{text}"}}}}]}}"#)
    };
    let events = [event(0, "He"), event(1, "Bye"), event(0, "Hello"), event(0, "Hello"), event(0, "!")];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let texts = |mode| -> Vec<Delta> { convert_with(mode, &events).concat() };
    let expected = [
        Delta::text("He"),
        Delta::text("Bye").with_choice(1),
        Delta::text("llo"),
        Delta::text(""),
        Delta::text("!"),
    ];
    assert_eq!(texts(TextMode::Cumulative), expected);
    assert_eq!(texts(TextMode::Increments).len(), 5);
    assert_eq!(texts(TextMode::Increments)[2], Delta::text("Hello"));
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
    let event =
        serde_json::from_str(r#"{"choices":[{"finish_reason":"stop"}],"error":"m"}"#).expect("an event");
    Converter::default().convert(event, &mut deltas);
    assert_eq!(deltas, [finish], "what an event before it told stays");
}

#[test]
fn an_error_is_told_beside_the_deltas() {
    let told = |json: &str| {
        Converter::default().convert(serde_json::from_str(json).expect(json), &mut VecDeque::new())
    };
    assert_eq!(
        told(r#"{"error":{"message":"m"},"choices":[]}"#).error.map(|error| error.message),
        Some("m".into())
    );
    assert_eq!(
        told(r#"{"choices":[{"error":{"message":"m"}}]}"#).error.map(|error| error.message),
        Some("m".into())
    );
    for none in ["null", "{}", r#""""#, "false", "0"] {
        assert_eq!(told(&format!(r#"{{"error":{none}}}"#)).error, None, "{none}");
    }
    assert!(!told(r#"{"choices":[{"delta":{}}]}"#).whole);
    assert!(told(r#"{"choices":[{"message":{}}]}"#).whole);
}

/// Returns the calls of an answer, as name and id.
fn called(converter: &mut Converter, calls: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut deltas = VecDeque::new();
    for (at, (name, id)) in calls.iter().enumerate() {
        let call = json!({"index": at, "id": id, "function": {"name": name, "arguments": "{}"}});
        let event = json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string();
        converter.convert(serde_json::from_str(&event).expect("an event"), &mut deltas);
    }
    let fragments = deltas.into_iter().filter_map(|delta| match delta.kind {
        DeltaKind::ToolCalls(mut fragments) => fragments.pop(),
        _ => None,
    });
    let word = |text: Option<Text>| text.map_or_else(String::new, |text| text.to_string());
    fragments.map(|fragment| (word(fragment.name), word(fragment.call_id))).collect()
}

const KEY: &str = "canary~of.no-vendor";

fn knowing_a_secret() -> Converter {
    Converter::new(TextMode::Increments, Redaction::new([KEY.into()].into_iter()))
}

#[test]
fn law_t6_redacted_ids_stay_distinct_and_stable() {
    let [key, upper, cut] = [KEY, &KEY.to_ascii_uppercase(), &KEY[..15]].map(str::to_owned);
    let long = |end: &str| format!("{KEY}{}{end}", "x".repeat(20 << 10));
    let (one, two) = (long("1"), long("2"));
    let ids = [
        &key, &upper, &cut, "sk-0123456789abcdef", "sk-0123456789abcdeg", "[secret]", "[secret]-2", "call_1",
        "c-[secret]", &one, &two,
    ];
    let calls = ids.map(|id| ("f", id));
    let mut converter = knowing_a_secret();
    let first = called(&mut converter, &calls);
    let shown: std::collections::HashSet<_> = first.iter().map(|(_, id)| id).collect();
    assert_eq!(shown.len(), ids.len(), "{first:?}");
    assert_eq!((first[0].1.as_str(), first[7].1.as_str()), ("[secret]", "call_1"));
    // Also when they are repeated, and in another answer.
    assert_eq!(called(&mut converter, &calls[..9]), first[..9]);
    assert_eq!(called(&mut knowing_a_secret(), &calls), first);
    // An id that is not kept has a number that no other id gets.
    let endless = format!("sk-{}", "0123456789".repeat(2 << 10));
    let calls = [&*endless, "[secret]-2049", "[secret]-2050", "[secret]", &endless].map(|id| ("f", id));
    let shown = called(&mut knowing_a_secret(), &calls);
    let different: std::collections::HashSet<_> = shown.iter().collect();
    assert_eq!((different.len(), shown[0].1.as_str()), (calls.len(), "[secret]-2049"), "{shown:?}");
    let told = format!("{first:?} {converter:?}").to_ascii_lowercase();
    assert!(!told.contains(&KEY[..12]) && !told.contains("0123456789"), "{told}");
}

#[test]
fn law_r3_answer_names_hide_apparent_secrets() {
    let upper = KEY.to_ascii_uppercase();
    for word in [KEY, &upper, &KEY[2..16], "sk-proj-0123456789abcdef"] {
        let event = json!({"id": word, "model": word, "choices": [{"delta": {"content": "a"}, "finish_reason": word}]}).to_string();
        let mut deltas = VecDeque::new();
        let mut converter = knowing_a_secret();
        converter.convert(serde_json::from_str(&event).expect("an event"), &mut deltas);
        let shown = format!("{deltas:?} {:?}", called(&mut converter, &[(word, word)]));
        assert!(!shown.contains(word) && shown.matches("[secret]").count() >= 5, "{shown}");
    }
}

/// A caller may give a tool any name: a call of it is found.
#[test]
fn a_tool_of_the_request_keeps_its_name() {
    let odd = ["sk-learn-something-else", KEY, "fw_update", "docs.search-0123456789"];
    let chosen = "sk-learn-another-thing";
    let offered =
        odd.iter().map(|name| advisor_core::ToolDefinition::new(*name, "", json!({"type": "object"})));
    let mut request = advisor_core::ChatRequest::new(advisor_core::Message::user("x"));
    request
        .options
        .extra
        .insert("tools".to_owned(), offered.map(|tool| json!({"function": {"name": tool.name}})).collect());
    request.options.tool_choice = Some(advisor_core::ToolChoice::Tool(chosen.into()));
    let body = crate::request::body(&request, "m", true, &crate::Profile::openai()).expect("a body");
    let calls = odd.map(|name| (name, "c"));
    let mut converter = knowing_a_secret();
    converter.set_tools(body.names);
    let names = called(&mut converter, &calls).into_iter().map(|(name, _)| name);
    assert_eq!(names.collect::<Vec<_>>(), odd);
    assert_eq!(called(&mut converter, &[(chosen, "c")])[0].0, chosen);
    assert_eq!(called(&mut converter, &[("sk-learn-something-new-0123456789", "c")])[0].0, "[secret]");
}

/// A known finish reason is not lost if it contains a secret.
#[test]
fn known_finish_reason_survives_similar_secret() {
    for (secret, word, reason) in [
        ("filter-strict", "content_filter", FinishReason::ContentFilter),
        ("content_filter", "content_filter", FinishReason::ContentFilter),
        ("stop-on-error", "stop", FinishReason::Stop),
        ("length", "LENGTH", FinishReason::Length),
        ("function_call-0123", "function_call", FinishReason::ToolCalls),
        ("refusal-of-service", "refusal", FinishReason::Refusal),
    ] {
        let mut converter = Converter::new(TextMode::Increments, Redaction::new([secret.into()].into_iter()));
        let mut deltas = VecDeque::new();
        let event = json!({"choices": [{"delta": {}, "finish_reason": word}]}).to_string();
        converter.convert(serde_json::from_str(&event).expect("an event"), &mut deltas);
        assert_eq!(deltas, [Delta::finish(Finish::written(reason, word))], "{secret}");
    }
    let [finish] = &convert(&[r#"{"choices":[{"delta":{},"finish_reason":"sk-0123456789abcdef"}]}"#])[0][..]
    else {
        panic!("one delta")
    };
    let unknown = Finish::written(FinishReason::Other("[secret]".into()), "[secret]");
    assert_eq!(*finish, Delta::finish(unknown));
}

/// Few odd indexes and ids are kept, however many a server sends, and none equals another.
#[test]
fn law_r1_kept_odd_indexes_and_ids_are_bounded() {
    let mut converter = Converter::default();
    let (mut indexes, mut ids) = (std::collections::HashSet::new(), std::collections::HashSet::new());
    let mut last = [None, None];
    for number in 0..3000 {
        let padding = "y".repeat(number % 3 * 1000);
        let short = number % 3 == 0;
        let index = if short { format!("x{number}") } else { format!("x{number}{padding}") };
        let call = json!({"index": index, "id": format!("sk-0123456789abcdef{number}{padding}")});
        let event = json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string();
        let mut deltas = VecDeque::new();
        converter.convert(serde_json::from_str(&event).expect("an event"), &mut deltas);
        let Some(DeltaKind::ToolCalls(calls)) = deltas.pop_front().map(|delta| delta.kind) else {
            panic!("a call")
        };
        assert!(indexes.insert(calls[0].index.expect("an index")), "{number}");
        assert!(ids.insert(calls[0].call_id.clone().expect("an id")), "{number}");
        last.rotate_left(1);
        last[1] = calls[0].index;
    }
    let kept = format!("{converter:?}");
    assert!(kept.contains("odd: 1000") && kept.contains("hidden: 1024"), "{kept}");
    // A kept index stays the same, and any other is new each time.
    let index_of = |converter: &mut Converter, index: &str| {
        let event = json!({"choices": [{"delta": {"tool_calls": [{"index": index}]}}]}).to_string();
        let mut deltas = VecDeque::new();
        converter.convert(serde_json::from_str(&event).expect("an event"), &mut deltas);
        match deltas.pop_front().map(|delta| delta.kind) {
            Some(DeltaKind::ToolCalls(calls)) => calls[0].index,
            _ => None,
        }
    };
    assert_eq!(index_of(&mut converter, "x0"), Some(i64::MIN));
    for number in 0..50 {
        index_of(&mut converter, &format!("z{number}"));
    }
    assert!(format!("{converter:?}").contains("odd: 1024"));
    let again = [0, 1].map(|_| index_of(&mut converter, "z49"));
    assert_ne!(again[0], again[1]);
}
