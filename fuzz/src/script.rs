//! `Script`: reads an input as letters, numbers and quoted texts, so that every byte has a meaning.

/// Reads an input as a script. Every byte has a meaning, so that no mutation is wasted. Letters and digits
/// stand for themselves, so that people can write and read seeds.
#[derive(Debug)]
pub struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    /// A script that begins with the first of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next byte, if there is one.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Returns the next step: one of these letters. Any other byte stands for one of them.
    pub fn letter(&mut self, letters: &[u8]) -> Option<u8> {
        let byte = self.byte()?;
        let place = usize::from(byte) % letters.len();
        Some(if letters.contains(&byte) { byte } else { letters[place] })
    }

    /// A number from 0 to 255: a digit is itself, any other byte its value, and the end is 0.
    pub fn number(&mut self) -> usize {
        let byte = self.byte().unwrap_or(b'0');
        usize::from(if byte.is_ascii_digit() { byte - b'0' } else { byte })
    }

    /// One of these values, by their numbers.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.number() % values.len()]
    }

    /// The digits that come next, at most `most` of them.
    pub fn digits(&mut self, most: usize) -> &'a [u8] {
        let count = self.rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits
    }

    /// Everything up to the next quote, which is taken, or to the end.
    pub fn quoted(&mut self) -> String {
        let end = self.rest.iter().position(|byte| *byte == b'\'').unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Returns the unread part.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
