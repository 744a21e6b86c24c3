//! Prompt caching: the marks up to which the server caches a request.

use bytes::Bytes;

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
    /// Returns the field that marks a block, with the end of the block; `None` if blocks are not marked.
    fn mark(self) -> Option<&'static [u8]> {
        match self {
            Self::Off => None,
            Self::FiveMinutes => Some(br#","cache_control":{"type":"ephemeral"}}"#),
            Self::OneHour => Some(br#","cache_control":{"type":"ephemeral","ttl":"1h"}}"#),
        }
    }

    pub(crate) fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Marks the last of some blocks. They are JSON objects.
    pub(crate) fn mark_last(self, pieces: &mut Vec<Bytes>) {
        let (Some(mark), Some(last)) = (self.mark(), pieces.last_mut()) else { return };
        if last.ends_with(b"}") {
            last.truncate(last.len() - 1);
            pieces.push(Bytes::from_static(mark));
        }
    }
}
