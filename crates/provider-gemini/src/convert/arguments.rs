//! Arguments in pieces: values at JSON paths, written as JSON text in the order of their arrival.

use std::collections::HashSet;

use serde_json::Value;

use super::json_path::{Segment, parse};
use crate::wire::Object;

/// The arguments of one call, as far as they are written.
///
/// Text that was written cannot be changed. A piece that would have to change it, such as one for an object that is
/// closed, makes the arguments invalid JSON. So the call gets an error in place of a result, and never runs with
/// other arguments than the model's.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// The open objects and lists, from the outermost one on.
    open: Vec<Container>,
    /// The path of the string that continues.
    string: Option<Vec<Segment>>,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// More pieces may come.
    #[default]
    Open,
    /// The arguments came whole.
    Whole,
    /// The arguments are invalid, and nothing is added.
    Invalid,
}

/// The kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// More characters of the same string. Only the text differs in the next such piece.
    OfString,
    Other,
}

#[derive(Debug)]
struct Container {
    /// Its place in the container around it.
    place: Segment,
    entries: Entries,
}

#[derive(Debug)]
enum Entries {
    /// The keys so far.
    Object(HashSet<String>),
    /// The number of items so far.
    List(usize),
}

/// A piece that cannot be written at its place.
#[derive(Debug)]
struct Misplaced;

impl Arguments {
    /// Returns whole arguments, unless others were written before.
    pub(super) fn whole(&mut self, text: &str) -> String {
        if self.state != State::Open || !self.open.is_empty() {
            return self.invalidate();
        }
        self.state = State::Whole;
        text.to_owned()
    }

    /// Returns the characters that a piece adds.
    pub(super) fn piece(&mut self, piece: &Object<'_>) -> (String, Piece) {
        let path = piece.text("jsonPath").and_then(|path| parse(&path)).unwrap_or_default();
        let string = piece.field("stringValue").and_then(|value| inside(value.get()));
        if let Some(string) = string
            && self.state == State::Open
            && self.string.as_ref() == Some(&path)
        {
            if continues(piece) {
                return (string.to_owned(), Piece::OfString);
            }
            self.string = None;
            return (format!("{string}\""), Piece::Other);
        }
        let mut text = String::new();
        let written = self.write(path, string, piece, &mut text);
        (written.map_or_else(|Misplaced| self.invalidate(), |()| text), Piece::Other)
    }

    /// Returns the characters that complete the arguments.
    pub(super) fn close(&mut self) -> String {
        let mut text = String::new();
        if self.state == State::Open {
            self.end_string(&mut text);
            self.close_to(0, &mut text);
        }
        text
    }

    /// Returns the characters that keep arguments without their end from being valid; none if they are not anyway.
    pub(super) fn abandon(&mut self) -> String {
        if self.open.is_empty() { self.invalidate() } else { String::new() }
    }

    fn write(
        &mut self,
        path: Vec<Segment>,
        string: Option<&str>,
        piece: &Object<'_>,
        text: &mut String,
    ) -> Result<(), Misplaced> {
        if self.state != State::Open {
            return Err(Misplaced);
        }
        self.end_string(text);
        self.go_to(&path, text)?;
        match string {
            Some(string) => {
                text.push('"');
                text.push_str(string);
                self.string = Some(path);
                if !continues(piece) {
                    self.end_string(text);
                }
            }
            None => text.push_str(other_value(piece).ok_or(Misplaced)?),
        }
        Ok(())
    }

    /// Closes and opens containers, and writes the key of the value that follows.
    fn go_to(&mut self, path: &[Segment], text: &mut String) -> Result<(), Misplaced> {
        let (last, around) = path.split_last().ok_or(Misplaced)?;
        if self.open.is_empty() {
            self.open_container(Segment::Key(String::new()), path.first(), text);
        }
        let outer = self.open.iter().skip(1).zip(around);
        let common = outer.take_while(|(open, place)| open.place == **place).count();
        self.close_to(common + 1, text);
        for (at, place) in around.iter().enumerate().skip(common) {
            self.begin_entry(place, text)?;
            self.open_container(place.clone(), path.get(at + 1), text);
        }
        self.begin_entry(last, text)
    }

    /// Opens an object or a list, as the first segment inside it demands.
    fn open_container(&mut self, place: Segment, inside: Option<&Segment>, text: &mut String) {
        let (bracket, entries) = match inside {
            Some(Segment::Index(_)) => ('[', Entries::List(0)),
            _ => ('{', Entries::Object(HashSet::new())),
        };
        text.push(bracket);
        self.open.push(Container { place, entries });
    }

    /// Writes the separator and the key before an entry of the innermost container.
    fn begin_entry(&mut self, place: &Segment, text: &mut String) -> Result<(), Misplaced> {
        let container = self.open.last_mut().ok_or(Misplaced)?;
        let is_first = match (&mut container.entries, place) {
            (Entries::List(count), Segment::Index(index)) if count == index => {
                *count += 1;
                *index == 0
            }
            (Entries::Object(keys), Segment::Key(key)) if !keys.contains(key) => {
                keys.insert(key.clone());
                keys.len() == 1
            }
            _ => return Err(Misplaced),
        };
        if !is_first {
            text.push(',');
        }
        if let Segment::Key(key) = place {
            text.push_str(&Value::from(key.as_str()).to_string());
            text.push(':');
        }
        Ok(())
    }

    fn end_string(&mut self, text: &mut String) {
        if self.string.take().is_some() {
            text.push('"');
        }
    }

    /// Closes the innermost containers, so that this many stay open.
    fn close_to(&mut self, count: usize, text: &mut String) {
        let closed = self.open.drain(count.min(self.open.len())..).rev();
        text.extend(closed.map(|container| match container.entries {
            Entries::Object(_) => '}',
            Entries::List(_) => ']',
        }));
    }

    /// Makes the arguments invalid: returns a bracket without an end, unless they are invalid already.
    fn invalidate(&mut self) -> String {
        let text = if self.state == State::Invalid { "" } else { "{" };
        self.state = State::Invalid;
        text.to_owned()
    }
}

/// Checks whether the string of a piece continues in the next one.
fn continues(piece: &Object<'_>) -> bool {
    piece.is_true("willContinue")
}

/// Returns the spelling of a string without its quotes. It can be copied into another string, and halves of a
/// character that was cut in two become whole again.
fn inside(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// Returns the JSON of a value that is no string.
fn other_value<'a>(piece: &Object<'a>) -> Option<&'a str> {
    let number = piece.field("numberValue").map(|number| number.get());
    let number =
        number.filter(|number| number.starts_with(|first: char| first == '-' || first.is_ascii_digit()));
    let boolean = piece.field("boolValue").map(|value| value.get());
    let boolean = boolean.filter(|value| matches!(*value, "true" | "false"));
    let null = piece.names().any(|name| name == "nullValue").then_some("null");
    number.or(boolean).or(null)
}

#[cfg(test)]
mod tests;
