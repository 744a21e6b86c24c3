//! The values of an event that may differ in the next one.

use super::fields::Field;
use super::scan;

/// The deepest nesting of an event with slots. The search is recursive.
const MOST_NESTED: usize = 64;

/// A value of an event that may differ in the next one: the range of a string without its quotes, or of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueSlot {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: SlotKind,
    /// Whether other events differ here. Where they do not, comparing is faster than scanning.
    pub(super) differs: bool,
}

/// The kind of value in a [`ValueSlot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    /// The next piece of the answer: a string.
    Text,
    /// The next piece of arguments: a string, as it is spelled.
    Spelled,
    /// A repetition of a [`Text`](Self::Text).
    TextRepeated,
    /// A string that is not read.
    String,
    /// A whole number that is not read.
    Number,
    /// A token count.
    Count,
    /// Spaces before the closing brace of the event. Anthropic pads events with them.
    Blanks,
}

impl ValueSlot {
    /// Returns the value in an event.
    pub(super) fn of(self, event: &str) -> Option<&str> {
        event.get(self.start..self.end)
    }
}

/// Returns the slots of an event with this text, in order; `None` if the slot of the text is not certain. The
/// event must be valid JSON.
pub(super) fn slots_of(event: &str, fields: &'static Field, text: &str) -> Option<Vec<ValueSlot>> {
    let mut search =
        Search { event, at: 0, text, depth: 0, unescaped: String::new(), slots: Vec::with_capacity(16) };
    search.value(Some(fields))?;
    search.slots.extend(blanks_of(event));
    search.has_text().then_some(search.slots)
}

/// Returns the slot before the closing brace, nearly always an empty one.
fn blanks_of(event: &str) -> Option<ValueSlot> {
    let before = event.strip_suffix('}')?;
    let start = before.trim_end_matches(' ').len();
    Some(ValueSlot { start, end: before.len(), kind: SlotKind::Blanks, differs: false })
}

struct Search<'a> {
    event: &'a str,
    at: usize,
    depth: usize,
    text: &'a str,
    unescaped: String,
    slots: Vec<ValueSlot>,
}

