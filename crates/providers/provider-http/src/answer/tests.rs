//! Tests of `answer`.

use std::collections::VecDeque;

use advisor_core::{
    ChatOptions, ChatRequest, ErrorKind, Finish, FinishReason, Message, ToolCallDelta, ToolChoice, Usage,
};
use serde_json::Value;

use super::*;
use crate::names::{IdRule, NameRule, WireNames};

/// A wire format of server-sent events with fields for each kind of delta.
#[derive(Debug, Default)]
pub(crate) struct Sayings;
/// The same events as lines.
#[derive(Debug, Default)]
struct SayingLines;

fn read(event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
    let event: Value = serde_json::from_str(event.data)?;
    let known = ["say", "stop", "tokens"].iter().any(|key| event.get(key).is_some());
    if !known {
        return Ok(Meaning::from_json(&event));
    }
    let tokens = event["tokens"].as_u64();
    let say = event["say"].as_str().filter(|text| !text.is_empty());
    let new =
        say.map(Delta::text).into_iter().chain(tokens.map(|tokens| Delta::usage(Usage::new(tokens, 0))));
    let stop = (event["stop"] == true).then(|| Delta::finish(FinishReason::Stop));
    let done = (event["stop"] == "done").then(Delta::done);
    let by = event["by"].as_str();
    let origin = by.map(|by| Delta::origin(Some(by.into()), Some(by.into())));
    let stop = stop
        .map(|stop| by.map_or(stop, |by| Delta::finish(Finish::written(FinishReason::Other(by.into()), by))));
    deltas.extend(origin.into_iter().chain(new).chain(stop).chain(done));
    if event.get("error").is_some() {
        return Ok(Meaning::from_json(&event));
    }
    Ok(if event["stop"] == "whole" { Meaning::Whole } else { Meaning::Piece })
}

macro_rules! format_of {
    ($format:ty, $framing:expr, $marker:expr) => {
        impl WireFormat for $format {
            const FRAMING: Framing = $framing;
            const END_MARKER: Option<&'static str> = $marker;

            fn read(
                &mut self,
                event: AnswerEvent<'_>,
                deltas: &mut VecDeque<Delta>,
            ) -> serde_json::Result<Meaning> {
                read(event, deltas)
            }
        }
    };
}
format_of!(Sayings, Framing::Sse, Some("[END]"));
format_of!(SayingLines, Framing::Lines, None);

pub(crate) fn decoder<W: WireFormat + Default>() -> AnswerDecoder<W> {
    AnswerDecoder::new(W::default(), SseLimits::default(), Redaction::default())
}

/// Returns the deltas and the error of a body in these pieces, and its end before `finish`.
fn read_in<W: WireFormat>(
    mut decoder: AnswerDecoder<W>,
    pieces: &[&[u8]],
) -> (Vec<Delta>, Option<ErrorKind>, End) {
    let mut deltas = Vec::new();
    let mut failed = None;
    let mut take = |decoder: &mut AnswerDecoder<W>| {
        while let Some(delta) = decoder.next() {
            match delta {
                Ok(delta) => deltas.push(delta),
                Err(error) => failed = Some(error.kind()),
            }
        }
    };
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        take(&mut decoder);
    }
    let end = decoder.end();
    decoder.finish();
    take(&mut decoder);
    (deltas, failed, end)
}

/// Reads a body whole and byte by byte, which must not differ.
fn outcome<W: WireFormat + Default>(body: &str) -> (Vec<Delta>, Option<ErrorKind>, End) {
    let whole = read_in(decoder::<W>(), &[body.as_bytes()]);
    let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    assert_eq!(read_in(decoder::<W>(), &bytes), whole, "{body}");
    whole
}

