//! `Answers`: requests and answers, bounded in bytes and time; the one used last stays longest.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use advisor_core::ChatResponse;
use tokio::time::Instant;

use super::asked::Asked;
use super::json_bytes::json_bytes;

/// Requests and their answers, bounded in bytes and in time.
pub(super) struct Answers {
    /// By the time of the last use, the oldest first.
    entries: BTreeMap<u64, Entry>,
    /// The entries with a hash, most often one.
    by_hash: HashMap<u64, Vec<u64>>,
    /// Numbers the uses.
    uses: u64,
    bytes: usize,
    most_bytes: usize,
    ttl: Duration,
}

struct Entry {
    asked: Arc<Asked>,
    answer: ChatResponse,
    bytes: usize,
    since: Instant,
}

/// An estimate of the memory of an entry apart from its request and its answer.
const ENTRY_BYTES: usize = 512;

impl Answers {
    pub(super) fn new(most_bytes: usize, ttl: Duration) -> Self {
        let (entries, by_hash) = (BTreeMap::new(), HashMap::new());
        Self { entries, by_hash, uses: 0, bytes: 0, most_bytes, ttl }
    }

    pub(super) fn set_bytes(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
        self.shrink();
    }

    pub(super) fn set_ttl(&mut self, ttl: Duration) {
        self.ttl = ttl;
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.by_hash.clear();
        self.bytes = 0;
    }

    /// Returns the answer to an equal request, unless it is too old. It is then the one used last.
    pub(super) fn find(&mut self, asked: &Asked) -> Option<ChatResponse> {
        let entry = self.take(asked).filter(|entry| entry.since.elapsed() < self.ttl)?;
        let answer = entry.answer.clone();
        self.insert(entry);
        Some(answer)
    }

    /// Keeps an answer in place of an earlier one to an equal request.
    pub(super) fn keep(&mut self, asked: impl Into<Arc<Asked>>, answer: ChatResponse) {
        let asked = asked.into();
        self.take(&asked);
        let bytes = [asked.bytes(), json_bytes(&answer), ENTRY_BYTES].iter().sum();
        if bytes <= self.most_bytes {
            self.insert(Entry { asked, answer, bytes, since: Instant::now() });
            self.shrink();
        }
    }

    /// Removes the answer to an equal request.
    pub(super) fn remove_answer(&mut self, asked: &Asked) {
        self.take(asked);
    }

    fn insert(&mut self, entry: Entry) {
        self.uses += 1;
        self.bytes += entry.bytes;
        self.by_hash.entry(entry.asked.hash()).or_default().push(self.uses);
        self.entries.insert(self.uses, entry);
    }

    /// Removes the entry of an equal request.
    fn take(&mut self, asked: &Asked) -> Option<Entry> {
        let is_equal = |number: &&u64| self.entries.get(*number).is_some_and(|entry| *entry.asked == *asked);
        let number = *self.by_hash.get(&asked.hash())?.iter().find(is_equal)?;
        self.remove(number)
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.bytes -= entry.bytes;
        let hash = entry.asked.hash();
        if let Some(numbers) = self.by_hash.get_mut(&hash) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.by_hash.remove(&hash);
            }
        }
        Some(entry)
    }

    /// Removes the entries that were not used for the longest time, until the rest fits.
    fn shrink(&mut self) {
        while self.bytes > self.most_bytes
            && let Some(oldest) = self.entries.keys().next().copied()
        {
            self.remove(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use advisor_core::{ChatOptions, ChatRequest, FinishReason, Message, ResponseFormat, ToolDefinition};
    use advisor_testkit::DescribedTool;
    use serde_json::json;

    use super::*;

    fn asked(text: &str) -> Asked {
        Asked::new("default", &ChatRequest::new(Message::user(text)))
    }

    fn answer(text: &str) -> ChatResponse {
        ChatResponse::new(1, Message::assistant(text), FinishReason::Stop)
    }

    /// The bytes never exceed the bound, and the entry used last stays.
    #[test]
    fn law_r1_kept_answers_are_bounded_in_bytes() {
        let mut answers = Answers::new(4_000, Duration::MAX);
        let texts: Vec<_> = (0..20).map(|number| format!("{number:02}")).collect();
        for text in &texts {
            answers.keep(asked(text), answer(text));
            assert!(answers.find(&asked("00")).is_some(), "used each time");
            assert!(answers.bytes <= 4_000 && !answers.entries.is_empty());
        }
        let known = texts.iter().filter(|text| answers.find(&asked(text)).is_some()).count();
        assert!((3..10).contains(&known), "{known}");
        assert_eq!((answers.entries.len(), answers.by_hash.len()), (known, known));
        answers.keep(asked("long"), answer(&"long".repeat(1_000)));
        assert!(answers.find(&asked("long")).is_none(), "it is longer than the bound");
        answers.set_bytes(0);
        assert_eq!((answers.entries.len(), answers.by_hash.len(), answers.bytes), (0, 0, 0));
    }

    #[test]
    fn law_r1_tools_and_options_of_kept_requests_count() {
        let long = || json!({"description": "d".repeat(5_000)});
        let tool = DescribedTool::new(ToolDefinition::new("a", "A tool.", long()));
        let format = ResponseFormat::JsonSchema { name: "a".into(), schema: long(), strict: true };
        let request = || ChatRequest::new(Message::user("a"));
        for request in [
            request().with_tool(tool),
            ChatRequest {
                options: ChatOptions { response_format: Some(format), ..ChatOptions::default() },
                ..request()
            },
            ChatRequest { options: ChatOptions::default().with_extra("a", long()), ..request() },
        ] {
            let mut answers = Answers::new(4_000, Duration::MAX);
            answers.keep(Asked::new("default", &request), answer("one"));
            assert!(answers.find(&Asked::new("default", &request)).is_none(), "it is longer than the bound");
        }
    }

    #[test]
    fn later_answer_replaces_earlier_one() {
        let mut answers = Answers::new(4_000, Duration::MAX);
        answers.keep(asked("a"), answer("one"));
        let bytes = answers.bytes;
        answers.keep(asked("a"), answer("two"));
        assert_eq!(answers.find(&asked("a")).unwrap().text(), "two");
        assert_eq!((answers.entries.len(), answers.bytes), (1, bytes));
    }
}
