//! `Candidate`: the answer of an event.

use advisor_core::{Finish, ProviderData, Text};
use provider_http::failure::Report;

use super::calls::Calls;
use super::finish::End;
use super::sources::Sources;
use crate::wire::Object;

/// The state of the candidate that is read. One is asked for; of several in an event, it is the first: its number may be
/// wrong.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The format name of the server's data.
    pub(super) format: Text,
    pub(super) calls: Calls,
    pub(super) sources: Sources,
    /// Whether anything arrived that is shown.
    pub(super) has_content: bool,
    /// The data of an empty part with a signature, before anything that is shown.
    pub(super) held: Option<ProviderData>,
    pub(super) ended: bool,
}

impl Candidate {
    pub(super) fn new(format: Text) -> Self {
        Self {
            format,
            calls: Calls::default(),
            sources: Sources::default(),
            has_content: false,
            held: None,
            ended: false,
        }
    }

    /// Returns the finish reason, if the candidate has one.
    ///
    /// # Errors
    /// The failure that a finish reason names (Q67). An unknown reason without content is one, too.
    pub(super) fn end(&self, fields: &Object<'_>) -> Result<Option<Finish>, Box<Report>> {
        let Some(written) = fields.text("finishReason") else { return Ok(None) };
        match End::from_written(&written) {
            None => Ok(None),
            Some(End::Finish(finish)) => Ok(Some(finish)),
            Some(End::Unknown(finish)) if self.has_content => Ok(Some(finish)),
            Some(End::Unknown(_) | End::Failure) => {
                Err(End::report(&written, &fields.text("finishMessage").unwrap_or_default()))
            }
        }
    }
}
