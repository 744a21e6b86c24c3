//! Characters that a server cut in two, between two events.

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use crate::fast_path::Field;
use crate::json::repair::{Surrogate, read};

/// Stands for a cut text where the place of two texts is compared, in JSON and as a string.
const MARK_IN_JSON: &str = "\\u0000";
const MARK: &str = "\0";

/// The most strings of an event whose place is looked up. Each costs a parse of the event, and servers cut one text.
const MOST_CANDIDATES: usize = 8;

/// Holds the first half of a character that ended a text, until the next text at the same place begins with its second
/// half.
///
/// Servers that count in UTF-16 cut so: OpenClaw's gateway cuts arguments after 256 code units
/// (openclaw/openclaw#115536). JSON can hold such a half as an escape, such as `\ud83d`.
#[derive(Default)]
pub(super) struct CutCharacters(Option<Half>);

struct Half {
    /// The escape of the half.
    escape: String,
    /// Everything that is read of the event, beside its texts.
    place: Value,
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
    /// format reads.
    ///
    /// A half at the end of a text is held and taken from it; it is dropped if its other half never comes. Any other
    /// half stays where it is.
    pub(super) fn rewrite(&mut self, json: &str, fields: &'static Field) -> Option<String> {
        if !has_surrogate(json) {
            return None;
        }
        let strings = strings_of(json);
        let continued = self.0.as_ref().and_then(|half| {
            let fits =
                |string: &&StringToken| place_of(json, &string.range, fields).as_ref() == Some(&half.place);
            let mut begun = strings.iter().filter(|string| string.begins_with_half).take(MOST_CANDIDATES);
            Some((begun.find(fits)?.range.start, half.escape.clone()))
        });
        let mut ended = strings.iter().rev().filter(|string| string.ends_with_half).take(MOST_CANDIDATES);
        let cut = ended.find_map(|string| {
            let place = place_of(json, &string.range, fields)?;
            let escape = string.range.end.checked_sub(6)?..string.range.end;
            Some((escape.clone(), Half { escape: json.get(escape)?.to_owned(), place }))
        });
        if continued.is_none() && cut.is_none() {
            return None;
        }
        let mut whole = json.to_owned();
        let removed = cut.as_ref().map(|(range, _)| (range.clone(), String::new()));
        let inserted = continued.map(|(at, escape)| (at..at, escape));
        let mut edits: Vec<_> = removed.into_iter().chain(inserted).collect();
        // From behind, so that earlier positions stay.
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        edits.into_iter().for_each(|(range, text)| whole.replace_range(range, &text));
        self.0 = cut.map(|(_, half)| half);
        Some(whole)
    }

    /// Forgets the half, since another text came between.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

/// Shows no content of the answer.
impl fmt::Debug for CutCharacters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CutCharacters").field(&self.0.is_some()).finish()
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
    use super::*;

    const FIELDS: &Field = &Field::Object(&[
        ("text", Field::Text),
        ("parts", Field::List(&Field::Whole(&[("text", Field::Text)]))),
        ("index", Field::Read),
        ("note", Field::Read),
        ("n", Field::Padding),
    ]);

    /// Rewrites events one after another.
    fn rewritten<'a>(events: impl IntoIterator<Item = &'a str>) -> Vec<Option<String>> {
        let mut characters = CutCharacters::default();
        events.into_iter().map(|event| characters.rewrite(event, FIELDS)).collect()
    }

    #[test]
    fn halves_join_at_the_same_place() {
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
                [r#"{"parts":[{"text":"a\\\ud83d","kind":1}]}"#, r#"{"parts":[{"text":"\ude00","kind":1}]}"#],
                [r#"{"parts":[{"text":"a\\","kind":1}]}"#, r#"{"parts":[{"text":"\ud83d\ude00","kind":1}]}"#],
            ),
        ] {
            assert_eq!(whole(events), expected);
        }
    }

    #[test]
    fn half_joins_nothing_else() {
        let cut = r#"{"text":"a\ud83d"}"#;
        for other in [
            r#"{"index":1,"text":"\ude00"}"#,
            r#"{"parts":[{"text":"\ude00"}]}"#,
            r#"{"note":"\ude00"}"#,
            r#"{"text":"b\ude00"}"#,
            r#"{"text":"\\ude00"}"#,
            r#"{"text":"\ud83d\ude00"}"#,
            "{\"text\":\"\\ude00",
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
            format!(r#"{{"text":"a\ud83d","note":[{notes}]}}"#)
        };
        let changed = |halves| rewritten([event(halves).as_str()]) != [None];
        assert!(changed(MOST_CANDIDATES - 1), "the text is among the candidates");
        assert!(!changed(MOST_CANDIDATES), "the text is behind them");
    }

    #[test]
    fn half_waits_until_another_text_comes() {
        let mut characters = CutCharacters::default();
        assert!(characters.rewrite(r#"{"text":"\ud83d"}"#, FIELDS).is_some());
        assert_eq!(characters.rewrite(r#"{"note":"\ud83d"}"#, FIELDS), None);
        characters.forget();
        assert_eq!(characters.rewrite(r#"{"text":"\ude00"}"#, FIELDS), None);
        assert_eq!(format!("{characters:?}"), "CutCharacters(false)");
    }
}
