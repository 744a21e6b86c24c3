//! `Choices`: which entries of an answer's list of choices are read.

/// Which choices are read. One answer is asked for.
///
/// A server that gives several answers all the same repeats the number of each, and begins each with an entry that says
/// nothing but the role. Then the one whose number comes first is read. Other numbers mean nothing: some servers write
/// that of the token (Q54), or put text and calls in different choices (Q55).
#[derive(Debug, Default)]
pub(super) struct Choices {
    first: Option<u32>,
    /// Whether the first number came again.
    repeats: bool,
    /// Whether an entry of another number said nothing.
    others_begin: bool,
}

impl Choices {
    /// Notes an entry with this number. Returns whether it is read.
    #[inline]
    pub(super) fn begin(&mut self, number: u32) -> bool {
        match self.first {
            None => self.first = Some(number),
            Some(first) => self.repeats |= first == number,
        }
        !(self.repeats && self.others_begin) || self.first == Some(number)
    }

    /// Notes the end of an entry that was read.
    #[inline]
    pub(super) fn end(&mut self, number: u32, said_nothing: bool) {
        self.others_begin |= said_nothing && self.first != Some(number);
    }

    /// Checks whether the second entry came, so that a further one like it changes nothing.
    #[inline]
    pub(super) fn are_decided(&self) -> bool {
        self.repeats || self.first.is_none()
    }
}