fn texts(deltas: &[Delta]) -> Vec<&str> {
    let text = |delta: &'_ Delta| matches!(delta.kind, advisor_core::DeltaKind::Text(_));
    deltas
        .iter()
        .filter(|delta| text(delta))
        .filter_map(|delta| match &delta.kind {
            advisor_core::DeltaKind::Text(text) => Some(&**text),
            _ => None,
        })
        .collect()
}

const EVENTS: [&str; 5] =
    [r#"{"say":"a"}"#, r#"{"say":"b"}"#, r#"{"say":"c"}"#, r#"{"say":"[d]"}"#, r#"{"stop":true}"#];

#[test]
fn law_s5_every_framing_gives_same_deltas() {
    let sse: String = EVENTS.iter().map(|event| format!("data: {event}\n\n")).collect();
    let lines = EVENTS.join("\n") + "\n";
    let expected = outcome::<Sayings>(&sse);
    assert_eq!(
        (texts(&expected.0), expected.1, expected.2),
        (vec!["a", "b", "c", "[d]"], None, End::Finished)
    );
    for body in [lines.clone(), lines.replace('\n', "\r\n"), EVENTS.concat() + "\n", format!("{lines}\n")] {
        assert_eq!(outcome::<SayingLines>(&body), expected, "{body}");
        // An event stream may turn out to be lines of JSON.
        assert_eq!(outcome::<Sayings>(&body), expected, "{body}");
        // The end of the body ends a line.
        assert_eq!(outcome::<Sayings>(body.trim_end()).0, expected.0, "{body}");
    }
}

/// Reads a body in two pieces, cut at each byte, and byte by byte, which must not differ from the whole.
fn outcome_at_every_split<W: WireFormat + Default>(body: &str) -> (Vec<Delta>, Option<ErrorKind>) {
    let (deltas, failed, _) = outcome::<W>(body);
    for at in 0..=body.len() {
        let (left, right) = body.as_bytes().split_at(at);
        let (cut, failed_too, _) = read_in(decoder::<W>(), &[left, right]);
        assert_eq!((&cut, failed_too), (&deltas, failed), "{body} at {at}");
    }
    (deltas, failed)
}

#[test]
fn law_s5_kind_of_body_is_equal_at_any_split() {
    let event = "data: {\"say\":\"a\"}\n\n";
    let marks = ["", "\u{feff}", "\r\n ", "\u{feff}\n"];
    for (mark, first) in marks.iter().flat_map(|mark| {
        ["", "event: x\n", ": hi\n\n", ":\n", "id: 1\n", "retry: 5\n"].map(|first| (mark, first))
    }) {
        let body = format!("{mark}{first}{event}");
        assert_eq!(outcome_at_every_split::<SayingLines>(&body), (vec![Delta::text("a")], None), "{body}");
    }
    for words in [
        "d", "data", "data is lost", "database: down", "e", "event", "events: none", "error: no", "id",
        "retry later",
    ] {
        for body in marks.map(|mark| format!("{mark}{words}")) {
            let (deltas, failed) = outcome_at_every_split::<SayingLines>(&body);
            assert!(
                deltas.is_empty() && matches!(failed, Some(ErrorKind::Protocol { .. })),
                "{body}: {failed:?}"
            );
        }
    }
}

#[test]
fn values_may_take_several_lines() {
    let expected = outcome::<SayingLines>(&EVENTS.join("\n"));
    let spread = EVENTS.iter().map(|event| event.replace('{', "{\n").replace('}', "\n}\n"));
    let spread: String = spread.collect();
    assert_eq!(outcome::<SayingLines>(&spread).0, expected.0);
    assert_eq!(outcome_at_every_split::<Sayings>(&spread).0, expected.0);
    // Behind a line, each value ends on its line.
    let (deltas, failed) = outcome_at_every_split::<SayingLines>("{\"say\":\"a\"}\n{\n\"say\":\"b\"}\n");
    assert_eq!((texts(&deltas), failed), (vec!["a"], Some(ErrorKind::Protocol { position: Some(12) })));
}

#[test]
fn finish_reason_survives_similar_secret() {
    let redaction = Redaction::new(["filter-strict".to_owned().into()].into_iter());
    let mut decoder = AnswerDecoder::new(Sayings, SseLimits::default(), redaction);
    decoder.push("data: {\"say\":\"a\",\"by\":\"content_filter\",\"stop\":true}\n\n".into());
    let finish = std::iter::from_fn(|| decoder.next()).filter_map(Result::ok).last();
    let expected = Finish::written(FinishReason::Other("content_filter".into()), "content_filter");
    assert_eq!(finish, Some(Delta::finish(expected)));
}

#[test]
fn law_r3_names_of_an_answer_hide_keys() {
    let redaction = Redaction::new(["canary-0123456789".to_owned().into()].into_iter());
    let mut decoder = AnswerDecoder::new(Sayings, SseLimits::default(), redaction);
    decoder.push("data: {\"say\":\"a\",\"by\":\"canary-0123456789\",\"stop\":true}\n\n".into());
    let deltas: Vec<_> = std::iter::from_fn(|| decoder.next()).map(|delta| delta.expect("a delta")).collect();
    let shown = format!("{deltas:?}");
    assert!(!shown.contains("canary") && shown.matches("[secret]").count() == 4, "{shown}");
}

/// A format whose every line is the id and the name of a call.
#[derive(Debug)]
struct CallLines;

impl WireFormat for CallLines {
    const FRAMING: Framing = Framing::Lines;

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let word: String = serde_json::from_str(event.data)?;
        deltas.push_back(Delta::tool_call(ToolCallDelta::start(0, word.clone(), word)));
        Ok(Meaning::Piece)
    }
}

