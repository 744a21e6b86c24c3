//! `TrimmedText`: a string without the white space around it, with entities and sections of characters.

use super::arguments::ArgumentsWriter;
use crate::parser::event::Output;
use crate::parser::input::{Input, Tail};
use crate::parser::marker::{Marker, marker_at};
use crate::parser::markup::entities::{Entity, entity};
use crate::parser::steps;

const SECTION_START: &str = "<![CDATA[";
const SECTION_END: &str = "]]>";

/// Reads a string without the white space around it.
#[derive(Debug)]
pub(in crate::parser) struct TrimmedText {
    entities: Entities,
    /// Whether a character was written.
    begun: bool,
    /// White space that may be at the end.
    space: String,
}

/// Whether entities of XML stand for characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parser) enum Entities {
    Decoded,
    Kept,
}

/// The reason why a part of the text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parser) enum Trimmed {
    /// More text is needed.
    Waits,
    /// The closing marker is next.
    Ends,
    /// The value is a section of characters, up to this marker.
    Section(&'static str),
}

impl TrimmedText {
    pub(in crate::parser) fn new(entities: Entities) -> Self {
        Self { entities, begun: false, space: String::new() }
    }

    /// Reads on, up to the closing marker.
    pub(in crate::parser) fn read(
        &mut self,
        close: &str,
        input: &mut Input,
        tail: Tail,
        arguments: &mut ArgumentsWriter,
        out: &mut Output<'_>,
    ) -> Trimmed {
        loop {
            let rest = input.rest();
            let plain = rest.find(|letter| letter == '&' || close.starts_with(letter)).unwrap_or(rest.len());
            steps::count(plain + 1);
            if plain > 0 {
                let text = input.take(plain);
                out.body(text);
                self.write(text, arguments, out);
                continue;
            }
            match marker_at(rest, close) {
                Marker::Whole => return Trimmed::Ends,
                Marker::Maybe if tail == Tail::Open || rest.is_empty() => return Trimmed::Waits,
                Marker::Maybe | Marker::None => {}
            }
            match self.section_at(rest) {
                Marker::Whole => {
                    out.body(input.take(SECTION_START.len()));
                    return Trimmed::Section(SECTION_END);
                }
                Marker::Maybe if tail == Tail::Open => return Trimmed::Waits,
                Marker::Maybe | Marker::None => {}
            }
            let (character, length) = match self.entity_at(rest) {
                Entity::Whole(character, length) => (character, length),
                Entity::Maybe if tail == Tail::Open => return Trimmed::Waits,
                Entity::Maybe | Entity::None => (rest.chars().next().unwrap_or_default(), 1),
            };
            out.body(input.take(length));
            self.write(character.encode_utf8(&mut [0; 4]), arguments, out);
        }
    }

    fn section_at(&self, text: &str) -> Marker {
        let is_possible = self.entities == Entities::Decoded && !self.begun;
        if is_possible { marker_at(text, SECTION_START) } else { Marker::None }
    }

    fn entity_at(&self, text: &str) -> Entity {
        match self.entities {
            Entities::Decoded => entity(text),
            Entities::Kept => Entity::None,
        }
    }

    /// Writes text; white space waits until it is certain that it is not at the end.
    fn write(&mut self, text: &str, arguments: &mut ArgumentsWriter, out: &mut Output<'_>) {
        let text = if self.begun { text } else { text.trim_start() };
        let solid = text.trim_end();
        let (solid, trailing) = text.split_at_checked(solid.len()).unwrap_or_default();
        if !solid.is_empty() {
            self.begun = true;
            arguments.piece(&std::mem::take(&mut self.space), out);
            arguments.piece(solid, out);
        }
        self.space.push_str(trailing);
    }
}
