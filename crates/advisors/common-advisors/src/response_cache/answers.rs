//! `Asked`, the parts of a request that determine its answer; `Answers` to them, bounded in bytes and time. The one used
//! last stays longest.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{
    ChatOptions, ChatRequest, ChatResponse, ConversationKey, Embedding, Message, MessageContent, MessageList,
    ResponseFormat, Role, Text, ToolDefinition,
};
use serde::Serialize;
use tokio::time::Instant;

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
    pub(super) ttl: Duration,
}

struct Entry {
    asked: Arc<Asked>,
    answer: ChatResponse,
    /// That of the question, if others like it may have the answer.
    embedding: Option<Embedding>,
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

    /// Returns the answer to an equal request, unless it is too old. It is then the one used last.
    pub(super) fn find(&mut self, asked: &Asked) -> Option<ChatResponse> {
        let entry = self.take(asked).filter(|entry| entry.since.elapsed() < self.ttl)?;
        let answer = entry.answer.clone();
        self.insert(entry);
        Some(answer)
    }

    /// Returns the answer to the most similar question, with its request, if the rest of that is equal. It is then the
    /// one used last.
    pub(super) fn closest(
        &mut self,
        asked: &Asked,
        embedding: &Embedding,
        min_score: f32,
    ) -> Option<(Arc<Asked>, ChatResponse)> {
        let score = |entry: &Entry| {
            let is_young = entry.since.elapsed() < self.ttl;
            let score = entry.embedding.as_ref().filter(|_| is_young)?.cosine(embedding)?;
            // Last, since it compares all earlier messages.
            (score >= min_score && entry.asked.differs_in_question(asked)).then_some(score)
        };
        let scored = self.entries.iter().filter_map(|(number, entry)| Some((*number, score(entry)?)));
        let (number, _) = scored.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let entry = self.remove(number)?;
        let found = (Arc::clone(&entry.asked), entry.answer.clone());
        self.insert(entry);
        Some(found)
    }

