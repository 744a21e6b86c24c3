//! `Brackets` and `Place`: the open brackets of a JSON text, and whether the next byte is in a string.

/// The open brackets of a JSON text that arrives byte by byte.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::parser) struct Brackets {
    depth: usize,
    place: Place,
}

/// The place of the next byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::parser) enum Place {
    #[default]
    OutsideStrings,
    InString,
    /// In a string, behind a backslash.
    Escaped,
}

impl Brackets {
    pub(in crate::parser) fn new(depth: usize, place: Place) -> Self {
        Self { depth, place }
    }

    pub(in crate::parser) fn place(self) -> Place {
        self.place
    }

    /// Takes the next byte. Returns whether it closes the outermost bracket.
    pub(in crate::parser) fn closes_with(&mut self, byte: u8) -> bool {
        let is_outside = self.place == Place::OutsideStrings;
        self.place = self.place.after(byte);
        match byte {
            b'{' | b'[' if is_outside => self.depth += 1,
            b'}' | b']' if is_outside => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

impl Place {
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::OutsideStrings, b'"') => Self::InString,
            (Self::OutsideStrings, _) | (Self::InString, b'"') => Self::OutsideStrings,
            (Self::InString, b'\\') => Self::Escaped,
            (Self::InString | Self::Escaped, _) => Self::InString,
        }
    }
}
