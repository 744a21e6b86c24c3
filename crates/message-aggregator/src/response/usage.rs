//! `Usage`: token counts; the last value wins within a round, and rounds add up.

use serde::{Deserialize, Serialize};

/// Token counts of an answer. Counts that a provider did not report are `None`, never 0.
/// So is a negative count, a fraction and a count of 2⁵³ or more: none is rounded.
///
/// A count includes its parts, with every provider. If a server counts a part separately, its provider adds it:
/// Anthropic's cache reads and writes, Gemini's thoughts, xAI's reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// All tokens that the model read: the request, and results of tools that the provider ran. Tokens that were read
    /// from a prompt cache or written to one are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All tokens that the model wrote, including reasoning and calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Total tokens as reported; `None` if the provider does not report them. See [`Usage::total`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The part of `input_tokens` that was read from a prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// The part of `input_tokens` that was written to a prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The part of `output_tokens` that was spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Creates usage with the two counts that every provider reports.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens: Some(input_tokens), output_tokens: Some(output_tokens), ..Self::default() }
    }

    /// Returns the total tokens: as reported, or else the sum of request and answer.
    ///
    /// Many providers report no total, so a budget that reads `total_tokens` may never be reached. The result is
    /// `None` only if neither the total nor both of its parts were reported.
    ///
    /// # Example
    /// ```
    /// use message_aggregator::Usage;
    ///
    /// let usage = Usage::new(1_000, 24);
    /// assert_eq!((usage.total_tokens, usage.total()), (None, Some(1_024)));
    /// ```
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        let parts = || Some(self.input_tokens?.saturating_add(self.output_tokens?));
        self.total_tokens.or_else(parts)
    }

    /// Takes the counts that `later` reports of the same answer. They are cumulative, so a lower one takes nothing
    /// back: some servers end an answer with zeros.
    pub fn merge(&mut self, later: &Self) {
        self.combine(later, u64::max);
    }

    /// Adds the counts of another round. If only one of the two reported a total, the sum of the other's parts is
    /// used.
    pub fn add(&mut self, other: &Self) {
        let is_reported = self.total_tokens.is_some() || other.total_tokens.is_some();
        let totals = if is_reported { [self.total(), other.total()] } else { [None, None] };
        self.combine(other, u64::saturating_add);
        self.total_tokens = totals.into_iter().flatten().reduce(u64::saturating_add);
    }

    fn combine(&mut self, other: &Self, both: impl Fn(u64, u64) -> u64) {
        let one = |mine: &mut Option<u64>, theirs: Option<u64>| {
            *mine = match (*mine, theirs) {
                (Some(mine), Some(theirs)) => Some(both(mine, theirs)),
                (mine, theirs) => theirs.or(mine),
            };
        };
        one(&mut self.input_tokens, other.input_tokens);
        one(&mut self.output_tokens, other.output_tokens);
        one(&mut self.total_tokens, other.total_tokens);
        one(&mut self.cached_input_tokens, other.cached_input_tokens);
        one(&mut self.cache_write_tokens, other.cache_write_tokens);
        one(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChatResponse, FinishReason, Message};

    #[test]
    fn total_is_reported_value_or_sum_of_parts() {
        let reported = Usage { total_tokens: Some(9), ..Usage::new(1, 2) };
        let input_only = Usage { output_tokens: None, ..Usage::new(1, 2) };
        let output_only = Usage { input_tokens: None, ..Usage::new(1, 2) };
        let most = Usage::new(u64::MAX, 1);
        for (usage, total) in [
            (reported, Some(9)),
            (Usage::new(1, 2), Some(3)),
            (Usage::new(0, 0), Some(0)),
            (input_only, None),
            (output_only, None),
            (Usage::default(), None),
            (most, Some(u64::MAX)),
        ] {
            assert_eq!(usage.total(), total, "{usage:?}");
        }
    }

    #[test]
    fn counts_grow_within_round_and_rounds_sum() {
        let mut round = Usage::new(10, 1);
        round.merge(&Usage { output_tokens: Some(5), ..Usage::default() });
        round.merge(&Usage::new(0, 4));
        assert_eq!(round, Usage::new(10, 5));
        let mut turn = Usage::default();
        turn.add(&round);
        turn.add(&Usage { total_tokens: Some(3), ..Usage::new(1, 2) });
        assert_eq!(turn, Usage { total_tokens: Some(18), ..Usage::new(11, 7) }, "no round is left out");
        let mut unreported = Usage::new(1, 2);
        unreported.add(&Usage::new(3, 4));
        assert_eq!(unreported, Usage::new(4, 6));
    }

    /// An attempt may report no counts.
    #[test]
    fn response_adds_the_counts_of_an_earlier_attempt() {
        let answer = ChatResponse::new(1, Message::assistant("Oslo"), FinishReason::Stop);
        let counted = answer.clone().with_usage(Some(Usage::new(3, 4)));
        let (earlier, sum) = (Usage::new(1, 2), Usage::new(4, 6));
        assert_eq!(counted.clone().with_added_usage(Some(&earlier)).usage(), Some(&sum));
        assert_eq!(counted.with_added_usage(None).usage(), Some(&Usage::new(3, 4)));
        assert_eq!(answer.with_added_usage(Some(&earlier)).usage(), Some(&earlier));
    }
}