#[test]
fn law_r3_calls_of_an_answer_hide_keys() {
    let redaction = Redaction::new(["canary-0123456789".to_owned().into()].into_iter());
    let tool_choice = Some(ToolChoice::Tool("docs.search".into()));
    let options = ChatOptions { tool_choice, ..ChatOptions::default() };
    let request = ChatRequest { options, ..ChatRequest::new(Message::user("x")) };
    let names = WireNames::new(&request, IdRule::Any, NameRule::Word, &[]);
    let decoder = AnswerDecoder::new(CallLines, SseLimits::default(), redaction);
    let body = b"\"canary-0123456789\"\n\"docs_search\"\n";
    let (deltas, _, _) = read_in(decoder.with_tools(Arc::new(names)), &[body]);
    let hidden = Redaction::new(["canary-0123456789".to_owned().into()].into_iter());
    let expected = [(&*hidden.call_id("canary-0123456789"), "[secret]"), ("docs_search", "docs.search")]
        .map(|(id, name)| Delta::tool_call(ToolCallDelta::start(0, id, name)));
    assert_eq!(deltas, expected);
}

#[test]
fn values_arrive_before_the_body_ends() {
    let mut lines = decoder::<SayingLines>();
    lines.push("{\"say\":\"a\"}\n".into());
    assert_eq!(lines.next().and_then(Result::ok), Some(Delta::text("a")));
    assert!(!lines.is_whole(), "lines are a stream");
}

#[test]
fn done_ends_an_answer_and_only_usage_follows() {
    for end in ["{\"stop\":\"done\"}", "{\"stop\":\"done\",\"say\":\"z\"}"] {
        let body = format!(
            "{{\"say\":\"a\"}}\n{end}\n{{\"say\":\"late\",\"tokens\":3}}\n{{\"error\":\"late\"}}\n}}"
        );
        let (deltas, failed, came) = outcome::<SayingLines>(&body);
        let last = [Delta::done(), Delta::usage(Usage::new(3, 0))];
        assert_eq!((failed, came), (None, End::Done), "{body}");
        assert_eq!(deltas.get(deltas.len() - 2..), Some(&last[..]), "{body}");
        assert_eq!(deltas.contains(&Delta::text("z")), end.contains('z'));
    }
}

