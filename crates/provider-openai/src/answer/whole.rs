//! A body that is no event stream. It can be read only after it has ended.

use advisor_core::{Error, ErrorKind, Result};
use bytes::BytesMut;
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::End;
use super::progress::{Meaning, Progress};
use provider_http::error::{malformed_json, not_utf8};

/// A body of JSON, or a web page.
#[derive(Debug)]
pub(super) struct Whole {
    bytes: BytesMut,
    /// The position of its first byte in the body.
    from: u64,
    is_page: bool,
}

impl Whole {
    /// Creates an empty body whose first byte is at `from`.
    pub(super) fn new(from: u64, is_page: bool) -> Self {
        Self { bytes: BytesMut::new(), from, is_page }
    }

    /// Appends the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8], limit: usize) -> Result<()> {
        if self.bytes.len() + bytes.len() > limit {
            let message = format!(
                "the answer's body is longer than {limit} bytes; raise `SseLimits::event` if that is expected"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads the whole body.
    pub(super) fn read(&self, progress: &mut Progress) -> Result<()> {
        if self.is_page {
            let message = "the provider answered with a web page; check the base URL, and whether a proxy is in the way";
            let page = String::from_utf8_lossy(&self.bytes);
            return Err(progress.failures.protocol(None, message, &page.into()));
        }
        match str::from_utf8(&self.bytes) {
            Ok(text) => self.read_values(text, Ok(()), progress),
            Err(error) => {
                let valid = self.bytes.get(..error.valid_up_to()).unwrap_or_default();
                let text = str::from_utf8(valid).unwrap_or_default();
                // No length means that the last character was cut, because the body was.
                let rest = match error.error_len() {
                    Some(_) => Err(not_utf8(self.from + text.len() as u64)),
                    None => Ok(()),
                };
                self.read_values(text, rest, progress)
            }
        }
    }

    /// Reads an answer that was not streamed, or a stream framed as lines of JSON. `rest` is the reason why the
    /// text ends.
    ///
    /// After a whole answer only usage counts, and anything that is no JSON ends the body.
    fn read_values(&self, text: &str, rest: Result<()>, progress: &mut Progress) -> Result<()> {
        let mut unread = text.trim_ascii_start();
        while !unread.is_empty() {
            let position = self.from + (text.len() - unread.len()) as u64;
            let is_over = progress.end == End::Done;
            let mut values = Deserializer::from_str(unread).into_iter::<&RawValue>();
            let value = match values.next() {
                None => break,
                Some(Ok(value)) => value.get(),
                Some(Err(_)) if is_over => return Ok(()),
                Some(Err(error)) if error.is_eof() => return rest.and(Err(cut())),
                Some(Err(error)) => return Err(malformed_json(&error, position)),
            };
            progress.events += 1;
            match progress.read_json(value, None) {
                Ok(Meaning::Answer { whole: true }) => progress.mark_done(),
                Ok(Meaning::Answer { whole: false } | Meaning::Remark) => {}
                _ if is_over => {}
                Ok(Meaning::Failure) => return Ok(()),
                Ok(Meaning::Nothing) => {
                    let message =
                        "the provider answered with JSON that is no chat completion; check the base URL";
                    return Err(progress.failures.protocol(Some(position), message, &value.into()));
                }
                Err(error) => return Err(malformed_json(&error, position)),
            }
            unread = unread.get(values.byte_offset()..).unwrap_or_default().trim_ascii_start();
        }
        if progress.end == End::Done { Ok(()) } else { rest }
    }
}

fn cut() -> Error {
    Error::new(ErrorKind::Truncated, "the answer's body ended in the middle of its JSON")
}
