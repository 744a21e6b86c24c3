//! `BoundedValues`: the first names of models and tools; all further ones are `_OTHER`.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use opentelemetry::Value;

use crate::names::{REQUEST_MODEL, RESPONSE_MODEL, TOOL_NAME};

/// The attributes whose values come from callers and servers.
const FROM_OUTSIDE: [&str; 3] = [REQUEST_MODEL, RESPONSE_MODEL, TOOL_NAME];

/// The value in place of all further ones. The conventions of HTTP and errors have it for unknown values, too.
const OTHER: &str = "_OTHER";

/// The first values of each attribute from outside. All further ones are one value.
#[derive(Debug)]
pub(crate) struct BoundedValues {
    max: usize,
    seen: Mutex<HashMap<&'static str, HashSet<String>>>,
}

impl BoundedValues {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, seen: Mutex::default() }
    }

    /// Returns the value, or `_OTHER` if it is new and the attribute has its maximum of values.
    pub(crate) fn bound(&self, name: &'static str, value: Value) -> Value {
        if !FROM_OUTSIDE.contains(&name) {
            return value;
        }
        // Code under the lock never leaves the sets inconsistent.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.entry(name).or_default();
        let text = value.as_str();
        if seen.contains(&*text) {
            return value;
        }
        if seen.len() >= self.max {
            return Value::from(OTHER);
        }
        seen.insert(text.into_owned());
        value
    }
}
