//! Characters that a server cut in two, between two events.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use advisor_core::{BlockKind, Delta, DeltaKind, Text};
use serde_json::Value;

use crate::fast_path::Field;
use crate::json::repair::{Surrogate, read};

/// Stands for a cut text where the place of two texts is compared, in JSON and as a string.
const MARK_IN_JSON: &str = "\\u0000";
const MARK: &str = "\0";

/// The most strings of an event whose place is looked up. Each costs a parse of the event, and servers cut one text.
const MOST_CANDIDATES: usize = 8;

/// The most halves that wait. Parallel answers and calls may each have one.
const MOST_WAITING: usize = 8;

/// Holds the first half of a character that ended a text, until the text goes on with its second half.
///
/// Servers that count in UTF-16 cut so: OpenClaw's gateway cuts arguments after 256 code units
/// (openclaw/openclaw#115536). JSON can hold such a half as an escape, such as `\ud83d`.
///
/// The two halves may come in unlike events: the first in the event that opens a call, the second beside the finish
/// reason. So the pieces of the answer that the events become decide whether the halves belong together.
#[derive(Default)]
pub(super) struct CutCharacters {
    /// Those that wait, the oldest first.
    waiting: Vec<Half>,
    /// Those that ended texts of the event that is being read.
    cut: Vec<Half>,
    /// Those that were joined in it, with their characters.
    joined: Vec<(Half, char)>,
}

#[derive(Clone)]
struct Half {
    /// The escape of the half.
    escape: String,
    /// Everything that is read of the event, beside its texts.
    place: Value,
    /// The text that it ended, without it.
    text: String,
    /// The text that the half belongs to, if a piece of the answer showed it.
    owner: Option<Owner>,
}

/// The text that a piece of the answer belongs to.
#[derive(Clone, PartialEq)]
struct Owner {
    kind: BlockKind,
    /// The number of the block or call.
    number: Option<i64>,
    call_id: Option<Text>,
}

impl Owner {
    /// Checks whether nothing tells the two apart. The first piece of a call may say more than later ones.
    fn fits(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.number.zip(other.number).is_none_or(|(own, other)| own == other)
            && self.call_id.as_ref().zip(other.call_id.as_ref()).is_none_or(|(own, other)| own == other)
    }
}

/// A string of an event.
struct StringToken {
    /// Its bytes between the quotes.
    range: Range<usize>,
    begins_with_half: bool,
    ends_with_half: bool,
}

impl CutCharacters {
    /// Returns the event with whole characters, if a text of it begins or ends within one. `fields` are those that the
    /// format reads. Call [`settle`](Self::settle) with the deltas of the event.
    ///
    /// A half at the end of a text is held and taken from it; it is dropped if its other half never comes. Any other
    /// half stays where it is.
    pub(super) fn rewrite(&mut self, json: &str, fields: &'static Field) -> Option<String> {
        if !has_surrogate(json) {
            return None;
        }
        let mut edits = Vec::new();
        let halves = strings_of(json).into_iter().filter(|text| text.begins_with_half || text.ends_with_half);
        for StringToken { range, begins_with_half, ends_with_half } in halves.take(MOST_CANDIDATES) {
            let Some(place) = place_of(json, &range, fields) else { continue };
            let text = json.get(range.clone())?;
            if begins_with_half && let Some(half) = self.take(&place) {
                let joined = decoded(&format!("{}{}", half.escape, text.get(..6)?));
                edits.push((range.start..range.start, half.escape.clone()));
                self.joined.extend(joined.chars().next().map(|letter| (half, letter)));
            }
            if ends_with_half {
                let (text, escape) = text.split_at_checked(text.len().checked_sub(6)?)?;
                edits.push((range.end - 6..range.end, String::new()));
                self.cut.push(Half { escape: escape.to_owned(), place, text: decoded(text), owner: None });
            }
        }
        if edits.is_empty() {
            return None;
        }
        let mut whole = json.to_owned();
        // From behind, so that earlier positions stay.
        edits.into_iter().rev().for_each(|(range, text)| whole.replace_range(range, &text));
        Some(whole)
    }

    /// Takes the half for a text that begins at this place: one from the same place, or else the oldest one.
    fn take(&mut self, place: &Value) -> Option<Half> {
        let at = self.waiting.iter().position(|half| half.place == *place).unwrap_or_default();
        (at < self.waiting.len()).then(|| self.waiting.remove(at))
    }

