//! Events that match a template give the same deltas as when they are parsed.

use advisor_core::{DeltaKind, Text};
use advisor_test_support::decoding::{self, assert_decoded_as_parsed, decoded};
use advisor_test_support::recordings;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::profile::{Profile, TextMode};
use crate::wire::FORMAT;

/// Returns the number of events in a stream that are read without being parsed.
fn fast_events_in(body: &[u8]) -> usize {
    decoding::fast_events(ChatCompletions::new(TextForm::PLAIN, FORMAT.into()), body) as usize
}

#[test]
fn law_s5_recordings_yield_same_result_on_fast_path() {
    let (mut events, mut fast) = (0, 0);
    for recording in &recordings::all("openai-chat") {
        assert_decoded_as_parsed(decoder, &recording.body, &recording.name);
        let these = fast_events_in(&recording.body);
        let all = recording.body.windows(6).filter(|bytes| bytes == b"data: ").count();
        println!("{}: {these} of {all}", recording.name);
        (events, fast) = (events + all, fast + these);
    }
    println!("{fast} of {events} events are not parsed");
    assert!(fast * 2 >= events, "most events look like one before");
}

/// Returns an event of the usual form.
fn event(content: &str) -> String {
    format!(
        r#"{{"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":"{content}"}},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
    )
}

fn stream(events: &[String]) -> Vec<u8> {
    events.iter().flat_map(|event| format!("data: {event}\n\n").into_bytes()).collect()
}

/// Makes events of one form with different values, and returns how many match a template.
fn fast_events(event: impl Fn(usize) -> String) -> usize {
    let events: Vec<_> = (0..20).map(event).collect();
    let body = stream(&events);
    assert_decoded_as_parsed(decoder, &body, &events[0]);
    fast_events_in(&body)
}

#[test]
fn all_but_first_events_use_fast_path() {
    let words = ["a", "", "naïve 😀", r#"\"q\" \\ \/ \n\t\r\b\f"#, "x"];
    let word = |at: usize| words[at % words.len()];
    // The first emits the origin, and an empty text emits nothing. The third makes the template; three empty
    // ones are parsed.
    assert_eq!(fast_events(|at| event(word(at))), 14);
    let said = |at: usize| format!("w{at}");
    assert_eq!(fast_events(|at| event(&said(at))), 18);
    // Ignored fields differ, too, which makes another template.
    let padded = |at: usize| {
        event(&said(at)).replace("\"object\"", &format!("\"p\":\"{}\",\"object\"", "ab".repeat(at)))
    };
    assert_eq!(fast_events(padded), 17);
    let numbered = |at: usize| event(&said(at)).replace("\"created\":1", &format!("\"created\":{at}"));
    assert_eq!(fast_events(numbered), 17);
    let renamed = |at: usize| event(&said(at)).replace("\"r\"", &format!("\"r{at}\""));
    assert_eq!(fast_events(renamed), 17);
    let counted = |at: usize| {
        let usage = format!(
            r#"{{"prompt_tokens":7,"completion_tokens":{at},"completion_tokens_details":{{"reasoning_tokens":{at}}}}}"#
        );
        event(&said(at)).replace("\"usage\":null", &format!("\"usage\":{usage}"))
    };
    assert_eq!(fast_events(counted), 17);
    for delta in [
        r#""reasoning_content":"W""#,
        r#""content":null,"reasoning":"W""#,
        r#""reasoning":"W","reasoning_content":"W""#,
        r#""refusal":"W""#,
        r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"W"}]}]"#,
        r#""tool_calls":[{"index":0,"function":{"arguments":"W"}}]"#,
        r#""tool_calls":[{"index":1,"id":"c","function":{"name":"f","arguments":"W"}}]"#,
    ] {
        let event = |at: usize| event("x").replace("\"content\":\"x\"", &delta.replace('W', &said(at)));
        assert!(fast_events(event) >= 17, "{delta}");
    }
    let numbered = |at: usize| event(&format!(r"\u00e{at}").chars().take(6).collect::<String>());
    assert_eq!(fast_events(numbered), 18);
}

