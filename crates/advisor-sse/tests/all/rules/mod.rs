//! Each rule of each protocol, and a stream that breaks it.

mod ag_ui;
mod anthropic_messages;
mod chat_events;
mod openai_chat;
mod openai_responses;
mod segments;
mod ui_messages;

use advisor_sse::Frame;
use advisor_sse::validate::{self, Violation};
use serde_json::Value;

/// The code that the checks share.
const SHARED: &str = include_str!("../../../src/validate/mod.rs");

/// The rules of a protocol.
struct Rules {
    protocol: &'static str,
    check: fn(&[Frame]) -> Result<(), Violation>,
    /// The code of the check.
    source: &'static str,
    /// Returns the frames of these data.
    frames: fn(&[String]) -> Vec<Frame>,
    /// A whole stream that breaks no rule.
    whole: &'static [&'static str],
    broken: Vec<Broken>,
}

/// The data of a stream whose last frame is the first that breaks a rule, and the rule.
struct Broken {
    stream: Vec<String>,
    rule: String,
}

fn broken(rule: &str, stream: &[&str]) -> Broken {
    Broken { stream: owned(stream), rule: rule.into() }
}

fn owned(stream: &[&str]) -> Vec<String> {
    stream.iter().map(|data| (*data).to_owned()).collect()
}

/// Returns frames without names.
fn unnamed(stream: &[String]) -> Vec<Frame> {
    Frame::read_all(&stream.iter().map(|data| format!("data: {data}\n\n")).collect::<String>())
}

/// Returns frames with the names of their types, or with another name that precedes the data.
fn named(stream: &[String]) -> Vec<Frame> {
    let frame = |text: &String| {
        let (name, data) =
            text.split_once(" {").map_or(("", text.clone()), |(name, rest)| (name, format!("{{{rest}")));
        let event: Value = serde_json::from_str(&data).unwrap_or_default();
        let name = if name.is_empty() { event["type"].as_str().unwrap_or_default() } else { name };
        format!("event: {name}\ndata: {data}\n\n")
    };
    Frame::read_all(&stream.iter().map(frame).collect::<String>())
}

/// Returns an event without the field at a place, such as `/delta/text`.
fn without(event: &str, place: &str) -> String {
    let (parent, field) = place.rsplit_once('/').unwrap();
    changed(event, parent, |parent| parent.as_object_mut().unwrap().remove(field).unwrap())
}

/// Returns an event with another value at a place.
fn with(event: &str, place: &str, value: Value) -> String {
    changed(event, place, |at| std::mem::replace(at, value))
}

fn changed(event: &str, place: &str, change: impl FnOnce(&mut Value) -> Value) -> String {
    let mut event: Value = serde_json::from_str(event).unwrap();
    change(event.pointer_mut(place).unwrap());
    event.to_string()
}

/// An event, the frames before it, and the places of its required texts.
type Texts = (&'static [&'static str], &'static str, &'static [&'static str]);

/// Returns the streams in which an event lacks one of its texts.
fn missing(texts: &[Texts]) -> Vec<Broken> {
    let row = |(before, event, places): &Texts| {
        let (before, event) = (owned(before), *event);
        places.iter().map(move |place| {
            let stream = [before.as_slice(), &[without(event, place)]].concat();
            let field = place.rsplit('/').next().unwrap();
            Broken { stream, rule: format!("the string `{field}` is missing") }
        })
    };
    texts.iter().flat_map(row).collect()
}

/// Something with an id that opens, is extended and closes.
struct Life {
    /// Its kind and its id in the rules.
    name: &'static str,
    before: &'static [&'static str],
    open: &'static str,
    piece: &'static str,
    close: &'static str,
    /// The end of the stream.
    end: &'static [&'static str],
}