    /// Keeps an answer in place of an earlier one to an equal request. With an embedding, similar questions get it, too.
    pub(super) fn keep(&mut self, asked: Arc<Asked>, answer: ChatResponse, embedding: Option<Embedding>) {
        self.take(&asked);
        let numbers = size_of::<f32>() * embedding.as_ref().map_or(0, |embedding| embedding.len());
        let bytes = [asked.bytes(), json_bytes(&answer), numbers, ENTRY_BYTES].iter().sum();
        if bytes <= self.most_bytes {
            self.insert(Entry { asked, answer, embedding, bytes, since: Instant::now() });
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
        self.by_hash.entry(entry.asked.hash).or_default().push(self.uses);
        self.entries.insert(self.uses, entry);
    }

    /// Removes the entry of an equal request.
    fn take(&mut self, asked: &Asked) -> Option<Entry> {
        let is_equal = |number: &&u64| self.entries.get(*number).is_some_and(|entry| *entry.asked == *asked);
        let number = *self.by_hash.get(&asked.hash)?.iter().find(is_equal)?;
        self.remove(number)
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.bytes -= entry.bytes;
        let hash = entry.asked.hash;
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

/// The parts of a request that determine its answer.
#[derive(PartialEq)]
pub(super) struct Asked {
    /// First, since most requests differ here.
    hash: u64,
    tenant: Text,
    messages: MessageList,
    options: ChatOptions,
    tools: Vec<ToolDefinition>,
    api_tools: Vec<ToolDefinition>,
}

impl Asked {
    pub(super) fn new(request: &ChatRequest) -> Self {
        let tenant = request.conversation.as_ref().map_or("default", ConversationKey::tenant);
        let mut hasher = DefaultHasher::new();
        let last = request.messages.last().map(Message::text);
        (tenant, request.messages.len(), last).hash(&mut hasher);
        Self {
            hash: hasher.finish(),
            tenant: tenant.into(),
            messages: request.messages.clone(),
            options: request.options.clone(),
            tools: request.tools.definitions().cloned().collect(),
            api_tools: request.api_tools().definitions().cloned().collect(),
        }
    }

    /// Returns the text of the last message, if it is a text of the user. An advisor adds ephemeral ones, such as a
    /// correction.
    pub(super) fn question(&self) -> Option<Text> {
        let last = self.messages.last().filter(|last| last.role() == Role::User && !last.is_ephemeral())?;
        let MessageContent::User(parts) = last.content() else { return None };
        let is_text = parts.iter().all(|part| part.as_text().is_some());
        let text = last.text();
        (is_text && !text.trim().is_empty()).then(|| text.into())
    }

    /// Checks whether all but the last message is equal.
    fn differs_in_question(&self, other: &Self) -> bool {
        let before = self.messages.len().saturating_sub(1);
        self.tenant == other.tenant
            && self.messages.len() == other.messages.len()
            && self.options == other.options
            && self.tools == other.tools
            && self.api_tools == other.api_tools
            && self.messages.iter().take(before).eq(other.messages.iter().take(before))
    }

    /// Returns the bytes of its parts in JSON, apart from those of a fixed size.
    fn bytes(&self) -> usize {
        let tools = self.tools.iter().chain(&self.api_tools);
        let tools = tools.map(|tool| tool.name.len() + tool.description.len() + json_bytes(&tool.parameters));
        let schema = match &self.options.response_format {
            Some(ResponseFormat::JsonSchema { schema, .. }) => json_bytes(schema),
            _ => 0,
        };
        json_bytes(&self.messages) + tools.sum::<usize>() + schema + json_bytes(&self.options.extra)
    }
}

/// Returns the length of a value in JSON.
fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // A value that cannot be written in JSON is not kept.
    serde_json::to_writer(&mut count, value).map_or(usize::MAX / 4, |()| count.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use advisor_core::{ChatOptions, ChatRequest, FinishReason, Message, ResponseFormat, ToolDefinition};
    use advisor_testkit::DescribedTool;
    use serde_json::json;

    use super::*;

    fn asked(text: &str) -> Arc<Asked> {
        Asked::new(&ChatRequest::new(Message::user(text))).into()
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
            answers.keep(asked(text), answer(text), None);
            assert!(answers.find(&asked("00")).is_some(), "used each time");
            assert!(answers.bytes <= 4_000 && !answers.entries.is_empty());
        }
        let known = texts.iter().filter(|text| answers.find(&asked(text)).is_some()).count();
        assert!((3..10).contains(&known), "{known}");
        assert_eq!((answers.entries.len(), answers.by_hash.len()), (known, known));
        answers.keep(asked("long"), answer(&"long".repeat(1_000)), None);
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
            answers.keep(Asked::new(&request).into(), answer("one"), None);
            assert!(answers.find(&Asked::new(&request)).is_none(), "it is longer than the bound");
        }
    }

    #[test]
    fn later_answer_replaces_earlier_one() {
        let mut answers = Answers::new(4_000, Duration::MAX);
        answers.keep(asked("a"), answer("one"), None);
        let bytes = answers.bytes;
        answers.keep(asked("a"), answer("two"), None);
        assert_eq!(answers.find(&asked("a")).unwrap().text(), "two");
        assert_eq!((answers.entries.len(), answers.bytes), (1, bytes));
    }

    #[tokio::test(start_paused = true)]
    async fn closest_question_is_found_until_it_is_too_old() {
        let embedding = |numbers: [f32; 2]| Embedding::new(numbers).unwrap();
        let mut answers = Answers::new(40_000, Duration::from_secs(10));
        for (text, numbers) in [("far", [0.0, 1.0]), ("near", [1.0, 0.1]), ("nearer", [1.0, 0.05])] {
            answers.keep(asked(text), answer(text), Some(embedding(numbers)));
        }
        let closest = |answers: &mut Answers, least: f32| {
            let found = answers.closest(&asked("?"), &embedding([1.0, 0.0]), least);
            found.map(|(_, answer)| answer.text())
        };
        assert_eq!(closest(&mut answers, 0.9).as_deref(), Some("nearer"));
        assert_eq!(closest(&mut answers, 0.9999), None);
        answers.remove_answer(&asked("nearer"));
        assert_eq!(closest(&mut answers, 0.9).as_deref(), Some("near"));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(closest(&mut answers, 0.0), None, "too old");
    }

    #[test]
    fn law_r1_embeddings_of_kept_questions_count() {
        let mut answers = Answers::new(4_000, Duration::MAX);
        answers.keep(asked("a"), answer("one"), Some(Embedding::new([1.0; 1_000]).unwrap()));
        assert!(answers.find(&asked("a")).is_none(), "it is longer than the bound");
    }
}