#[test]
fn end_marker_counts_in_lines_of_json() {
    for body in
        ["{\"say\":\"a\"}\n[END]\n", "{\"say\":\"a\"}[END]\n", "{\"say\":\"a\"}\n[END]\n{\"say\":\"late\"}\n"]
    {
        let (deltas, failed, end) = outcome::<Sayings>(body);
        assert_eq!((deltas, failed, end), (vec![Delta::text("a"), Delta::done()], None, End::Done), "{body}");
    }
}

#[test]
fn nothing_follows_an_error() {
    let mut decoder = decoder::<Sayings>().with_content_type("text/html");
    decoder.push("<html>".into());
    decoder.finish();
    assert!(decoder.next().is_some_and(|delta| delta.is_err()));
    assert!(decoder.next().is_none());
}

#[test]
fn failure_in_last_event_is_no_end() {
    let event = r#"{"stop":"done","say":"z","error":{"message":"m","code":503}}"#;
    let (deltas, failed, _) = outcome::<SayingLines>(&format!("{{\"say\":\"a\"}}\n{event}\n"));
    assert_eq!(failed, Some(ErrorKind::Provider { status: Some(503) }));
    assert_eq!(deltas, ["a", "z"].map(Delta::text), "no end comes before the error");
}

#[test]
fn value_cut_after_finish_reason_is_ignored() {
    for cut in ["{\"tok", "{\"tokens\":", "\"", "["] {
        let body = format!("{{\"say\":\"a\"}}\n{{\"stop\":true}}\n{cut}");
        let (_, failed, end) = outcome::<SayingLines>(&body);
        assert_eq!((failed, end), (None, End::Finished), "{body}");
    }
}

#[test]
fn status_becomes_error_only_without_an_answer() {
    let provider = ErrorKind::Provider { status: None };
    let status = "{\"type\":\"status\",\"message\":\"queued\"}\n";
    let message = "{\"message\":\"m\"}\n";
    let answer = "{\"say\":\"a\"}\n{\"stop\":true}\n";
    for (body, failed) in [
        (status.to_owned(), Some(provider)),
        (message.to_owned(), Some(provider)),
        ([status, answer, status, message].concat(), None),
        ([message, answer].concat(), Some(provider)),
        (
            [status, "{\"error\":{\"message\":\"m\",\"code\":502}}\n"].concat(),
            Some(ErrorKind::Provider { status: Some(502) }),
        ),
        ([status, "{]}\n"].concat(), Some(ErrorKind::Protocol { position: Some(status.len() as u64) })),
        ([answer, "{\"error\":\"m\"}"].concat(), Some(provider)),
        (
            [answer, "[{\"error\":{\"message\":\"m\",\"code\":503}}]"].concat(),
            Some(ErrorKind::Provider { status: Some(503) }),
        ),
    ] {
        assert_eq!(outcome::<SayingLines>(&body).1, failed, "{body}");
    }
}

#[test]
fn event_named_error_is_one_with_any_content() {
    for (data, status) in
        [("{\"message\":\"m\",\"code\":503}", Some(503)), ("{\"what\":1}", None), ("no JSON", None)]
    {
        let (deltas, failed, _) = outcome::<Sayings>(&format!("{HI}event: error\ndata: {data}\n\n{STOP}"));
        assert_eq!((texts(&deltas), failed), (vec!["Hi"], Some(ErrorKind::Provider { status })), "{data}");
    }
}

#[test]
fn unknown_json_is_an_error_only_outside_streams() {
    let protocol = |position| Some(ErrorKind::Protocol { position: Some(position) });
    let unknown = "{\"version\":2}\n";
    assert_eq!(outcome::<SayingLines>(&[unknown, "{\"say\":\"a\"}"].concat()).1, None);
    assert_eq!(outcome::<Sayings>(&[" ", unknown].concat()).1, protocol(1));
    assert_eq!(outcome::<Sayings>(&["data: ", unknown, "\n\n"].concat()).1, None);
    assert_eq!(outcome::<Sayings>(&["{\"say\":\"a\"}\n", unknown].concat()).1, None);
    assert_eq!(outcome::<Sayings>("[1]").1, protocol(0));
}

