//! `ResponseCache`: the advisor; finds and keeps complete answers.

mod answers;
mod asked;
mod json_bytes;
pub(crate) mod similar;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChatResponse, ChunkStream, ConversationKey,
    EmbeddingModel, FinishReason, Phase, Placement, Result, StreamAdvisor, Text, Turn, async_trait,
};

use self::answers::Answers;
use self::asked::Asked;
use self::similar::{Similar, SimilarAnswer, SimilarQuestions, is_for_others, question};

/// Answers an equal request again without the model.
///
/// Requests are equal if their messages, options and tools are, and those of one tenant only, unless
/// [`shared_by_tenants`](Self::shared_by_tenants) says otherwise. Only complete answers are kept. These are answers with
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
/// let client = ChatClient::builder(model.clone()).advisor(ResponseCache::new()).build()?;
/// for _ in 0..2 {
///     assert_eq!(client.prompt().user("What is green?").call().await?.text(), "A frog.");
/// }
/// assert_eq!(model.calls(), 1);
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct ResponseCache {
    scope: Scope,
    answers: Arc<Mutex<Answers>>,
    similar: Option<Similar>,
}

/// The requests that may have the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Tenant,
    All,
}

impl ResponseCache {
    /// Creates a cache of at most 64 MiB, for answers of the last hour.
    pub fn new() -> Self {
        let answers = Answers::new(64 << 20, Duration::from_secs(60 * 60));
        Self { scope: Scope::Tenant, answers: Arc::new(Mutex::new(answers)), similar: None }
    }

    /// Sets the maximum bytes of all kept requests and answers in JSON. Those beyond it are removed. A larger answer is
    /// not kept.
    pub fn with_bytes(self, bytes: usize) -> Self {
        self.lock().set_bytes(bytes);
        self
    }

    /// Sets the time for which an answer is kept.
    pub fn with_ttl(self, ttl: Duration) -> Self {
        self.lock().set_ttl(ttl);
        self
    }

    /// Gives the answer to a request of one tenant to all tenants. Answers must not depend on the tenant then, also not
    /// by tools or by advisors inside.
    pub fn shared_by_tenants(self) -> Self {
        Self { scope: Scope::All, ..self }
    }

    /// Gives the answer to a question also to similar questions: those of the same tenant whose embedding has at least
    /// this cosine, from -1 to 1. Useful values depend on the embedding model and on the questions.
    ///
    /// A question is the text of the last message, which the user wrote. Everything else has to be equal: all other
    /// messages, the options and the tools. An answer with calls is not given to another question. If an advisor outside
    /// rejects the answer to a similar question, only the question that it was made for keeps it.
    ///
    /// The questions have separate bounds, in bytes and in time. The bounds of this cache and [`clear`](Self::clear) do
    /// not apply to them. As answers of a cache, they are those of one model.
    ///
    /// If a question cannot be embedded, found or kept, a warning is logged, and the model is asked. The calls have no
    /// timeout, unless the embedding model and the questions have one.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ChatClient;
    /// use advisor_testkit::{Answer, ScriptedModel, WordEmbeddings};
    /// use common_advisors::{InMemoryQuestions, ResponseCache};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> advisor_core::Result<()> {
    /// let model = ScriptedModel::new([Answer::from_text("At nine.")]);
    /// let cache = ResponseCache::new().with_similar(WordEmbeddings::new(), InMemoryQuestions::new(), 0.9);
    /// let client = ChatClient::builder(model.clone()).advisor(cache).build()?;
    /// for question in ["When do you open?", "when do you open"] {
    ///     assert_eq!(client.prompt().user(question).call().await?.text(), "At nine.");
    /// }
    /// assert_eq!(model.calls(), 1);
    /// # Ok(()) }
    /// ```
    pub fn with_similar(
        self,
        embeddings: impl EmbeddingModel,
        questions: impl SimilarQuestions,
        min_score: f32,
    ) -> Self {
        let (embeddings, questions) = (Arc::new(embeddings), Arc::new(questions));
        Self { similar: Some(Similar { embeddings, questions, min_score }), ..self }
    }

    /// Removes all kept answers to equal requests. Similar questions have their own bounds.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        // Code under the lock never leaves the answers inconsistent.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self::new()
    }
}

fn is_complete(response: &ChatResponse) -> bool {
    let finish = response.finish();
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
        let tenant = match self.scope {
            Scope::Tenant => request.conversation.as_ref().map_or("default", ConversationKey::tenant),
            Scope::All => "",
        };
        let (asked, turn) = (Arc::new(Asked::new(tenant, &request)), Arc::clone(&request.turn));
        let known = self.lock().find(&asked);
        if let Some(answer) = known {
            let id = self.similar.as_ref().and_then(|_| question::id_of(tenant, &request));
            let question = id.map(|id| (tenant.into(), id));
            return Ok(self.repeated(&request, answer, Known { asked, question }));
        }
        let question = match &self.similar {
            Some(similar) => similar.question(tenant, &request).await,
            None => None,
        };
        if let (Some(similar), Some(question)) = (&self.similar, &question)
            && let Some(SimilarAnswer { id, answer, .. }) = similar.find(question).await
        {
            let question = Some((tenant.into(), id));
            return Ok(self.repeated(&request, answer, Known { asked, question }));
        }
        let answer = next.next_stream(request).await?;
        Ok(answer.on_completed(move |response| async move {
            if is_complete(&response) {
                let kept = response.clone().with_usage(None);
                self.lock().keep(Arc::clone(&asked), kept.clone());
                let mut known = Known { asked, question: None };
                if let (Some(similar), Some(question)) = (&self.similar, question)
                    && is_for_others(&response)
                {
                    known.question = Some((question.tenant.clone(), question.id()));
                    similar.keep(question, kept).await;
                }
                self.forget_if_rejected(&turn, known);
            }
            Ok(response)
        }))
    }
}

/// The places of the answer that was kept or repeated last.
struct Known {
    asked: Arc<Asked>,
    /// Tenant and id of the question, if it is kept for similar ones.
    question: Option<(Text, Text)>,
}

impl ResponseCache {
    /// Repeats a known answer.
    fn repeated(self: Arc<Self>, request: &ChatRequest, answer: ChatResponse, known: Known) -> ChunkStream {
        let turn = Arc::clone(&request.turn);
        request.answer(answer).on_completed(move |response| async move {
            self.forget_if_rejected(&turn, known);
            Ok(response)
        })
    }

    /// Removes an answer if an advisor outside rejects it.
    fn forget_if_rejected(self: Arc<Self>, turn: &Turn, known: Known) {
        turn.on_rejected(async move {
            self.lock().remove_answer(&known.asked);
            if let (Some(similar), Some((tenant, id))) = (&self.similar, known.question) {
                similar.forget(&tenant, &id).await;
            }
        });
    }
}

/// Omits the requests and the answers, which are content.
impl fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache")
            .field("scope", &self.scope)
            .field("similar", &self.similar.is_some())
            .finish_non_exhaustive()
    }
}