    /// Takes in the deltas of an event, from index `new` on: a half that was joined to another text becomes U+FFFD, and
    /// one whose text goes on without it is dropped.
    pub(super) fn settle(&mut self, deltas: &mut VecDeque<Delta>, new: usize) {
        if self.waiting.is_empty() && self.cut.is_empty() && self.joined.is_empty() {
            return;
        }
        for delta in deltas.range_mut(new..) {
            each_piece(delta, |owner, text| {
                let joined = self.joined.iter().position(|(_, letter)| text.starts_with(*letter));
                if let Some(at) = joined {
                    let (half, letter) = self.joined.remove(at);
                    if half.owner.is_some_and(|half| !half.fits(owner)) {
                        let rest = text.get(letter.len_utf8()..).unwrap_or_default();
                        *text = format!("\u{FFFD}{rest}").into();
                    }
                } else if !text.is_empty() {
                    let fits = |half: &Half| half.owner.as_ref().is_none_or(|half| half.fits(owner));
                    self.waiting.retain(|half| !fits(half));
                }
                for half in self.cut.iter_mut().filter(|half| text.ends_with(&half.text)) {
                    half.owner = Some(owner.clone());
                }
            });
        }
        self.joined.clear();
        self.waiting.append(&mut self.cut);
        self.waiting.drain(..self.waiting.len().saturating_sub(MOST_WAITING));
    }
}

/// Calls `take` with each piece of text in a delta. One that only begins a call has an empty text.
fn each_piece(delta: &mut Delta, mut take: impl FnMut(&Owner, &mut Text)) {
    let number = delta.block;
    let owner = |kind, number, call_id| Owner { kind, number, call_id };
    match &mut delta.kind {
        DeltaKind::Text(text) => take(&owner(BlockKind::Text, number, None), text),
        DeltaKind::Reasoning(text) => take(&owner(BlockKind::Reasoning, number, None), text),
        DeltaKind::Refusal(text) => take(&owner(BlockKind::Refusal, number, None), text),
        DeltaKind::Arguments { index, text } => take(&owner(BlockKind::ToolCall, *index, None), text),
        DeltaKind::ToolCalls(fragments) => {
            for fragment in fragments {
                let call_id = fragment.call_id.clone().filter(|id| !id.is_empty());
                let owner = owner(BlockKind::ToolCall, fragment.index, call_id);
                take(&owner, fragment.arguments_delta.as_mut().unwrap_or(&mut Text::default()));
            }
        }
        _ => {}
    }
}

/// Returns the text that is spelled so in JSON.
fn decoded(spelled: &str) -> String {
    read(&format!("\"{spelled}\"")).unwrap_or_default()
}

/// Shows no content of the answer.
impl fmt::Debug for CutCharacters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CutCharacters").field("waiting", &self.waiting.len()).finish()
    }
}

/// Returns whether an escape such as `\ud83d` may be in the JSON. Each event that is parsed is searched, so it is cheap.
fn has_surrogate(json: &str) -> bool {
    let bytes = json.as_bytes();
    memchr::memchr_iter(b'\\', bytes).any(|at| matches!(bytes.get(at + 1..at + 3), Some(b"ud" | b"uD")))
}

/// Returns the strings of JSON, keys included. Of malformed JSON, some are missing or wrong.
fn strings_of(json: &str) -> Vec<StringToken> {
    let mut strings = Vec::new();
    let mut at = 0;
    while let Some(start) = json.get(at..).and_then(|rest| rest.find('"')).map(|quote| at + quote + 1) {
        let (mut half, mut begins_with_half, mut end) = (None, false, start);
        while let Some(rest) = json.get(end..)
            && let Some(next) = rest.find(['"', '\\'])
        {
            end += next;
            let escape = json.get(end..).unwrap_or_default();
            if escape.starts_with('"') {
                break;
            }
            match Surrogate::at(escape) {
                Some(Surrogate::High) => half = Some(end + 6),
                // The second half of the first half before it.
                Some(Surrogate::Low) if half == Some(end) => half = None,
                Some(Surrogate::Low) => begins_with_half |= end == start,
                None => {}
            }
            let length = if Surrogate::at(escape).is_some() { 6 } else { 2 };
            end += length;
        }
        strings.push(StringToken {
            range: start..end.min(json.len()),
            begins_with_half,
            ends_with_half: half == Some(end),
        });
        at = end + 1;
    }
    strings
}

/// Returns the fields of an event that the format reads, with a mark in place of the text in this range. Other texts
/// are left out. Returns `None` if the range holds no text.
fn place_of(json: &str, range: &Range<usize>, fields: &'static Field) -> Option<Value> {
    let marked = [json.get(..range.start)?, MARK_IN_JSON, json.get(range.end..)?].concat();
    let event: Value = read(&marked).ok()?;
    has_marked_text(&event, fields).then(|| place_in(event, fields))
}