impl<'a> Search<'a> {
    fn has_text(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.kind, SlotKind::Text | SlotKind::Spelled))
    }

    /// Skips a value. Its kind is `None` if it is not read.
    fn value(&mut self, field: Option<&'static Field>) -> Option<()> {
        match self.peek()? {
            bracket @ (b'{' | b'[') => self.nested(bracket, field),
            b'"' => self.string(field),
            b'-' | b'0'..=b'9' => self.number(field),
            _ => self.word(field),
        }
    }

    /// Skips an object or a list. An event that is nested too deep has no slots.
    fn nested(&mut self, bracket: u8, field: Option<&'static Field>) -> Option<()> {
        if self.depth == MOST_NESTED {
            return None;
        }
        self.depth += 1;
        let read = if bracket == b'{' { self.object(field) } else { self.list(field) };
        self.depth -= 1;
        read
    }

    fn object(&mut self, field: Option<&'static Field>) -> Option<()> {
        refuse_text(field)?;
        self.at += 1;
        while self.peek()? != b'}' {
            let (start, end) = self.quoted()?;
            let key = self.event.get(start..end)?;
            // An escaped key is the same key in another spelling.
            if key.contains('\\') {
                return None;
            }
            self.expect(b':')?;
            let value = field.and_then(|field| field.of_key(key));
            self.value(value)?;
            self.pass_comma()?;
        }
        self.at += 1;
        Some(())
    }

    fn list(&mut self, field: Option<&'static Field>) -> Option<()> {
        refuse_text(field)?;
        self.at += 1;
        while self.peek()? != b']' {
            self.value(field.map(Field::of_entry))?;
            self.pass_comma()?;
        }
        self.at += 1;
        Some(())
    }

    fn string(&mut self, field: Option<&'static Field>) -> Option<()> {
        let (start, end) = self.quoted()?;
        let kind = match field {
            None | Some(Field::Padding) => SlotKind::String,
            Some(Field::Once) if end > start => SlotKind::String,
            Some(Field::Text | Field::Joined | Field::TextOr(_)) if self.is_text(start, end)? => {
                if self.has_text() { SlotKind::TextRepeated } else { SlotKind::Text }
            }
            Some(Field::Spelled) if !self.has_text() && self.event.get(start..end)? == self.text => {
                SlotKind::Spelled
            }
            // The text may come from here, and be equal elsewhere by chance.
            Some(_) if self.is_text(start, end)? => return None,
            Some(_) => return Some(()),
        };
        let is_text = matches!(kind, SlotKind::Text | SlotKind::Spelled | SlotKind::TextRepeated);
        let differs = is_text || is_padding(field);
        self.slots.push(ValueSlot { start, end, kind, differs });
        Some(())
    }

    fn number(&mut self, field: Option<&'static Field>) -> Option<()> {
        refuse_any_text(field)?;
        let start = self.at;
        self.pass_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let kind = match field {
            None | Some(Field::Padding) => SlotKind::Number,
            Some(Field::Counts) => SlotKind::Count,
            Some(_) => return Some(()),
        };
        if self.event.get(start..self.at)?.bytes().all(|byte| byte.is_ascii_digit()) {
            self.slots.push(ValueSlot { start, end: self.at, kind, differs: is_padding(field) });
        }
        Some(())
    }

    /// Skips `null`, `true` or `false`.
    fn word(&mut self, field: Option<&'static Field>) -> Option<()> {
        let start = self.at;
        self.pass_while(|byte| byte.is_ascii_lowercase());
        match self.event.get(start..self.at)? {
            "null" => Some(()),
            "true" | "false" => refuse_any_text(field),
            _ => None,
        }
    }

    /// Checks whether the string in this range is the text.
    fn is_text(&mut self, start: usize, end: usize) -> Option<bool> {
        let string = self.event.get(start..end)?;
        if !string.contains('\\') {
            return Some(string == self.text);
        }
        scan::unescape(string, &mut self.unescaped);
        Some(self.unescaped == self.text)
    }

    /// Skips a string. Returns its range without quotes.
    fn quoted(&mut self) -> Option<(usize, usize)> {
        self.expect(b'"')?;
        let start = self.at;
        let length = scan::string(self.event.as_bytes().get(start..)?)?.bytes.len();
        self.at = start + length + 1;
        Some((start, start + length))
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn pass_comma(&mut self) -> Option<()> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        Some(())
    }

    /// Skips white space and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        self.pass_while(|byte| byte.is_ascii_whitespace());
        self.event.as_bytes().get(self.at).copied()
    }

    fn pass_while(&mut self, passes: impl Fn(u8) -> bool) {
        let rest = self.event.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| passes(**byte)).count();
    }
}

fn is_padding(field: Option<&Field>) -> bool {
    matches!(field, Some(Field::Padding))
}

/// Refuses a value other than a string in place of a piece of the answer, because only the format knows how to
/// read it.
fn refuse_any_text(field: Option<&Field>) -> Option<()> {
    (!matches!(field, Some(Field::Text | Field::Spelled | Field::TextOr(_) | Field::Joined))).then_some(())
}

/// Does the same as [`refuse_any_text`] for a value with parts.
fn refuse_text(field: Option<&Field>) -> Option<()> {
    (!matches!(field, Some(Field::Text | Field::Spelled | Field::Joined))).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_r1_deep_events_have_no_slots() {
        const FIELDS: &Field = &Field::Object(&[("text", Field::Text)]);
        let event = |depth: usize| {
            let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
            format!(r#"{{"text":"a","unread":{open}1{close}}}"#)
        };
        assert!(slots_of(&event(MOST_NESTED), FIELDS, "a").is_some());
        assert!(slots_of(&event(MOST_NESTED + 1), FIELDS, "a").is_none());
        assert!(slots_of(&event(100_000), FIELDS, "a").is_none(), "no stack overflow");
    }
}
