//! Token counts. Each event has those of the whole answer so far.

use advisor_core::Usage;

use super::Object;

/// The largest integer below which floating point represents every integer (RFC 8259, 6).
const LARGEST_COUNT: u64 = (1 << 53) - 1;

/// Converts `usageMetadata` to this project's names; `None` if nothing is reported.
///
/// Gemini counts the results of its own tools apart from the prompt, and thoughts apart from the answer. They are
/// added here, because the input includes everything that the model read, and the output everything it wrote.
pub(crate) fn usage(counts: &Object<'_>) -> Option<Usage> {
    let count = |name: &str| {
        let number = counts.text(name)?.parse().ok();
        number.filter(|count| *count <= LARGEST_COUNT)
    };
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    };
    let mut usage = Usage::default();
    usage.input_tokens = sum(count("promptTokenCount"), count("toolUsePromptTokenCount"));
    usage.output_tokens = sum(count("candidatesTokenCount"), count("thoughtsTokenCount"));
    usage.total_tokens = count("totalTokenCount");
    usage.cached_input_tokens = count("cachedContentTokenCount");
    usage.reasoning_tokens = count("thoughtsTokenCount");
    (usage != Usage::default()).then_some(usage)
}
