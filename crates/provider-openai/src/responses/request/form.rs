//! The form of items for one server.

use std::collections::{BTreeMap, BTreeSet};

use advisor_core::Text;
use serde_json::Value;

/// The form of items for one server. Equal forms write equal items.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::responses) struct InputForm {
    /// The format name of data that goes back to this server.
    pub(in crate::responses) format: Text,
    /// Whether the server keeps answers. It then knows reasoning by its id alone.
    pub(in crate::responses) store: bool,
    /// The callers of the calls so far, by the ids of the calls: programs of the server, to which the results go.
    pub(super) callers: BTreeMap<Text, Value>,
    /// The ids of the calls so far that the server runs by itself.
    pub(super) server_calls: BTreeSet<Text>,
}

impl InputForm {
    pub(in crate::responses) fn new(format: Text, store: bool) -> Self {
        Self { format, store, callers: BTreeMap::new(), server_calls: BTreeSet::new() }
    }
}
