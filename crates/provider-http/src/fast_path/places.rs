//! The places of an event in which another one may have something else.

use super::fields::Field;
use super::scan;

/// Where a value stands in an event: a string without its quotes, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: PlaceKind,
    /// Other events have something else here. Where they do not, comparing is quicker than scanning.
    pub(super) differs: bool,
}

/// What stands in a [`Place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceKind {
    /// The next piece of the answer: a string.
    Said,
    /// The same piece again.
    Again,
    /// A string that nobody reads.
    Word,
    /// A whole number that nobody reads.
    Number,
    /// A token count.
    Count,
}

impl Place {
    pub(super) fn of(self, event: &str) -> Option<&str> {
        event.get(self.start..self.end)
    }
}

/// Returns the places of an event that says `text`, in order; `None` if it is not certain where it says it. The event is valid JSON.
pub(super) fn places_of(event: &str, fields: &'static Field, text: &str) -> Option<Vec<Place>> {
    let mut search = Search { event, at: 0, text, unescaped: String::new(), places: Vec::with_capacity(16) };
    search.value(Some(fields))?;
    search.has_said().then_some(search.places)
}

struct Search<'a> {
    event: &'a str,
    at: usize,
    text: &'a str,
    unescaped: String,
    places: Vec<Place>,
}

impl<'a> Search<'a> {
    fn has_said(&self) -> bool {
        self.places.iter().any(|place| place.kind == PlaceKind::Said)
    }

    /// Passes a value; `None` stands for one that nobody reads.
    fn value(&mut self, field: Option<&'static Field>) -> Option<()> {
        match self.peek()? {
            b'{' => self.object(field),
            b'[' => self.list(field),
            b'"' => self.string(field),
            b'-' | b'0'..=b'9' => self.number(field),
            _ => self.word(field),
        }
    }

    fn object(&mut self, field: Option<&'static Field>) -> Option<()> {
        refuse_text(field)?;
        self.at += 1;
        while self.peek()? != b'}' {
            let (start, end) = self.quoted()?;
            let key = self.event.get(start..end)?;
            // A key may be written in several ways.
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
            None => PlaceKind::Word,
            Some(Field::Once) if end > start => PlaceKind::Word,
            Some(Field::Text | Field::Joined | Field::TextOr(_)) if self.is_text(start, end)? => {
                if self.has_said() { PlaceKind::Again } else { PlaceKind::Said }
            }
            // The text may come from here, and be the same elsewhere by chance.
            Some(_) if self.is_text(start, end)? => return None,
            Some(_) => return Some(()),
        };
        let differs = matches!(kind, PlaceKind::Said | PlaceKind::Again);
        self.places.push(Place { start, end, kind, differs });
        Some(())
    }

    fn number(&mut self, field: Option<&'static Field>) -> Option<()> {
        refuse_any_text(field)?;
        let start = self.at;
        self.pass_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let kind = match field {
            None => PlaceKind::Number,
            Some(Field::Counts) => PlaceKind::Count,
            Some(_) => return Some(()),
        };
        if self.event.get(start..self.at)?.bytes().all(|byte| byte.is_ascii_digit()) {
            self.places.push(Place { start, end: self.at, kind, differs: false });
        }
        Some(())
    }

    /// Passes `null`, `true` or `false`.
    fn word(&mut self, field: Option<&'static Field>) -> Option<()> {
        let start = self.at;
        self.pass_while(|byte| byte.is_ascii_lowercase());
        match self.event.get(start..self.at)? {
            "null" => Some(()),
            "true" | "false" => refuse_any_text(field),
            _ => None,
        }
    }

    /// Whether the string between these places says the text.
    fn is_text(&mut self, start: usize, end: usize) -> Option<bool> {
        let string = self.event.get(start..end)?;
        if !string.contains('\\') {
            return Some(string == self.text);
        }
        scan::unescape(string, &mut self.unescaped);
        Some(self.unescaped == self.text)
    }

    /// Passes a string: where it begins and ends, without its quotes.
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

    /// The next byte that is no white space, which is passed.
    fn peek(&mut self) -> Option<u8> {
        self.pass_while(|byte| byte.is_ascii_whitespace());
        self.event.as_bytes().get(self.at).copied()
    }

    fn pass_while(&mut self, passes: impl Fn(u8) -> bool) {
        let rest = self.event.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| passes(**byte)).count();
    }
}

/// What is no string where a piece of the answer may be is read in ways that are not known here.
fn refuse_any_text(field: Option<&Field>) -> Option<()> {
    (!matches!(field, Some(Field::Text | Field::TextOr(_) | Field::Joined))).then_some(())
}

/// As [`refuse_any_text`], where the value has parts.
fn refuse_text(field: Option<&Field>) -> Option<()> {
    (!matches!(field, Some(Field::Text | Field::Joined))).then_some(())
}