const HI: &str = "data: {\"say\":\"Hi\"}\n\n";
const STOP: &str = "data: {\"stop\":true}\n\n";
const DONE: &str = "data: [END]\n\n";
const ERROR: &str = "data: {\"error\":{\"message\":\"m\",\"code\":503}}\n\n";
const WHOLE: &str = "{\"say\":\"Hi\",\"stop\":\"whole\"}";

/// Reads a body, and checks that it says hi. Returns the counts and the error.
fn hi(body: &[u8]) -> (Option<Usage>, Option<ErrorKind>) {
    let (deltas, failed, _) = read_in(decoder::<Sayings>(), &[body]);
    assert_eq!(texts(&deltas), ["Hi"], "{:?}", String::from_utf8_lossy(body));
    let usage = deltas.iter().find_map(|delta| match &delta.kind {
        advisor_core::DeltaKind::Usage(usage) => Some(**usage),
        _ => None,
    });
    (usage, failed)
}

#[test]
fn broken_bodies_have_positions() {
    let at = |position| Some(ErrorKind::Protocol { position: Some(position) });
    for (body, failed) in [
        ("\n{\"say\":\"a\"}\n{\"say\":", Some(ErrorKind::Truncated)),
        ("\n{\"say\":\"a\"}\n{\"say\";1}", at(13)),
        ("\n{\"say\":\"a\"}\n{\"say\";", at(13)),
        ("{\"say\":\"a\"}nonsense", at(11)),
        ("<html>", Some(ErrorKind::Protocol { position: None })),
    ] {
        let (_, kind, _) = outcome::<SayingLines>(body);
        assert_eq!(kind, failed, "{body}");
    }
    for (body, failed) in [
        (&b"data: {\"say\":\n\n"[..], at(0)),
        (b"data: upstream failed\n\n", at(0)),
        (b": x\ndata: {]}\n\ndata: {\"stop\":true}\n\n", at(4)),
        // Blank lines before the stream count, too, and so does a mark.
        (b"\n\n data: x\n\ndata: {]}\n\n", at(3)),
        (b"\n\n  {\"say\":]}", at(4)),
        (b"\n{\"say\":\"\"}\n \n{]}", at(14)),
        (b"\xEF\xBB\xBFdata: {]}\n\n", at(3)),
        (b"\xEF\xBB\xBF{]}", at(3)),
        (b": x\ndata: {\"say\":\"\xFF\"}\n\n", at(18)),
        (b"\n\n{\"a\":\"\xFF\"}", at(8)),
        (b"<title>Connexion \xE9chou\xE9e</title>", Some(ErrorKind::Protocol { position: None })),
    ] {
        let (_, kind, _) = read_in(decoder::<Sayings>(), &[body]);
        assert_eq!(kind, failed, "{:?}", String::from_utf8_lossy(body));
    }
    let error = error_of("", " \n{\"say\":\"\"}\n{\"say\":7x}").expect("malformed");
    assert_eq!(
        error.to_string(),
        "the provider sent malformed JSON: line 1, column 9 of the JSON that begins at byte 13"
    );
}

#[test]
fn law_r1_bodies_are_bounded() {
    let limits = SseLimits { line: 64, event: 64 };
    let page = ErrorKind::Protocol { position: None };
    for (beginning, kind) in
        [("data: ", ErrorKind::TooLarge), ("{\"a\":\"", ErrorKind::TooLarge), ("<", page)]
    {
        let body = [beginning, &"x".repeat(100)].concat();
        for size in [1, 7, 200] {
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
            let bounded = AnswerDecoder::new(Sayings, limits, Redaction::default());
            assert_eq!(read_in(bounded, &pieces).1, Some(kind), "{beginning} in pieces of {size}");
        }
    }
}

