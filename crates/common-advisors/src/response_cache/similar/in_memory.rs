//! `InMemoryQuestions`: compares with every question of the same tenant and context; bounded.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor_core::{ChatResponse, Result, async_trait};
use tokio::time::Instant;

use super::question::Question;
use super::{SimilarAnswer, SimilarQuestions};
use crate::response_cache::json_bytes::json_bytes;

/// Keeps similar questions in this process's memory. Clones share them.
///
/// They are bounded in bytes and in time, and the one that was not found for the longest time is removed first. A search
/// compares the embedding with every question of the same tenant and context.
#[must_use]
#[derive(Clone)]
pub struct InMemoryQuestions {
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    /// By the time of the last use, the oldest first.
    entries: VecDeque<Entry>,
    bytes: usize,
    most_bytes: usize,
    ttl: Duration,
}

struct Entry {
    question: Question,
    answer: ChatResponse,
    bytes: usize,
    since: Instant,
}

/// An estimate of the memory of an entry apart from its texts and numbers.
const ENTRY_BYTES: usize = 512;

impl InMemoryQuestions {
    /// Creates an empty one of at most 16 MiB, for answers of the last hour.
    pub fn new() -> Self {
        let ttl = Duration::from_secs(60 * 60);
        let kept = Kept { entries: VecDeque::new(), bytes: 0, most_bytes: 16 << 20, ttl };
        Self { kept: Arc::new(Mutex::new(kept)) }
    }

    /// Sets the maximum bytes of all kept questions, with their embeddings, and answers in JSON. Those beyond it are
    /// removed. A larger answer is not kept.
    pub fn with_bytes(self, bytes: usize) -> Self {
        self.lock().most_bytes = bytes;
        self.lock().shrink();
        self
    }

    /// Sets the time for which an answer is kept.
    pub fn with_ttl(self, ttl: Duration) -> Self {
        self.lock().ttl = ttl;
        self
    }

    /// Removes all questions.
    pub fn clear(&self) {
        let mut kept = self.lock();
        kept.entries.clear();
        kept.bytes = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Code under the lock never leaves the questions inconsistent.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Returns the closest question, which is then the one used last.
    fn closest(&mut self, question: &Question) -> Option<SimilarAnswer> {
        let ttl = self.ttl;
        let scored = self.entries.iter().enumerate().filter_map(|(place, entry)| {
            let known = &entry.question;
            let fits = known.tenant == question.tenant && known.context == question.context;
            let score = (fits && entry.since.elapsed() < ttl)
                .then(|| known.embedding.cosine(&question.embedding))??;
            Some((place, score))
        });
        let (place, score) = scored.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let entry = self.entries.remove(place)?;
        let found = SimilarAnswer::new(entry.question.id(), score, entry.answer.clone());
        self.entries.push_back(entry);
        Some(found)
    }

    fn keep(&mut self, entry: Entry) {
        let is_same = |known: &Entry| {
            let (known, new) = (&known.question, &entry.question);
            (&known.tenant, &known.context, &known.text) == (&new.tenant, &new.context, &new.text)
        };
        if let Some(place) = self.entries.iter().position(is_same) {
            self.remove(place);
        }
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
        self.shrink();
    }

    fn forget(&mut self, tenant: &str, id: &str) {
        let is_it = |known: &Entry| known.question.tenant == tenant && known.question.id() == id;
        if let Some(place) = self.entries.iter().position(is_it) {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: usize) {
        if let Some(entry) = self.entries.remove(place) {
            self.bytes -= entry.bytes;
        }
    }

    fn shrink(&mut self) {
        while self.bytes > self.most_bytes && !self.entries.is_empty() {
            self.remove(0);
        }
    }
}

#[async_trait]
impl SimilarQuestions for InMemoryQuestions {
    async fn closest(&self, question: &Question) -> Result<Option<SimilarAnswer>> {
        Ok(self.lock().closest(question))
    }

    async fn keep(&self, question: Question, answer: ChatResponse) -> Result<()> {
        let numbers = size_of::<f32>() * question.embedding.len();
        let bytes = [json_bytes(&answer), question.text.len(), numbers, ENTRY_BYTES].iter().sum();
        let mut kept = self.lock();
        if bytes <= kept.most_bytes {
            kept.keep(Entry { question, answer, bytes, since: Instant::now() });
        }
        Ok(())
    }

    async fn forget(&self, tenant: &str, id: &str) -> Result<()> {
        self.lock().forget(tenant, id);
        Ok(())
    }
}

impl Default for InMemoryQuestions {
    fn default() -> Self {
        Self::new()
    }
}

/// Omits the questions and the answers, which are content.
impl fmt::Debug for InMemoryQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryQuestions")
            .field("questions", &self.lock().entries.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use advisor_core::{ChatRequest, Embedding, FinishReason, Message};

    use super::*;

    fn question(tenant: &str, text: &str, numbers: [f32; 2]) -> Question {
        let request = ChatRequest::new(Message::user(text));
        Question::new(tenant, &request, text.into(), Embedding::new(numbers).unwrap())
    }

    fn answer(text: &str) -> ChatResponse {
        ChatResponse::new(1, Message::assistant(text), FinishReason::Stop)
    }

    #[tokio::test]
    async fn law_r1_similar_questions_are_bounded_in_bytes() {
        let questions = InMemoryQuestions::new().with_bytes(4_000);
        for number in 0..30_u8 {
            let asked = question("a", &format!("{number:02}"), [1.0, f32::from(number)]);
            questions.keep(asked, answer("yes")).await.unwrap();
            let bytes = questions.lock().entries.iter().map(|entry| entry.bytes).sum::<usize>();
            assert!(questions.lock().bytes == bytes && bytes <= 4_000);
        }
        assert!((2..10).contains(&questions.lock().entries.len()));
        let closest = questions.closest(&question("a", "x", [1.0, 0.0])).await.unwrap().unwrap();
        assert!(closest.score < 0.1, "the first ones are removed");
        questions.keep(question("a", "long", [1.0, 0.0]), answer(&"long".repeat(2_000))).await.unwrap();
        assert!(questions.closest(&question("a", "x", [1.0, 0.0])).await.unwrap().unwrap().score < 0.1);
        let _ = questions.clone().with_bytes(0);
        let kept = questions.lock();
        assert_eq!((kept.entries.len(), kept.bytes), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn closest_question_of_a_tenant_is_found() {
        let questions = InMemoryQuestions::new().with_ttl(Duration::from_secs(10));
        for (tenant, text, numbers) in
            [("a", "far", [0.0, 1.0]), ("a", "near", [1.0, 0.1]), ("b", "same", [1.0, 0.0])]
        {
            questions.keep(question(tenant, text, numbers), answer(text)).await.unwrap();
        }
        questions.keep(question("a", "near", [1.0, 0.2]), answer("newer")).await.unwrap();
        let closest = async |tenant| questions.closest(&question(tenant, "?", [1.0, 0.0])).await.unwrap();
        assert_eq!(closest("a").await.unwrap().answer.text(), "newer");
        assert!(closest("c").await.is_none());
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(closest("a").await.is_none(), "too old");
    }

    #[test]
    fn parts_of_a_digest_do_not_run_together() {
        let ids: Vec<_> =
            [("a", "bc"), ("ab", "c")].map(|(tenant, text)| question(tenant, text, [1.0, 0.0]).id()).into();
        assert_ne!(ids[0], ids[1]);
        assert!(ids.iter().all(|id| id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit())));
    }
}
