//! The lines between two blank lines, collected field by field.

use std::time::Duration;

/// The fields of the current event, and the state that outlives an event: the last id and the reconnection time.
///
/// The buffers are reused from event to event.
#[derive(Default)]
pub(super) struct Block {
    name: String,
    data: String,
    /// Whether a `data` line was present: an event with empty data is an event.
    has_data: bool,
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

/// The data of one event would exceed its limit.
#[derive(Debug)]
pub(super) struct DataTooLarge;

impl Block {
    /// Adds a line that is neither blank nor a comment.
    pub(super) fn add(&mut self, line: &str, limit: usize) -> Result<(), DataTooLarge> {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => return self.add_data(value, limit),
            "event" => {
                self.name.clear();
                self.name.push_str(value);
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                // A number beyond 64 bits is ignored, like any other invalid value.
                self.retry = value.parse().map(Duration::from_millis).ok().or(self.retry);
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles a blank line: the block's id takes effect.
    #[inline]
    pub(super) fn complete(&mut self) {
        if self.id.is_some() {
            self.last_id = self.id.take();
        }
    }

    /// Clears the fields for the next event.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }

    /// Returns whether the next event has no field yet.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.has_data && self.name.is_empty() && self.id.is_none()
    }

    #[inline]
    pub(super) fn has_data(&self) -> bool {
        self.has_data
    }

    #[inline]
    pub(super) fn data(&self) -> &str {
        &self.data
    }

    #[inline]
    pub(super) fn name(&self) -> Option<&str> {
        (!self.name.is_empty()).then_some(&self.name)
    }

    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Appends data. The capacity doubles, but never beyond the limit.
    fn add_data(&mut self, value: &str, limit: usize) -> Result<(), DataTooLarge> {
        let join = if self.has_data { "\n" } else { "" };
        let length = self.data.len() + join.len() + value.len();
        if length > limit {
            return Err(DataTooLarge);
        }
        if length > self.data.capacity() {
            let capacity = length.max(self.data.capacity() * 2).min(limit);
            self.data.reserve_exact(capacity - self.data.len());
        }
        self.data.push_str(join);
        self.data.push_str(value);
        self.has_data = true;
        Ok(())
    }
}
