//! `SimilarQuestions`, the contract of a search for similar questions, and `Similar`, its use by the cache.

pub(crate) mod in_memory;
pub(crate) mod question;

use std::sync::Arc;

use advisor_core::{
    ChatRequest, ChatResponse, EmbeddingModel, Error, FinishReason, Result, Text, async_trait,
};

use self::question::Question;

/// Keeps questions with their answers, and finds the one that is closest to another question.
///
/// [`InMemoryQuestions`](crate::InMemoryQuestions) is one. Another one can keep them in a vector store, for several
/// processes, as in the example.
///
/// # Ordering
/// A kept question may be found later than at once. Of two with the same [`id`](Question::id), the later one counts.
///
/// # Cancellation
/// A dropped turn drops the future. A question is then kept or not.
///
/// # Errors
/// After an error the model is asked, and the turn continues. A warning is logged, without content.
///
/// # Example
/// ```
/// use advisor_core::{ChatClient, ChatResponse, Error, Result, async_trait};
/// use advisor_testkit::{Answer, ScriptedModel, WordEmbeddings};
/// use common_advisors::{Question, ResponseCache, SimilarAnswer, SimilarQuestions};
/// use common_advisors::retrieval::{Document, EmbeddedDocument, Filter, InMemoryVectors, VectorStore};
///
/// /// Questions in a vector store, which several processes can share.
/// struct InVectors<S>(S);
///
/// #[async_trait]
/// impl<S: VectorStore> SimilarQuestions for InVectors<S> {
///     async fn closest(&self, question: &Question) -> Result<Option<SimilarAnswer>> {
///         let filter = Filter::in_tenant(question.tenant.clone()).with_equal("context", &*question.context);
///         let found = self.0.search(&question.embedding, 1, &filter).await?;
///         let Some(document) = found.into_iter().next() else { return Ok(None) };
///         let answer = serde_json::from_value(document.metadata["answer"].clone()).map_err(Error::advisor)?;
///         Ok(Some(SimilarAnswer::new(document.id, document.score.unwrap_or(-1.0), answer)))
///     }
///
///     async fn keep(&self, question: Question, answer: ChatResponse) -> Result<()> {
///         let answer = serde_json::to_value(&answer).map_err(Error::advisor)?;
///         let document = Document::new(question.id(), question.text)
///             .with_metadata("context", &*question.context)
///             .with_metadata("answer", answer);
///         self.0.upsert(&question.tenant, vec![EmbeddedDocument::new(document, question.embedding)]).await?;
///         Ok(())
///     }
///
///     async fn forget(&self, tenant: &str, id: &str) -> Result<()> {
///         self.0.delete(&Filter::in_tenant(tenant).with_ids([id])).await?;
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let model = ScriptedModel::new([Answer::from_text("At nine.")]);
/// let cache = ResponseCache::new().with_similar(WordEmbeddings::new(), InVectors(InMemoryVectors::new()), 0.9);
/// let client = ChatClient::builder(model).advisor(cache).build()?;
/// for question in ["When do you open?", "when do you open"] {
///     assert_eq!(client.prompt().user(question).call().await?.text(), "At nine.");
/// }
/// # Ok(()) }
/// ```
#[async_trait]
pub trait SimilarQuestions: Send + Sync + 'static {
    /// Returns the answer to the closest question of the same [`tenant`](Question::tenant) and the same
    /// [`context`](Question::context).
    async fn closest(&self, question: &Question) -> Result<Option<SimilarAnswer>>;

    /// Keeps a question and its answer.
    async fn keep(&self, question: Question, answer: ChatResponse) -> Result<()>;

    /// Removes the question of this [tenant](Question::tenant) with this [`id`](Question::id), if it is kept. Its answer was
    /// [rejected](advisor_core::Turn::reject_answer).
    async fn forget(&self, tenant: &str, id: &str) -> Result<()>;
}

/// The answer to a similar question.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SimilarAnswer {
    /// The [`id`](Question::id) of the question that was found.
    pub id: Text,
    /// The cosine of the angle between the embeddings of both questions, from -1 to 1.
    pub score: f32,
    /// The answer.
    pub answer: ChatResponse,
}

impl SimilarAnswer {
    /// Creates one.
    #[must_use]
    pub fn new(id: impl Into<Text>, score: f32, answer: ChatResponse) -> Self {
        Self { id: id.into(), score, answer }
    }
}

/// The search for similar questions of a cache.
#[derive(Clone)]
pub(super) struct Similar {
    pub(super) embeddings: Arc<dyn EmbeddingModel>,
    pub(super) questions: Arc<dyn SimilarQuestions>,
    pub(super) min_score: f32,
}

impl Similar {
    /// Returns the question of a request with its embedding. `None` if it has none, or if it cannot be embedded.
    pub(super) async fn question(&self, tenant: &str, request: &ChatRequest) -> Option<Question> {
        let text = question::text_of(request)?;
        match self.embeddings.embed_all(std::slice::from_ref(&text)).await {
            Ok(embeddings) => Some(Question::new(tenant, request, text, embeddings.into_iter().next()?)),
            Err(error) => {
                warn("embed a question", &error);
                None
            }
        }
    }

    /// Returns the answer to the closest question, if it is close enough.
    pub(super) async fn find(&self, question: &Question) -> Option<SimilarAnswer> {
        match self.questions.closest(question).await {
            Ok(found) => found.filter(|found| found.score >= self.min_score),
            Err(error) => {
                warn("find a similar question", &error);
                None
            }
        }
    }

    /// Keeps the answer to a question.
    pub(super) async fn keep(&self, question: Question, answer: ChatResponse) {
        if let Err(error) = self.questions.keep(question, answer).await {
            warn("keep a question", &error);
        }
    }

    /// Removes the question of a rejected answer.
    pub(super) async fn forget(&self, tenant: &str, id: &str) {
        if let Err(error) = self.questions.forget(tenant, id).await {
            warn("remove a question", &error);
        }
    }
}

/// Checks whether an answer may be given to other questions. Calls depend on the words of their question.
pub(super) fn is_for_others(response: &ChatResponse) -> bool {
    response.finish().reason == FinishReason::Stop && response.tool_calls().next().is_none()
}

fn warn(what: &'static str, error: &Error) {
    let (advisor, kind) = ("response-cache", error.kind().as_str());
    tracing::warn!(advisor, kind, what, "the search for similar questions failed, and the turn continues");
}
