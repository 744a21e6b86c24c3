//! Server-sent events, cut by hand.

/// Cuts bytes into the data of server-sent events of one line each, wherever the bytes are cut.
#[derive(Default)]
pub struct Lines {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl Lines {
    /// Passes the part after `data: ` of each complete line to `on_data`.
    pub fn feed(&mut self, mut bytes: &[u8], mut on_data: impl FnMut(&[u8])) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.begun.is_empty() {
                data(line, &mut on_data);
            } else {
                self.begun.extend_from_slice(line);
                data(&self.begun, &mut on_data);
                self.begun.clear();
            }
        }
        self.begun.extend_from_slice(bytes);
    }
}

fn data(line: &[u8], on_data: &mut impl FnMut(&[u8])) {
    match line.strip_prefix(b"data: ") {
        None | Some(b"[DONE]") => {}
        Some(data) => on_data(data),
    }
}