fn has_marked_text(value: &Value, field: &'static Field) -> bool {
    match (value, field) {
        (Value::String(text), Field::Text | Field::TextOr(_) | Field::Spelled | Field::Joined) => {
            text == MARK
        }
        (Value::Array(items), _) => items.iter().any(|item| has_marked_text(item, field.of_entry())),
        (Value::Object(fields), _) => fields
            .iter()
            .any(|(key, value)| field.of_key(key).is_some_and(|field| has_marked_text(value, field))),
        _ => false,
    }
}

fn place_in(value: Value, field: &'static Field) -> Value {
    match (value, field) {
        (Value::String(text), Field::Text | Field::TextOr(_) | Field::Spelled | Field::Joined) => {
            if text == MARK { Value::String(text) } else { Value::Null }
        }
        (_, Field::Once | Field::Padding | Field::Counts) => Value::Null,
        (Value::Array(items), _) => items.into_iter().map(|item| place_in(item, field.of_entry())).collect(),
        (Value::Object(fields), _) => {
            let read = fields.into_iter().filter_map(|(key, value)| {
                let place = place_in(value, field.of_key(&key)?);
                (!place.is_null()).then_some((key, place))
            });
            Value::Object(read.collect())
        }
        (other, _) => other,
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::ToolCallDelta;

    use super::*;

    const FIELDS: &Field = &Field::Object(&[
        ("text", Field::Text),
        ("parts", Field::List(&Field::Whole(&[("text", Field::Text)]))),
        ("index", Field::Read),
        ("note", Field::Read),
        ("n", Field::Padding),
    ]);

    /// A format with texts in blocks by `index`, and calls with an `id` and `args`.
    fn convert(event: &str) -> Vec<Delta> {
        let event: Value = read(event).unwrap_or_default();
        let text_of = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(Text::from);
        let mut deltas = Vec::new();
        for text in [&event["text"], &event["parts"][0]["text"], &event["parts"][1]["text"]] {
            let numbered = |delta: Delta| match event["index"].as_i64() {
                Some(index) => delta.with_block(index),
                None => delta,
            };
            deltas.extend(text_of(text).map(Delta::text).map(numbered));
        }
        if event.get("args").is_some() {
            let mut call = ToolCallDelta::default();
            (call.index, call.call_id) = (event["index"].as_i64(), text_of(&event["id"]));
            call.arguments_delta = text_of(&event["args"]);
            deltas.push(Delta::tool_call(call));
        }
        deltas
    }

    /// The texts of the pieces that events become.
    fn read_all(events: &[&str]) -> Vec<String> {
        const CALLS: &Field = &Field::Object(&[
            ("text", Field::Text),
            ("args", Field::Text),
            ("parts", Field::List(&Field::Whole(&[("text", Field::Text)]))),
            ("index", Field::Read),
            ("id", Field::Read),
            ("over", Field::Read),
        ]);
        let mut characters = CutCharacters::default();
        let mut texts = Vec::new();
        for event in events {
            let whole = characters.rewrite(event, CALLS);
            let mut deltas = convert(whole.as_deref().unwrap_or(event)).into();
            characters.settle(&mut deltas, 0);
            deltas.iter_mut().for_each(|delta| each_piece(delta, |_, text| texts.push(text.to_string())));
        }
        texts
    }

    /// Rewrites events one after another.
    fn rewritten<'a>(events: impl IntoIterator<Item = &'a str>) -> Vec<Option<String>> {
        let mut characters = CutCharacters::default();
        let rewrite = |event| {
            let whole = characters.rewrite(event, FIELDS);
            characters.settle(&mut VecDeque::new(), 0);
            whole
        };
        events.into_iter().map(rewrite).collect()
    }

    #[test]
    fn halves_join_in_like_and_unlike_events() {
        let whole = |events: [&str; 2]| {
            rewritten(events)
                .into_iter()
                .zip(events)
                .map(|(new, old)| new.unwrap_or(old.to_owned()))
                .collect::<Vec<_>>()
        };
        for (events, expected) in [
            (
                [r#"{"text":"a\ud83d","n":1}"#, r#"{"n":2,"text":"\ude00b"}"#],
                [r#"{"text":"a","n":1}"#, r#"{"n":2,"text":"\ud83d\ude00b"}"#],
            ),
            (
                [r#"{"index":1,"text":"\uD83D"}"#, r#"{"text":"\uDE00\ud83d","index":1,"other":2}"#],
                [r#"{"index":1,"text":""}"#, r#"{"text":"\uD83D\uDE00","index":1,"other":2}"#],
            ),
            (
                [r#"{"parts":[{"text":"a\\\ud83d","kind":1}]}"#, r#"{"parts":[{"text":"\ude00","kind":2}]}"#],
                [r#"{"parts":[{"text":"a\\","kind":1}]}"#, r#"{"parts":[{"text":"\ud83d\ude00","kind":2}]}"#],
            ),
            (
                [r#"{"text":"a\ud83d","note":null}"#, r#"{"text":"\ude00","note":"stop"}"#],
                [r#"{"text":"a","note":null}"#, r#"{"text":"\ud83d\ude00","note":"stop"}"#],
            ),
        ] {
            assert_eq!(whole(events), expected);
        }
    }

    #[test]
    fn law_t6_halves_join_within_one_text_only() {
        for (events, expected) in [
            // The event that opens a call says more than the next one.
            (
                &[
                    r#"{"index":0,"id":"c","args":"{\"a\":\"\ud83d"}"#,
                    r#"{"index":0,"args":"\ude00\"}","over":1}"#,
                ][..],
                &["{\"a\":\"", "😀\"}"][..],
            ),
            (&[r#"{"index":0,"id":"c","args":"\ud83d"}"#, r#"{"index":0,"args":"\ude00"}"#], &["", "😀"]),
            // Two texts in turns.
            (
                &[
                    r#"{"index":0,"args":"a\ud83d"}"#,
                    r#"{"index":1,"args":"b\ud83e"}"#,
                    r#"{"index":2,"args":"c"}"#,
                    r#"{"index":1,"args":"\udd16"}"#,
                    r#"{"index":0,"args":"\ude00"}"#,
                ],
                &["a", "b", "c", "🤖", "😀"],
            ),
            // Nothing tells whether two texts of one event are one.
            (&[r#"{"parts":[{"text":"a\ud83d"},{"text":"\ude00b"}]}"#], &["a", "\u{FFFD}b"]),
            // Another block, another call, another kind.
            (&[r#"{"index":0,"text":"a\ud83d"}"#, r#"{"index":1,"text":"\ude00"}"#], &["a", "\u{FFFD}"]),
            (&[r#"{"id":"c","args":"a\ud83d"}"#, r#"{"id":"d","args":"\ude00b"}"#], &["a", "\u{FFFD}b"]),
            (&[r#"{"text":"a\ud83d"}"#, r#"{"args":"\ude00"}"#], &["a", "\u{FFFD}"]),
            // The text went on without it.
            (&[r#"{"text":"a\ud83d"}"#, r#"{"text":"b"}"#, r#"{"text":"\ude00"}"#], &["a", "b", "\u{FFFD}"]),
            // What is between them is no text of it.
            (
                &[r#"{"text":"a\ud83d"}"#, r#"{"over":1}"#, r#"{"args":"{}"}"#, r#"{"text":"\ude00"}"#],
                &["a", "{}", "😀"],
            ),
        ] {
            assert_eq!(read_all(events), expected, "{events:?}");
        }
    }

    #[test]
    fn half_joins_nothing_but_a_second_half() {
        let cut = r#"{"text":"a\ud83d"}"#;
        for other in [
            r#"{"note":"\ude00"}"#, r#"{"text":"b\ude00"}"#, r#"{"text":"\\ude00"}"#,
            r#"{"text":"\ud83d\ude00"}"#, "{\"text\":\"\\ude00",
        ] {
            assert_eq!(rewritten([cut, other]), [Some(r#"{"text":"a"}"#.to_owned()), None], "{other}");
        }
        // Values that are no text, and texts without a half character at the end.
        for event in [
            r#"{"note":"\ud83d"}"#, r#"{"text":"\ud83d!"}"#, r#"{"text":"\\ud83d"}"#, r#"{"\ud83d":"x"}"#,
            "\"\\ud83d",
        ] {
            assert_eq!(rewritten([event, r#"{"text":"\ude00"}"#]), [None, None], "{event}");
        }
    }

    #[test]
    fn law_r1_few_strings_of_an_event_are_looked_up() {
        let event = |halves: usize| {
            let notes = vec![r#""\ud83d""#; halves].join(",");
            format!(r#"{{"note":[{notes}],"text":"a\ud83d"}}"#)
        };
        let changed = |halves| rewritten([event(halves).as_str()]) != [None];
        assert!(changed(MOST_CANDIDATES - 1), "the text is among the candidates");
        assert!(!changed(MOST_CANDIDATES), "the text is behind them");
    }

    #[test]
    fn law_r1_few_halves_wait() {
        let mut characters = CutCharacters::default();
        for index in 0..100 {
            let event = format!(r#"{{"index":{index},"text":"\ud83d"}}"#);
            assert!(characters.rewrite(&event, FIELDS).is_some());
            characters.settle(&mut VecDeque::new(), 0);
        }
        assert_eq!(format!("{characters:?}"), format!("CutCharacters {{ waiting: {MOST_WAITING} }}"));
    }
}
