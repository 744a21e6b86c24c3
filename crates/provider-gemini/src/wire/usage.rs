//! Token counts. Each event has those of the whole answer so far.

use advisor_core::Usage;

use super::Object;

/// The largest integer below which floating point represents every integer (RFC 8259, 6).
const LARGEST_COUNT: u64 = (1 << 53) - 1;

/// The token counts of an answer so far. They are cumulative: a lower or missing one takes nothing back.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct TokenCounts {
    prompt: Option<u64>,
    tool_results: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
}

impl TokenCounts {
    /// Takes the counts of `usageMetadata`, and returns all so far; `None` if there are none.
    ///
    /// Gemini counts the results of its own tools apart from the prompt, and thoughts apart from the answer. They are
    /// added here, because the input includes everything that the model read, and the output everything it wrote.
    pub(crate) fn update(&mut self, counts: &Object<'_>) -> Option<Usage> {
        for (own, name) in [
            (&mut self.prompt, "promptTokenCount"),
            (&mut self.tool_results, "toolUsePromptTokenCount"),
            (&mut self.candidates, "candidatesTokenCount"),
            (&mut self.thoughts, "thoughtsTokenCount"),
            (&mut self.total, "totalTokenCount"),
            (&mut self.cached, "cachedContentTokenCount"),
        ] {
            let number = counts.text(name).and_then(|number| number.parse().ok());
            *own = number.filter(|count| *count <= LARGEST_COUNT).max(*own);
        }
        let sum = |one: Option<u64>, other| one.into_iter().chain(other).reduce(u64::saturating_add);
        let mut usage = Usage::default();
        usage.input_tokens = sum(self.prompt, self.tool_results);
        usage.output_tokens = sum(self.candidates, self.thoughts);
        usage.total_tokens = self.total;
        usage.cached_input_tokens = self.cached;
        usage.reasoning_tokens = self.thoughts;
        (usage != Usage::default()).then_some(usage)
    }
}
