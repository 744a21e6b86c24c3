//! Messages and tools in written form: each is written once per form, and kept with the message, the list or the set.
//!
//! So the body of round fifty is that of round forty-nine plus the new messages.

mod body;
mod kept;
mod list;

use advisor_core::{Error, ErrorKind};

pub use body::{completed_body, parameters_of};
pub use kept::{written_message, written_tools};
pub use list::{Growth, written_list};

/// Returns the error for a request that is no JSON.
#[must_use]
pub fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
}
