use advisor_core::Text;
use provider_http::names::WireNames;

/// How the messages of a request are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageForm<'a> {
    /// The format of the provider data and opaque blocks that go back.
    pub(super) format: &'a Text,
    pub(super) names: &'a WireNames,
}