/// Returns the error of a body with this content type.
fn error_of(content_type: &str, body: &str) -> Option<Error> {
    let mut decoder = decoder::<Sayings>().with_content_type(content_type);
    decoder.push(Bytes::copy_from_slice(body.as_bytes()));
    let failed = std::iter::from_fn(|| decoder.next()).find_map(Result::err);
    decoder.finish();
    failed.or_else(|| std::iter::from_fn(|| decoder.next()).find_map(Result::err))
}

#[test]
fn pages_and_other_types_are_no_answer() {
    let protocol = ErrorKind::Protocol { position: None };
    let page =
        error_of("text/html; charset=utf-8", "\n<!DOCTYPE html><title>Sign in</title>").expect("a page");
    assert_eq!(page.kind(), protocol);
    let said = std::error::Error::source(&page).map(ToString::to_string);
    assert_eq!(said.as_deref(), Some("the provider said: <!DOCTYPE html><title>Sign in</title>"));
    for (content_type, body) in [("", "<p>"), ("text/plain", "Bad gateway"), ("application/json", "")] {
        assert_eq!(error_of(content_type, body).map(|error| error.kind()), Some(protocol), "{body}");
    }
    assert!(
        error_of("Application/JSON", "").is_some_and(|error| error.to_string().contains("application/json"))
    );
    assert!(error_of("text/event-stream; charset=utf-8", "").is_none(), "it is only cut");
    assert!(error_of("text/plain", ": only comments\n\n").is_none(), "it is only cut");
    // The body decides, not its content type.
    for content_type in ["application/json", "text/html", "text/event-stream", ""] {
        for body in [[HI, STOP].concat(), WHOLE.to_owned()] {
            assert!(error_of(content_type, &body).is_none(), "{content_type}");
        }
    }
}

#[test]
fn events_that_say_nothing_are_passed() {
    let noise = ": x\n\ndata:\n\ndata: null\n\ndata: {\"type\":\"ping\"}\n\ndata: []\n\n\r\n\nid: 7\n\n";
    let body = [noise, HI, noise, STOP, noise, DONE].concat();
    assert_eq!(hi(body.as_bytes()), (None, None));
    // A second byte-order mark is text, here an unknown field, and so is one later or a letter that begins so.
    for line in ["\u{feff}\u{feff}: x\n\n", "\n\u{feff}: x\n\n", "\u{FEC0}: x\n\n"] {
        assert_eq!(hi([line, HI, STOP].concat().as_bytes()), (None, None), "{line:?}");
    }
    let (deltas, failed, _) = outcome::<Sayings>(&format!("\u{feff}\u{feff}{WHOLE}"));
    assert_eq!((deltas, failed), (vec![], None));
}

#[test]
fn last_event_needs_no_blank_line_if_it_is_whole() {
    let failed = Some(ErrorKind::Provider { status: Some(503) });
    let named = format!("event: error\n{ERROR}");
    for (last, error, end) in [
        (STOP, None, End::Open),
        (DONE, None, End::Open),
        (ERROR, failed, End::Open),
        (&*named, failed, End::Open),
    ] {
        let whole = [HI, last.trim_end()].concat();
        let (deltas, came, open) = outcome::<Sayings>(&whole);
        assert_eq!((came, open), (error, end), "{whole}");
        assert_eq!(deltas.len(), if error.is_some() { 1 } else { 2 }, "{whole}");
        let cut = &whole[..whole.len() - 4];
        assert_eq!(outcome::<Sayings>(cut), (vec![Delta::text("Hi")], None, End::Open), "{cut}");
    }
}

