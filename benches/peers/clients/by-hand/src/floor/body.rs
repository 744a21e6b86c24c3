//! `Body`: takes the head and the chunked encoding off the bytes of an HTTP answer.

/// Takes the head and the chunked encoding off the bytes of an HTTP answer.
pub(crate) struct Body {
    part: Part,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Head,
    Size,
    Data(usize),
    AfterData,
    AfterLast,
    Done,
}

impl Body {
    pub(crate) fn new() -> Self {
        Self { part: Part::Head, line: Vec::new() }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.part == Part::Done
    }

    /// Passes the data of the body in these bytes to `on_data`.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut on_data: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            if let Part::Data(left) = self.part {
                let (data, rest) = bytes.split_at(left.min(bytes.len()));
                on_data(data);
                bytes = rest;
                self.part = if data.len() == left { Part::AfterData } else { Part::Data(left - data.len()) };
            } else if let Some(end) = memchr::memchr(b'\n', bytes) {
                self.line.extend_from_slice(&bytes[..end]);
                bytes = &bytes[end + 1..];
                self.part = after(self.part, self.line.trim_ascii());
                self.line.clear();
            } else {
                self.line.extend_from_slice(bytes);
                return;
            }
        }
    }
}

/// Returns the part that follows a line.
fn after(part: Part, line: &[u8]) -> Part {
    match part {
        Part::Head if !line.is_empty() => Part::Head,
        Part::Head | Part::AfterData => Part::Size,
        Part::Size => match size(line) {
            0 => Part::AfterLast,
            size => Part::Data(size),
        },
        Part::Data(_) | Part::AfterLast | Part::Done => Part::Done,
    }
}

fn size(line: &[u8]) -> usize {
    let digits = str::from_utf8(line).expect("a size is ASCII");
    usize::from_str_radix(digits, 16).expect("a size is a number")
}
