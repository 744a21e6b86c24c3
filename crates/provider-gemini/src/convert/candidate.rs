//! One of several parallel answers.

use advisor_core::{Delta, Finish, ProviderData, Text};
use provider_http::failure::Report;

use super::calls::Calls;
use super::finish::End;
use super::sources::Sources;
use crate::wire::Object;

/// The state of a candidate.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The format name of what goes back to the server.
    pub(super) format: Text,
    pub(super) number: u32,
    pub(super) calls: Calls,
    sources: Sources,
    /// Whether anything arrived that is shown.
    pub(super) has_content: bool,
    /// The data of an empty part with a signature, before anything that is shown.
    pub(super) held: Option<ProviderData>,
    ended: bool,
}

impl Candidate {
    pub(super) fn new(format: Text, number: u32) -> Self {
        Self {
            format,
            number,
            calls: Calls::default(),
            sources: Sources::default(),
            has_content: false,
            held: None,
            ended: false,
        }
    }

    /// Emits the parts of a content and, at the end of the answer, its sources.
    pub(super) fn content(&mut self, fields: &Object<'_>, push: &mut impl FnMut(Delta)) {
        for json in fields.object("content").unwrap_or_default().list("parts") {
            if let Some(part) = Object::read(json) {
                self.part(json, &part, push);
            }
        }
        self.sources.read(fields);
        self.ended |= fields.field("finishReason").is_some();
        if self.ended {
            self.sources.emit(push);
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
