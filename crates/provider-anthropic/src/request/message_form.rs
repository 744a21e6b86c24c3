//! `MessageForm` and `Format`: the format and the names with which messages are written.

use advisor_core::Text;
use provider_http::names::WireNames;

/// The form in which the messages of a request are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageForm<'a> {
    pub(super) format: &'a Format,
    pub(super) names: &'a WireNames,
}

/// The format of the provider data and opaque blocks that go back. With usual names, messages depend on nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format(pub(super) Text);