#[test]
fn whole_answer_that_is_cut_says_nothing() {
    for end in 0..WHOLE.len() {
        let (deltas, failed, _) = outcome::<Sayings>(&WHOLE[..end]);
        let is_cut = failed == (end > 0).then_some(ErrorKind::Truncated);
        assert!(is_cut && deltas.is_empty(), "cut at {end}: {failed:?}");
    }
}

#[test]
fn only_usage_may_follow_a_whole_answer() {
    let usage = "\n{\"tokens\":3}";
    for (rest, counted) in [
        (" trailing".to_owned(), false),
        ("}".to_owned(), false),
        (format!("\n{{\"error\":\"late\"}}\n{{broken{usage}"), false),
        (WHOLE.to_owned(), false),
        (usage.to_owned(), true),
        (format!("\nnull\n{{}}\n[]\n{{\"error\":\"late\"}}\n{WHOLE}{usage}\n{{broken"), true),
        // After anything but JSON, nothing is read any more.
        (format!("trailing{usage}"), false),
    ] {
        for garbage in [&b""[..], b"\xC3", b"\xFF"] {
            let body = [WHOLE.as_bytes(), rest.as_bytes(), garbage].concat();
            assert_eq!(hi(&body), (counted.then(|| Usage::new(3, 0)), None), "{rest}");
        }
    }
}

#[test]
fn nothing_after_the_end_marker_is_an_error() {
    let no_text: [&[u8]; 6] =
        [b"\xff", b"\xff\xfe\n", b"data: \xff\n\n", b"data: {\"a\":\"\xc3\"}\n\n", b": \xe2\x82\n", b"\xe2"];
    for complete in [[HI, STOP, DONE], [HI, "", DONE], [HI, "", "data: [END]\n"], [HI, "", "data:[END]\r\n"]]
    {
        for garbage in no_text {
            let body =
                [complete.concat().as_bytes(), garbage, b"data: {\"error\":\"late\"}\n\n", garbage].concat();
            assert_eq!(hi(&body), (None, None));
        }
    }
    let tokens = "data: {\"tokens\":3}\n\n";
    let late = [HI, STOP, DONE, "data: null\n\n", ERROR, "data: {broken\n\n", HI, tokens, DONE].concat();
    for garbage in [&b""[..], b"\xff\n\n"] {
        assert_eq!(hi(&[late.as_bytes(), garbage].concat()), (Some(Usage::new(3, 0)), None));
    }
    // A line or an event beyond its bound is garbage, too.
    for garbage in ["x".repeat(500), format!("data: {}", "x".repeat(500)), "data: x\n".repeat(100)] {
        let bounded = AnswerDecoder::new(Sayings, SseLimits { line: 128, event: 128 }, Redaction::default());
        let body = [HI, STOP, DONE, &garbage].concat();
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(7).collect();
        assert_eq!(read_in(bounded, &pieces).1, None);
    }
    for garbage in [&b"data: \xff\n\n"[..], b"\xff\n"] {
        let (_, failed) = hi(&[HI.as_bytes(), STOP.as_bytes(), garbage, DONE.as_bytes()].concat());
        assert!(matches!(failed, Some(ErrorKind::Protocol { .. })), "before the marker");
    }
}

/// A format that holds the last text back: `"text"`, or words for other meanings.
#[derive(Debug, Default)]
struct HoldsBack {
    held: Option<String>,
}

impl WireFormat for HoldsBack {
    const FRAMING: Framing = Framing::Lines;
    const END_MARKER: Option<&'static str> = Some("0");

    fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
        let event: Value = serde_json::from_str(event.data)?;
        match event.as_str() {
            Some("ping") => return Ok(Meaning::KeepAlive),
            Some("long") => return Ok(Meaning::TooLarge { limit: 7 }),
            Some("stop") => deltas.push_back(Delta::finish(FinishReason::Stop)),
            Some("done") => deltas.push_back(Delta::done()),
            Some(text) => deltas.extend(self.held.replace(text.to_owned()).map(Delta::text)),
            None => return Ok(Meaning::from_json(&event)),
        }
        Ok(Meaning::Piece)
    }

    fn finish(&mut self, deltas: &mut VecDeque<Delta>) {
        deltas.extend(self.held.take().map(Delta::text));
    }

    fn kept(&self) -> usize {
        self.held.as_ref().map_or(0, String::len)
    }
}

#[test]
fn held_back_deltas_come_before_the_end() {
    let [a, b] = ["a", "b"].map(Delta::text);
    let stop = || Delta::finish(FinishReason::Stop);
    for (body, expected, end) in [
        ("\"a\"\n\"b\"", vec![a.clone(), b.clone()], End::Open),
        ("\"a\"\n\"b\"\n\"stop\"\n", vec![a.clone(), stop(), b.clone()], End::Finished),
        ("\"a\"\n\"b\"\n\"done\"\n\"c\"\n", vec![a.clone(), b.clone(), Delta::done()], End::Done),
        ("\"a\"\n\"b\"\n0\n\"c\"\n", vec![a.clone(), b, Delta::done()], End::Done),
    ] {
        assert_eq!(outcome::<HoldsBack>(body), (expected, None, end), "{body}");
    }
    // Nothing follows an error.
    let (deltas, failed, _) = outcome::<HoldsBack>("\"a\"\n\"b\"\n{\"error\":\"m\"}\n\"c\"");
    assert_eq!((deltas, failed), (vec![a], Some(ErrorKind::Provider { status: None })));
}

#[test]
fn keep_alive_is_neither_event_nor_answer() {
    let ping = "\"ping\"\n";
    let mut decoder = decoder::<HoldsBack>();
    decoder.push(ping.repeat(3).into());
    assert!(decoder.next().is_none() && decoder.events() == 0);
    // A message before any answer is an error, also after a sign of life.
    let message = "{\"message\":\"m\"}\n";
    let failed = Some(ErrorKind::Provider { status: None });
    assert_eq!(outcome::<HoldsBack>(&[ping, message].concat()).1, failed);
    assert_eq!(outcome::<HoldsBack>(&["\"a\"\n", ping, message].concat()).1, None);
}

#[test]
fn law_r1_what_a_format_keeps_is_bounded() {
    assert_eq!(outcome::<HoldsBack>("\"a\"\n\"b\"\n\"long\"\n\"c\"\n").1, Some(ErrorKind::TooLarge));
    for (text, failed) in [("12345678", None), ("123456789", Some(ErrorKind::TooLarge))] {
        let body = format!("\"a\"\n\"{text}\"\n\"b\"\n");
        let (_, came, _) = read_in(decoder::<HoldsBack>().with_most_kept(8), &[body.as_bytes()]);
        assert_eq!(came, failed, "{text}");
    }
}

#[test]
fn body_in_another_framing_is_read_by_its_own() {
    let sse: String = EVENTS.iter().map(|event| format!("data: {event}\n\n")).collect();
    let expected = outcome::<Sayings>(&sse);
    let named: String = EVENTS.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect();
    for body in [&sse, &named, &format!(": a comment\n\n{sse}"), &sse.replace("data: ", "data:")] {
        assert_eq!(outcome::<SayingLines>(body), expected, "{body}");
    }
    // Text that only begins like an event is a malformed line.
    let text = decoder::<SayingLines>().with_content_type("text/plain");
    assert_eq!(read_in(text, &[b"error: no memory"]).1, Some(ErrorKind::Protocol { position: Some(0) }));
    // A line of such a stream that is an event of lines is none.
    let stray = "data: {\"say\":\"a\"}\n\ndata: {\"say\":\"b\"}\n\n{\"say\":\"c\"}\n\n";
    assert_eq!(texts(&outcome::<SayingLines>(stray).0), ["a", "b"]);
}
