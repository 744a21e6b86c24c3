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
/// processes: the README has an example.
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
/// use advisor_core::{ChatResponse, Result, async_trait};
/// use common_advisors::{Question, SimilarAnswer, SimilarQuestions};
///
/// /// Keeps nothing.
/// struct Forgetful;
///
/// #[async_trait]
/// impl SimilarQuestions for Forgetful {
///     async fn closest(&self, _: &Question) -> Result<Option<SimilarAnswer>> {
///         Ok(None)
///     }
///
///     async fn keep(&self, _: Question, _: ChatResponse) -> Result<()> {
///         Ok(())
///     }
///
///     async fn forget(&self, _tenant: &str, _id: &str) -> Result<()> {
///         Ok(())
///     }
/// }
/// # let _ = Forgetful;
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
    let choices = response.choices();
    choices.iter().all(|choice| choice.finish.reason == FinishReason::Stop)
        && response.message().tool_calls().next().is_none()
}

fn warn(what: &'static str, error: &Error) {
    let (advisor, kind) = ("response-cache", error.kind().as_str());
    tracing::warn!(advisor, kind, what, "the search for similar questions failed, and the turn continues");
}
