//! Prompt caching: the marks up to which the server caches a request.

/// Whether the server caches the beginning of a request, and for how long.
///
/// A later request with the same beginning reads it from the cache, which is faster and costs less. Writing it costs
/// more than reading it without a cache. Three places are marked: the last tool, the last system message that is not
/// ephemeral, and the last message that is not ephemeral. So the next round of a turn reads the whole request of the
/// round before. The next turn reads all that it shares with this one.
///
/// See the documentation of the API at <https://docs.claude.com/en/docs/build-with-claude/prompt-caching>.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptCaching {
    /// Nothing is marked.
    #[default]
    Off,
    /// The cache forgets after five minutes without use.
    FiveMinutes,
    /// The cache forgets after an hour without use.
    OneHour,
}

impl PromptCaching {
    /// Marks the last of some blocks, which are JSON objects with commas between them.
    pub(crate) fn mark(self, blocks: &mut Vec<u8>) {
        let mark: &[u8] = match self {
            Self::Off => return,
            Self::FiveMinutes => br#","cache_control":{"type":"ephemeral"}}"#,
            Self::OneHour => br#","cache_control":{"type":"ephemeral","ttl":"1h"}}"#,
        };
        if blocks.pop_if(|last| *last == b'}').is_some() {
            blocks.extend_from_slice(mark);
        }
    }
}
