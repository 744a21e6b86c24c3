/// Finds the end of JSON that is no call.
///
/// It ends where its brackets close. Since it may be broken, it also ends at an empty line and at a fence.
#[derive(Debug, Clone, Copy)]
pub(in crate::parser) struct Balance {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the line so far is white space.
    line_is_empty: bool,
}

impl Balance {
    /// Begins at this depth; `open_string` tells whether the next character in an open string is escaped.
    pub(super) fn new(depth: usize, open_string: Option<bool>) -> Self {
        let (in_string, escaped) = (open_string.is_some(), open_string.unwrap_or_default());
        Self { depth, in_string, escaped, line_is_empty: false }
    }

    /// Returns the length of the text up to the end, or `None` if all of it is within.
    pub(in crate::parser) fn pass(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'\n' if self.line_is_empty => return Some(at + 1),
                b'`' if self.line_is_empty => return Some(at),
                b'\n' => self.line_is_empty = true,
                b' ' | b'\t' | b'\r' => {}
                _ => self.line_is_empty = false,
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = self.in_string,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
