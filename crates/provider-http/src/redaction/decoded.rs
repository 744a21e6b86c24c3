//! Decoded text, with the source position of each byte.

use std::ops::Range;

/// Lowercase text after zero or more decoding passes.
pub(super) struct Decoded {
    bytes: Vec<u8>,
    /// Source offset of each byte, and the end of the source after the last one.
    begins: Vec<usize>,
}

impl Decoded {
    /// Creates it from text without decoding.
    pub(super) fn plain(words: &str) -> Self {
        Self { bytes: words.to_ascii_lowercase().into_bytes(), begins: (0..=words.len()).collect() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the range in the source of some of these bytes.
    pub(super) fn source_of(&self, range: &Range<usize>) -> Range<usize> {
        let begin = |at: usize| self.begins.get(at).or(self.begins.last()).copied().unwrap_or_default();
        begin(range.start)..begin(range.end)
    }

    /// Decodes the bytes once more; `None` if nothing is encoded.
    pub(super) fn decode(&self) -> Option<Self> {
        let (mut bytes, mut begins) = (Vec::new(), Vec::new());
        let mut rest = self.bytes.as_slice();
        while let Some((first, behind)) = rest.split_first() {
            begins.extend(self.begins.get(self.bytes.len() - rest.len()));
            let (byte, length) = unescaped(rest).unwrap_or((*first, 1));
            bytes.push(byte.to_ascii_lowercase());
            rest = rest.get(length..).unwrap_or(behind);
        }
        begins.extend(self.begins.last());
        (bytes.len() < self.bytes.len()).then_some(Self { bytes, begins })
    }
}

/// Returns the byte of the escape sequence at the start, and the length of the sequence: `%2d`, `\u002d`, `\x2d`,
/// `\/`, `&#45;`, `&#x2d;`, `&amp;`.
fn unescaped(bytes: &[u8]) -> Option<(u8, usize)> {
    let hex = |from: usize, to: usize| {
        let digits = str::from_utf8(bytes.get(from..to)?).ok()?;
        u8::from_str_radix(digits, 16).ok()
    };
    match bytes {
        [b'%', ..] => Some((hex(1, 3)?, 3)),
        [b'\\', b'u', b'0', b'0', ..] => Some((hex(4, 6)?, 6)),
        [b'\\', b'x', ..] => Some((hex(2, 4)?, 4)),
        [b'\\', escaped, ..] => Some((*escaped, 2)),
        [b'&', b'#', ..] => {
            let length = bytes.iter().take(8).position(|byte| *byte == b';')?;
            let number = match bytes.get(2)? {
                b'x' => hex(3, length)?,
                _ => str::from_utf8(bytes.get(2..length)?).ok()?.parse().ok()?,
            };
            Some((number, length + 1))
        }
        [b'&', b'a', b'm', b'p', b';', ..] => Some((b'&', 5)),
        _ => None,
    }
}
