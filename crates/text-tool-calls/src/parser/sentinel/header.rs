//! `HeaderScan`: finds the end of a start marker.

use std::ops::Range;

use crate::parser::json::{Brackets, Place};
use crate::parser::marker::{Marker, marker_at};
use crate::parser::steps;

/// The end of a start marker.
const START_END: &str = "]]";

/// Finds the end of a start marker: white space, a JSON object, white space and `]]`.
#[derive(Debug, Default)]
pub(super) struct HeaderScan {
    /// The bytes that were looked at.
    seen: usize,
    part: HeaderPart,
}

#[derive(Debug, Default)]
enum HeaderPart {
    #[default]
    Before,
    /// In the object, which starts at this byte.
    Object(usize, Brackets),
    After(Range<usize>),
}

pub(super) enum Scanned {
    Undecided,
    /// It is no start marker.
    None,
    /// Its object, and its length in bytes.
    Whole(Range<usize>, usize),
}

impl HeaderScan {
    /// Looks at the text after `[[SEG_START`. It must begin with the same bytes as in the call before.
    ///
    /// A byte that JSON does not have ends the scan. `[[SEG_START` has some, so scans of many markers hardly overlap.
    pub(super) fn scan(&mut self, text: &str) -> Scanned {
        for byte in text.bytes().skip(self.seen) {
            steps::count(1);
            match &mut self.part {
                HeaderPart::Before | HeaderPart::After(_) if byte.is_ascii_whitespace() => {}
                HeaderPart::Before if byte == b'{' => {
                    let mut brackets = Brackets::default();
                    brackets.closes_with(byte);
                    self.part = HeaderPart::Object(self.seen, brackets);
                }
                HeaderPart::Object(_, brackets)
                    if brackets.place() == Place::OutsideStrings && !is_in_json(byte) =>
                {
                    return Scanned::None;
                }
                HeaderPart::Object(start, brackets) => {
                    if brackets.closes_with(byte) {
                        self.part = HeaderPart::After(*start..self.seen + 1);
                    }
                }
                HeaderPart::After(object) => {
                    return match marker_at(text.get(self.seen..).unwrap_or_default(), START_END) {
                        Marker::Whole => Scanned::Whole(object.clone(), self.seen + START_END.len()),
                        Marker::Maybe => Scanned::Undecided,
                        Marker::None => Scanned::None,
                    };
                }
                HeaderPart::Before => return Scanned::None,
            }
            self.seen += 1;
        }
        Scanned::Undecided
    }
}

/// Checks for a byte that JSON may have outside strings.
fn is_in_json(byte: u8) -> bool {
    let is_literal = byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.E".contains(&byte);
    is_literal || byte.is_ascii_whitespace() || b"{}[]:,\"".contains(&byte)
}
