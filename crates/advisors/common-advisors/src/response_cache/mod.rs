//! `ResponseCache`: finds and keeps complete answers, also for similar questions.

mod answers;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChatResponse, ChunkStream, Embedding,
    EmbeddingModel, FinishReason, Phase, Placement, Result, StreamAdvisor, Turn, async_trait,
};

use self::answers::{Answers, Asked};

/// Answers an equal request again without the model.
///
/// Requests are equal if their messages, options and tools are, and those of one tenant only. Only complete answers are kept. These are answers with
/// the finish reasons [`Stop`](FinishReason::Stop) and [`ToolCalls`](FinishReason::ToolCalls). Calls of a kept answer run
/// again. A repeated answer comes at once, as a round with its own number, and reports no token counts. If an advisor
/// outside [rejects](advisor_core::Turn::reject_answer) an answer, as structured output does, it is removed.
///
/// Kept answers are bounded in bytes, and the one that was not used for the longest time is removed first. They are in
/// memory, and clones have the same ones. Use a separate cache for each model, since the model of a chain is not part of
/// a request.
///
/// Its phase is [`Phase::ModelCall`], inside memory, which stores a repeated answer like any other. A place outside memory
/// is refused: there a request lacks the earlier messages of its conversation. Advisors inside the cache are not called for
/// a repeated answer. So advisors that add the data of a user to a request belong outside it, and so do guards and judges:
/// those outside check repeated answers, too.
///
/// # Example
/// ```
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::ResponseCache;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let model = ScriptedModel::new([Answer::from_text("A frog.")]);
/// let client = ChatClient::builder(model.clone()).advisor(ResponseCache::default()).build()?;
/// for _ in 0..2 {
///     assert_eq!(client.prompt().user("What is green?").call().await?.text(), "A frog.");
/// }
/// assert_eq!(model.calls(), 1);
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct ResponseCache {
    answers: Arc<Mutex<Answers>>,
    similar: Option<Similar>,
}

/// The search for similar questions.
#[derive(Clone)]
struct Similar {
    embeddings: Arc<dyn EmbeddingModel>,
    min_score: f32,
}

impl ResponseCache {
    /// Sets the maximum bytes of all kept requests, with their embeddings, and answers in JSON. Those beyond it are
    /// removed. A larger answer is not kept.
    pub fn with_bytes(self, bytes: usize) -> Self {
        self.lock().set_bytes(bytes);
        self
    }

    /// Sets the time for which an answer is kept.
    pub fn with_ttl(self, ttl: Duration) -> Self {
        self.lock().ttl = ttl;
        self
    }

    /// Gives the answer to a question also to similar questions: those of the same tenant whose embedding has at least
    /// this cosine, from -1 to 1. Useful values depend on the embedding model and on the questions.
    ///
    /// A question is the text of the last message, which the user wrote. Everything else has to be equal: all other
    /// messages, the options and the tools. An answer with calls is not given to another question. An answer that
    /// an advisor outside rejects is forgotten, also if it was made for a similar question.
    ///
    /// A search compares the embedding with every kept question. So the time of a call grows with their number, which
    /// [`with_bytes`](Self::with_bytes) bounds.
    ///
    /// If a question cannot be embedded, a warning is logged, and the model is asked. The call has no timeout, unless the
    /// embedding model has one.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ChatClient;
    /// use advisor_testkit::{Answer, ScriptedModel, WordEmbeddings};
    /// use common_advisors::ResponseCache;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let model = ScriptedModel::new([Answer::from_text("At nine.")]);
    /// let cache = ResponseCache::default().with_similar(WordEmbeddings::new(), 0.9);
    /// let client = ChatClient::builder(model.clone()).advisor(cache).build()?;
    /// for question in ["When do you open?", "when do you open"] {
    ///     assert_eq!(client.prompt().user(question).call().await?.text(), "At nine.");
    /// }
    /// assert_eq!(model.calls(), 1);
    /// # Ok(()) }
    /// ```
    pub fn with_similar(self, embeddings: impl EmbeddingModel, min_score: f32) -> Self {
        Self { similar: Some(Similar { embeddings: Arc::new(embeddings), min_score }), ..self }
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        // Code under the lock never leaves the answers inconsistent.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the known answer to an equal request, or to one with a similar question, with that request; and the embedding
    /// of the question, if it was needed.
    async fn find(&self, asked: &Arc<Asked>) -> (Option<(Arc<Asked>, ChatResponse)>, Option<Embedding>) {
        if let Some(answer) = self.lock().find(asked) {
            return (Some((Arc::clone(asked), answer)), None);
        }
        let Some(similar) = &self.similar else { return (None, None) };
        let Some(embedding) = similar.embed(asked).await else { return (None, None) };
        let found = self.lock().closest(asked, &embedding, similar.min_score);
        (found, Some(embedding))
    }

    /// Forgets an answer if an advisor outside rejects it.
    fn forget_if_rejected(self: Arc<Self>, turn: &Turn, asked: Arc<Asked>) {
        turn.on_rejected(async move { self.lock().remove_answer(&asked) });
    }
}

impl Similar {
    /// Returns the embedding of a request's question. `None` if it has none, or if it cannot be embedded.
    async fn embed(&self, asked: &Asked) -> Option<Embedding> {
        let question = asked.question()?;
        match self.embeddings.embed_all(&[question]).await {
            Ok(embeddings) => embeddings.into_iter().next(),
            Err(error) => {
                let (advisor, kind) = ("response-cache", error.kind().as_str());
                tracing::warn!(
                    advisor,
                    kind,
                    "a question cannot be embedded, so no similar one is searched for"
                );
                None
            }
        }
    }
}

/// At most 64 MiB, for answers of the last hour.
impl Default for ResponseCache {
    fn default() -> Self {
        let answers = Answers::new(64 << 20, Duration::from_secs(60 * 60));
        Self { answers: Arc::new(Mutex::new(answers)), similar: None }
    }
}

fn is_complete(response: &ChatResponse) -> bool {
    let finish = &response.finish;
    matches!(finish.reason, FinishReason::Stop | FinishReason::ToolCalls) && !finish.inferred
}

impl AdvisorInfo for ResponseCache {
    fn name(&self) -> &str {
        "response-cache"
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for ResponseCache {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let (asked, turn) = (Arc::new(Asked::new(&request)), Arc::clone(&request.turn));
        let (known, embedding) = self.find(&asked).await;
        if let Some((asked, answer)) = known {
            return Ok(request.answer(answer).on_completed(move |response| async move {
                self.forget_if_rejected(&turn, asked);
                Ok(response)
            }));
        }
        let answer = next.next_stream(request).await?;
        Ok(answer.on_completed(move |response| async move {
            if is_complete(&response) {
                let embedding = embedding.filter(|_| is_for_others(&response));
                let mut kept = response.clone();
                kept.usage = None;
                self.lock().keep(Arc::clone(&asked), kept, embedding);
                self.forget_if_rejected(&turn, asked);
            }
            Ok(response)
        }))
    }
}

/// Checks whether an answer may be given to other questions. Calls depend on the words of their question.
fn is_for_others(response: &ChatResponse) -> bool {
    response.finish.reason == FinishReason::Stop && response.tool_calls().next().is_none()
}

/// Omits the requests and the answers, which are content.
impl fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache").field("similar", &self.similar.is_some()).finish_non_exhaustive()
    }
}