impl Life {
    /// Returns the streams in which it opens, is extended or closes at a wrong time.
    fn broken(&self) -> Vec<Broken> {
        let Self { name, before, open, piece, close, end } = self;
        let stream =
            |rule: &str, stream: &[&str]| broken(&format!("the {name} {rule}"), &[*before, stream].concat());
        vec![
            stream("opens twice", &[open, open]),
            stream("opens twice", &[open, close, open]),
            stream("is extended while it is not open", &[piece]),
            stream("is extended while it is not open", &[open, close, piece]),
            stream("closes while it is not open", &[close]),
            stream("closes while it is not open", &[open, piece, close, close]),
            stream("is still open", &[&[*open, *piece], *end].concat()),
        ]
    }
}

fn all() -> [Rules; 7] {
    [
        ag_ui::rules(),
        anthropic_messages::rules(),
        chat_events::rules(),
        openai_chat::rules(),
        openai_responses::rules(),
        segments::rules(),
        ui_messages::rules(),
    ]
}

/// Returns the position and the rule of the violation, if there is one.
fn outcome(checked: Result<(), Violation>) -> Option<(usize, String)> {
    checked.err().map(|violation| (violation.position, violation.rule))
}

/// Checks that the last frame is the first that breaks a rule, and that it is this rule.
fn check_broken(
    check: impl Fn(&[Frame]) -> Result<(), Violation>,
    frames: impl Fn(&[String]) -> Vec<Frame>,
    Broken { stream, rule }: &Broken,
) {
    let frames = frames(stream);
    let last = frames.len() - 1;
    assert_eq!(outcome(check(&frames[..last])), Some((last, "the stream has no end".into())), "{stream:?}");
    assert_eq!(outcome(check(&frames)), Some((last, rule.clone())), "{stream:?}");
}

#[test]
fn each_rule_refuses_the_frame_that_breaks_it() {
    for Rules { check, frames, broken, .. } in all() {
        broken.iter().for_each(|broken| check_broken(check, frames, broken));
    }
}

#[test]
fn each_stream_has_one_end() {
    for Rules { protocol, check, frames, whole, .. } in all() {
        let frames = frames(&owned(whole));
        assert_eq!(outcome(check(&frames)), None, "{protocol}");
        for cut in 0..frames.len() {
            let no_end = Some((cut, "the stream has no end".to_owned()));
            assert_eq!(outcome(check(&frames[..cut])), no_end, "{protocol}");
        }
        for frame in &frames {
            let longer = [frames.as_slice(), std::slice::from_ref(frame)].concat();
            let after_end = Some((frames.len(), "a frame follows the end".to_owned()));
            assert_eq!(outcome(check(&longer)), after_end, "{protocol}");
        }
    }
}

/// Returns the rules in the code of a check: its texts of several words.
fn rules_in(source: &str) -> Vec<&str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with(['/', '#']));
    let texts = code.flat_map(|line| line.split('"').skip(1).step_by(2));
    texts.filter(|text| text.contains(' ')).collect()
}

/// Checks whether a rule is that of a text in the code, which has the names of values in braces.
fn is(rule: &str, text: &str) -> bool {
    let mut rest = rule;
    text.split(['{', '}']).step_by(2).all(|part| match rest.split_once(part) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// A rule without a stream that breaks it could be deleted, and no test would fail.
#[test]
fn every_rule_has_a_stream_that_breaks_it() {
    let (mut all, later) = (all(), ui_messages::later());
    all.iter_mut().find(|rules| rules.protocol == "UI messages").unwrap().broken.extend(later);
    for Rules { protocol, source, broken, .. } in &all {
        let rules = rules_in(source);
        assert!(rules.len() > 1, "{protocol}: {rules:?}");
        for text in rules {
            assert!(broken.iter().any(|broken| is(&broken.rule, text)), "{protocol}: {text}");
        }
    }
    let of_every_stream = ["the stream has no end", "a frame follows the end"];
    for text in rules_in(SHARED).into_iter().filter(|text| !of_every_stream.contains(text)) {
        let mut broken = all.iter().flat_map(|rules| &rules.broken);
        assert!(broken.any(|broken| is(&broken.rule, text)), "{text}");
    }
}
