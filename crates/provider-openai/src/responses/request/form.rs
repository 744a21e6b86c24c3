//! The form of items for one server.

use advisor_core::Text;

/// The form of items for one server. Equal forms write equal items.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::responses) struct InputForm {
    /// The format name of data that goes back to this server.
    pub(in crate::responses) format: Text,
    /// Whether the server keeps answers. It then knows reasoning by its id alone.
    pub(in crate::responses) store: bool,
}
