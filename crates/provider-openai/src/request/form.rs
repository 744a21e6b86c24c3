//! The form of messages for one server.

use advisor_core::Text;

use crate::profile::MessageRules;

/// The form of messages for one server. Equal forms write equal messages.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChatForm {
    pub(super) rules: MessageRules,
    /// The format name of data that goes back to this server.
    pub(super) format: Text,
}
