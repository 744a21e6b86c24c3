//! `ServerTools`: whether clients see the tools of the server.

/// Whether an encoder for a provider's protocol shows tools that the server runs. Clients would run them if they were
/// shown as ordinary calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerTools {
    /// They are not shown.
    #[default]
    Hidden,
    /// Their calls and results are shown in a form that clients do not run. Each encoder describes its form.
    Shown,
}