/// Returns an event with reasoning details as OpenRouter sends them: beside the text, and alone.
fn detailed(text: &str, index: usize) -> String {
    let details =
        format!(r#"[{{"type":"reasoning.text","text":"{text}","format":"unknown","index":{index}}}]"#);
    let delta = format!(r#""reasoning":"{text}","reasoning_details":{details}"#);
    event("x").replace("\"content\":\"x\"", &delta)
}

#[test]
fn law_s5_reasoning_details_join_on_fast_path_too() {
    let signature = event("x").replace(
        "\"content\":\"x\"",
        r#""reasoning_details":[{"type":"reasoning.text","signature":"s","index":0}]"#,
    );
    let said: Vec<_> = (0..12).map(|at| detailed(&format!("w{at} \\n\\u00e9"), 0)).collect();
    assert!(fast_events(|at| detailed(&format!("w{at}"), 0)) >= 17);
    let counted: Vec<_> = said
        .iter()
        .enumerate()
        .map(|(at, event)| event.replace("\"usage\":null", &format!("\"usage\":{{\"total_tokens\":{at}}}")))
        .collect();
    let in_turns: Vec<_> = (0..12).map(|at| detailed(&format!("w{at}"), at / 2 % 2)).collect();
    for said in [said, counted, in_turns] {
        for end in [vec![], vec![signature.clone()], vec![event("y"), detailed("z", 0)], vec!["{".to_owned()]]
        {
            let body = stream(&[said.clone(), end.clone()].concat());
            assert_decoded_as_parsed(decoder, &body, &end.concat());
            let whole = [&body[..], b"data: [DONE]\n\n"].concat();
            assert_decoded_as_parsed(decoder, &whole, &end.concat());
        }
    }
    // All events of one form give one piece of data, after the text and before the next delta.
    let body = stream(
        &[vec![event("x")], (0..9).map(|at| detailed(&at.to_string(), 0)).collect(), vec![event("y")]]
            .concat(),
    );
    let said = decoded(decoder(), &[&body]).deltas;
    let is_data = |delta: &Delta| matches!(delta.kind, DeltaKind::ReasoningData(_));
    let data: Vec<_> =
        said.iter().enumerate().filter(|(_, delta)| delta.as_ref().is_ok_and(is_data)).collect();
    let [(at, Ok(Delta { kind: DeltaKind::ReasoningData(data), .. }))] = data.as_slice() else {
        panic!("{said:?}")
    };
    assert_eq!(data.value["reasoning_details"][0]["text"], "012345678");
    assert_eq!(*at, said.len() - 2);
}

/// The kinds of the deltas of these events, and of their end.
fn kinds(events: &[String]) -> Vec<&'static str> {
    let said = decoded(decoder(), &[&stream(events)]).deltas;
    let kind = |delta: &Result<Delta, String>| match delta.as_ref().map(|delta| &delta.kind) {
        Ok(DeltaKind::Text(_)) => "text",
        Ok(DeltaKind::Reasoning(_)) => "reasoning",
        Ok(DeltaKind::ReasoningData(_)) => "data",
        Ok(DeltaKind::ToolCalls(_)) => "call",
        Ok(_) => "other",
        Err(_) => "error",
    };
    said.iter().map(kind).filter(|kind| *kind != "other").collect()
}

#[test]
fn law_s4_reasoning_details_stay_in_their_place() {
    let encrypted = r#""reasoning_details":[{"type":"reasoning.encrypted","data":"d","index":0}]"#;
    let text = event("x").replace("\"content\":\"x\"", &format!(r#""content":"a",{encrypted}"#));
    assert_eq!(kinds(&[text, event("b")]), ["data", "text", "text"]);
    let call = format!(
        r#"{encrypted},"tool_calls":[{{"index":0,"id":"c","function":{{"name":"f","arguments":"{{}}"}}}}]"#
    );
    let call = event("x").replace("\"content\":\"x\"", &call);
    assert_eq!(kinds(&[call]), ["data", "call"]);
    for error in [
        r#"{"error":{"message":"m","code":502}}"#,
        r#"{"choices":[],"error":{"message":"m","code":502}}"#,
        "{",
    ] {
        let said = [detailed("a", 0), detailed("b", 0), error.to_owned()];
        assert_eq!(kinds(&said), ["reasoning", "reasoning", "data", "error"], "{error}");
    }
}

#[test]
fn law_s5_differing_details_are_parsed() {
    let other = |text: &str, detail: &str| {
        detailed(text, 0).replace(&format!("\"text\":\"{text}\""), &format!("\"text\":\"{detail}\""))
    };
    for events in [
        vec![detailed("a", 0), detailed("b", 0), other("c", "d"), detailed("e", 0)],
        vec![other("a", "b"), other("c", "b"), other("d", "b")],
        vec![other("a", ""), other("c", ""), other("d", "e")],
        vec![detailed("type", 0), detailed("reasoning.text", 0), detailed("unknown", 0), detailed("x", 0)],
    ] {
        assert_decoded_as_parsed(
            decoder,
            &stream(&[vec![event("x")], events.clone()].concat()),
            &events.concat(),
        );
    }
}

/// Entries of some choices, with text, nothing, reasoning or arguments of a call.
fn any_entries() -> impl Strategy<Value = Vec<(u32, u8, String)>> {
    prop::collection::vec((0..3_u32, 0..3_u8, "[a-c]{0,1}"), 1..24)
}

proptest! {
    #[test]
    fn law_s5_choices_are_read_as_parsed(entries in any_entries()) {
        let event = |(index, kind, text): &(u32, u8, String)| {
            let piece = match kind {
                0 => json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": text}}]}),
                1 => json!({"reasoning": text}),
                _ => json!({"content": text}),
            };
            json!({"choices": [{"index": index, "delta": piece}]}).to_string()
        };
        let events: Vec<_> = entries.iter().map(event).collect();
        assert_decoded_as_parsed(decoder, &stream(&events), &events.join("\n"));
    }
}

#[test]
fn law_s5_uncertain_events_are_parsed() {
    let with = |from: &str, to: &str| event("x").replace(from, to);
    let odd = [
        // Invalid JSON in place of the text.
        event("a\u{1}b"),
        event(r"\x"),
        event(r"\ud83d"),
        event(r"\ud83d\ude00"),
        event(r"a\u00e"),
        event(r"a\u00eg"),
        event(r"a\u+0e9"),
        event("\\"),
        // Values in other fields, or repeated ones.
        with(r#""delta":{"content":"x"}"#, r#""other":{"content":"y"},"delta":{"content":"x"}"#),
        with(r#""delta":{"content":"x"}"#, r#""delta":{"content":"x","content":"y"}"#),
        with(r#""content":"x""#, r#""content":"x","reasoning":"y""#),
        with(r#""content":"x""#, r#""content":1"#),
        with(r#""content":"x""#, r#""content":["x"]"#),
        with("\"created\":1", "\"created\":01"),
        with("\"created\":1", "\"created\":1.5"),
        with("\"created\":1", "\"created\":-1"),
        with("\"created\":1", "\"created\":"),
        with("\"finish_reason\":null", "\"finish_reason\":\"stop\""),
        with("\"usage\":null", "\"usage\":{\"total_tokens\":99999999999999999999}"),
        with("\"usage\":null", "\"usage\":null,\"error\":{\"message\":\"m\"}"),
        with("\"choices\"", "\"choices\":null,\"choices\""),
        event("x").trim_end_matches('}').to_owned(),
    ];
    for odd in odd {
        let events = [event("a"), event("b"), event("c"), odd.clone(), event("d"), event("e")];
        assert_decoded_as_parsed(decoder, &stream(&events), &odd);
    }
}

/// A value in a slot is checked even if earlier events had different values in it.
#[test]
fn law_s5_uncertain_open_gap_content_is_parsed() {
    let varied = |created: &str, word: &[u8]| {
        let event = event("x").replace("\"created\":1", &format!("\"created\":{created}"));
        let (before, behind) = event.split_at(1);
        [b"data: ", before.as_bytes(), b"\"p\":\"", word, b"\",", behind.as_bytes(), b"\n\n"].concat()
    };
    let usual: Vec<_> = (1..6).map(|at| varied(&at.to_string(), "ab".repeat(at).as_bytes())).collect();
    let usual = usual.concat();
    assert_eq!(fast_events_in(&usual), 2);
    let created = [
        "01", "00", "0", "1.5", "1e3", "-1", "", "1 ", " 1", "x", "null", "\"7\"", "{}",
        "99999999999999999999",
    ];
    let words: [&[u8]; 14] = [
        b"\x01",
        b"\\x",
        b"\\",
        b"\\ud83d",
        b"\\ud83d\\ude00",
        b"\\u00e",
        b"\xc3",
        b"\xff",
        b"\xed\xa0\xbd",
        b"a\"",
        b"a\nb",
        b"\",\"choices\":null,\"q\":\"",
        b"",
        b"\xc3\xa9",
    ];
    let odd = created.map(|created| varied(created, b"abab")).into_iter();
    for odd in odd.chain(words.map(|word| varied("7", word))) {
        let name = String::from_utf8_lossy(&odd).into_owned();
        assert_decoded_as_parsed(decoder, &[&usual[..], &odd, &usual].concat(), &name);
    }
}

/// Pieces of two calls with one id differ in the index. No piece is assigned to the other call.
#[test]
fn law_s5_pieces_of_same_id_calls_keep_index() {
    let piece = |index: usize, keys: &str, arguments: usize| {
        let call =
            format!(r#""tool_calls":[{{"index":{index}{keys},"function":{{"arguments":"{arguments}"}}}}]"#);
        event("x").replace("\"content\":\"x\"", &call)
    };
    for keys in ["", r#","id":"x""#, r#","id":"x","type":"function""#] {
        // Alternating, and with each call's pieces in a row.
        for index in [|at: usize| at % 2, |at: usize| at / 8 % 2] {
            let events: Vec<_> = (0..40).map(|at| piece(index(at), keys, at)).collect();
            let body = stream(&events);
            assert_decoded_as_parsed(decoder, &body, keys);
            assert!(fast_events_in(&body) >= 30, "{keys}");
            let mut decoder = decoder();
            decoder.push(body.into());
            let said = std::iter::from_fn(|| decoder.next()).filter_map(|delta| match delta.unwrap().kind {
                DeltaKind::Arguments { index, text } => Some((index, text)),
                DeltaKind::ToolCalls(mut calls) => {
                    let call = calls.pop().unwrap();
                    assert_eq!(call.call_id.as_deref(), Some("x"));
                    Some((call.index, call.arguments_delta.unwrap()))
                }
                _ => None,
            });
            let expected = (0..40).map(|at| (Some(index(at) as i64), Text::from(at.to_string().as_str())));
            assert_eq!(said.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{keys}");
        }
    }
}

/// An odd index identifies its call in an event that matches a template, too.
#[test]
fn law_s5_odd_index_is_same_on_fast_path() {
    let piece = |index: &str, keys: &str, at: usize| {
        let call = format!(r#""tool_calls":[{{"index":{index}{keys},"function":{{"arguments":"{at}"}}}}]"#);
        event("x").replace("\"content\":\"x\"", &call)
    };
    for odd in [
        ["1180591620717411303424", "1e30"],
        ["0.5", "1e400"],
        ["\"a\"", "-9223372036854775808"],
        ["{}", "true"],
    ] {
        for keys in ["", r#","id":"x""#] {
            for index in [|at: usize| at % 2, |at: usize| at / 8 % 2] {
                let body = stream(&(0..40).map(|at| piece(odd[index(at)], keys, at)).collect::<Vec<_>>());
                assert_decoded_as_parsed(decoder, &body, odd[0]);
                assert!(fast_events_in(&body) >= 30, "{odd:?} {keys}");
            }
        }
    }
    // An index or id that is not kept is new each time, so such an event must not match a template.
    let long = format!("\"{}\"", "a".repeat(65));
    let body = stream(&(0..40).map(|at| piece(&long, "", at)).collect::<Vec<_>>());
    assert_decoded_as_parsed(decoder, &body, "an index that is not kept");
    let ids = |at: usize| format!(r#","id":"sk-0123456789abcdef{}{}""#, "a".repeat(2000), at % 2);
    let body = stream(&(0..40).map(|at| piece("0", &ids(at), at)).collect::<Vec<_>>());
    assert_decoded_as_parsed(decoder, &body, "an id that is not kept");
}

/// Token counts are kept while events match, and emitted before anything else.
#[test]
fn law_s5_counts_of_fast_path_events_are_emitted() {
    let counted = |at: usize, choice: usize| {
        let cached = if choice == 1 {
            format!(",\"prompt_tokens_details\":{{\"cached_tokens\":{at}}}")
        } else {
            String::new()
        };
        event(&format!("{at}"))
            .replace("\"usage\":null", &format!("\"usage\":{{\"completion_tokens\":{at}{cached}}}"))
            .replace("\"index\":0", &format!("\"index\":{choice}"))
    };
    let last =
        |rest: &str| [counted(8, 1), counted(9, 0)].map(|event| format!("data: {event}\n\n")).concat() + rest;
    let known = stream(&(1..8).map(|at| counted(at, at % 2)).collect::<Vec<_>>());
    for end in [
        last(""),
        last("data: \u{0}\n\n"),
        last("data: [DONE]\n\n"),
        last("event: error\ndata: {}\n\n"),
        last(&format!("data: {}\n\n", counted(10, 2))),
    ] {
        assert_decoded_as_parsed(decoder, &[&known, end.as_bytes()].concat(), &end);
    }
    for count in [
        "0", "1234567", "12345678", "9223372036854775807", "9223372036854775808", "99999999999999999999",
        "01", "-1", "1.5", "1e3", "null", "\"7\"", "",
    ] {
        let odd = counted(7777, 0).replace("\":7777", &format!("\":{count}"));
        let end = last(&format!("data: {odd}\n\n"));
        assert_decoded_as_parsed(decoder, &[&known, end.as_bytes()].concat(), count);
    }
    let cut = [&known, last("data: \n").as_bytes(), b"data: \xff\n\n"].concat();
    assert!(decoded(decoder(), &[&cut]).deltas.last().unwrap().is_err());
    assert_decoded_as_parsed(decoder, &cut, "no UTF-8");
}

/// The first half of a character waits for the second half, but not beyond an event in between.
#[test]
fn law_s5_character_halves_never_join_across_fast_path_event() {
    let halves = [r"x\ud83d", "c", r"\ude00y"];
    let events = ["a", "b", "c"].into_iter().chain(halves).chain(["d", r"\ud83d", r"\ude00"]).map(event);
    assert_decoded_as_parsed(decoder, &stream(&events.collect::<Vec<_>>()), "halves");
}

#[test]
fn law_s5_multi_line_events_teach_no_pattern() {
    let lines = |text: &str| {
        let event = event(text);
        let (start, end) = event.split_at(event.find("\"created\"").unwrap());
        [format!("data: {start}\ndata: {end}\n\n"), format!("data: {start}\n{end}\n\n")]
    };
    let usual: String = ["a", "b", "c", "d"].into_iter().map(|text| lines(text)[0].clone()).collect();
    let [_, odd] = lines("e");
    assert_decoded_as_parsed(decoder, format!("{usual}{odd}{usual}").as_bytes(), &odd);
}

#[test]
fn law_s5_lines_around_event_must_match() {
    let usual = stream(&[event("a"), event("b"), event("c")]);
    let next = event("d");
    let (start, end) = next.split_at(40);
    for framed in [
        format!("event: error\ndata: {next}\n\n"),
        format!("event: x\ndata: {next}\n\n"),
        format!("data: {next}\nevent: error\n\n"),
        format!("data: {next}\ndata: {next}\n\n"),
        format!("data: {start}\ndata: {end}\n\n"),
        format!("id: 7\ndata: {next}\n\n"),
        format!(": comment\ndata: {next}\n\n"),
        format!("data:{next}\n\n"),
        format!("data: {next}\r\n\r\n"),
        format!("data: {next}\r\r"),
        format!("data: {next}\n\r\n"),
        format!("\r\ndata: {next}\n\n"),
        format!("data: {next}\n"),
        format!("data: {next}"),
    ] {
        let body = [&usual, framed.as_bytes(), &usual].concat();
        assert_decoded_as_parsed(decoder, &body, &framed);
        assert_decoded_as_parsed(decoder, &[&usual, framed.as_bytes()].concat(), &framed);
    }
    // Token counts of an event that is not taken are not emitted.
    let counted = |at: usize| {
        event(&format!("{at}")).replace("\"usage\":null", &format!("\"usage\":{{\"total_tokens\":{at}}}"))
    };
    let usual = stream(&[counted(1), counted(2), counted(3), counted(4)]);
    let trailing = format!("data: {}", counted(5));
    assert_decoded_as_parsed(decoder, &[&usual, trailing.as_bytes()].concat(), &trailing);
    for framed in [format!("data: {}x\n\n", counted(5)), format!("data: {}\nevent: error\n\n", counted(5))] {
        assert_decoded_as_parsed(decoder, &[&usual, framed.as_bytes()].concat(), &framed);
    }
    let not_utf8 = [&usual[..], b"data: ", event("a\u{e9}").as_bytes()].concat();
    let mut cut = not_utf8.clone();
    cut.remove(cut.iter().rposition(|byte| *byte == 0xA9).unwrap());
    cut.extend_from_slice(b"\n\n");
    assert_decoded_as_parsed(decoder, &cut, "no UTF-8");
}

#[test]
fn limits_hold_for_fast_path_events() {
    let body = stream(&[event("a"), event("b"), event("c"), event(&"long".repeat(100)), event("d")]);
    let limits = SseLimits { line: 300, ..SseLimits::default() };
    let limited = || decoder_with(TextForm::PLAIN, limits);
    let said = decoded(limited(), &[&body]).deltas;
    assert!(said.last().unwrap().as_ref().unwrap_err().contains("TooLarge"), "{said:?}");
    assert_eq!(said, decoded(limited().without_fast_path(), &[&body]).deltas);
}

#[test]
fn law_s5_non_string_text_is_always_parsed() {
    let with = |delta: &str| event("x").replace("\"content\":\"x\"", delta);
    let thought = |text: &str| {
        with(&format!(
            r#""reasoning":true,"content":[{{"type":"thinking","thinking":[{{"type":"text","text":"{text}"}}]}}]"#
        ))
    };
    let id = |id: &str| event("x").replace("\"id\":\"r\"", &format!("\"id\":{id}"));
    let endless = format!("1{}", "0".repeat(400));
    for events in [
        vec![
            event("x"),
            with(r#""reasoning_content":5,"reasoning":"5""#),
            with(r#""reasoning_content":5,"reasoning":"6""#),
        ],
        vec![event("x"), thought("true"), thought("false")],
        vec![id("100"), id("101"), id("102"), id("103"), id(&endless)],
    ] {
        assert_decoded_as_parsed(decoder, &stream(&events), events.last().unwrap());
    }
}

#[test]
fn no_long_event_is_kept() {
    let long = |at: usize| event(&"x".repeat(17 << 10)).replace("\"m\"", &format!("\"m{at}\""));
    assert_eq!(fast_events(long), 0);
}

#[test]
fn cumulative_texts_are_parsed() {
    let body = stream(&["a", "ab", "abc", "abcd"].map(event));
    let mut profile = Profile::compatible();
    profile.text = TextMode::Cumulative;
    let cumulative = decoder_with(TextForm::new(&profile), SseLimits::default());
    let said = decoded(cumulative, &[&body]).deltas;
    let texts = said.into_iter().filter_map(|delta| match delta.unwrap().kind {
        DeltaKind::Text(text) => Some(text),
        _ => None,
    });
    assert_eq!(texts.collect::<Vec<_>>(), ["a", "b", "c", "d"]);
}

#[test]
fn learning_ends_when_events_share_no_form() {
    let unlike = |at: usize| event("x").replace("\"logprobs\":null", &format!("\"logprobs{at}\":null"));
    let mut decoder = decoder();
    let mut known_after = |events: std::ops::Range<usize>| {
        decoder.push(stream(&events.map(unlike).collect::<Vec<_>>()).into());
        while decoder.next().is_some() {}
        format!("{decoder:?}")
    };
    assert!(known_after(0..50).contains("FastPath { templates: 8, .. }"));
    // No event is compared with a template any more.
    assert!(known_after(50..100).contains("FastPath { templates: 0, .. }"));
    assert_eq!(fast_events(unlike), 0);
}
