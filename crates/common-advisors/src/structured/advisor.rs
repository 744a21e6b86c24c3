//! `StructuredOutput`: the advisor, its settings and its place inside memory.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, Phase, Placement, Result,
    SchemaSupport, StreamAdvisor, async_trait,
};

use crate::structured::OutputFormat;
use crate::structured::attempts::Attempts;

/// Asks for answers of a form, validates them, and asks again if one does not fit.
///
/// Its position is [`Phase::Round`], inside memory and the tool loop. Rejected answers and the corrections sent to
/// the model are never stored. Caches and retries of [`Phase::ModelCall`] are inside it and see the requested
/// form. Answers with tool calls pass, since another round follows them.
///
/// # Ordering
/// The first attempt streams live. If an attempt is rejected after it was shown,
/// [`Chunk::AttemptRestarted`](advisor_core::Chunk::AttemptRestarted) voids the chunks of its round. The next
/// attempt follows in its own round. The usage of the response sums all attempts. The chunks of the last attempt
/// are voided as well if it is rejected.
///
/// # Cancellation
/// Dropping the stream drops the running attempt.
///
/// # Errors
/// Of kind [`InvalidOutput`](advisor_core::ErrorKind::InvalidOutput) if the last attempt does not fit, or if an
/// answer is cut off, filtered or refused, or ended by a limit. The text names the cause; of an answer that does not
/// fit, it has the place and the problem, without content. The answer is the error's [`partial`](advisor_core::Error::partial).
///
/// Caches inside remove rejected answers ([`Turn::reject_answer`](advisor_core::Turn::reject_answer)).
///
/// # Example
/// See [`PromptExt::entity`](crate::structured::PromptExt::entity), which adds this advisor to a turn.
#[derive(Debug, Clone)]
pub struct StructuredOutput {
    pub(crate) format: OutputFormat,
    attempts: u32,
    support: Option<SchemaSupport>,
}

impl StructuredOutput {
    /// Creates an advisor that asks for this form, at most three times.
    #[must_use]
    pub fn new(format: OutputFormat) -> Self {
        Self { format, attempts: 3, support: None }
    }

    /// Sets the maximum number of requests for an answer, the first included; 0 counts as 1.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// Asks by a prompt, even if the server enforces schemas.
    #[must_use]
    pub fn prompted(self) -> Self {
        Self { support: Some(SchemaSupport::None), ..self }
    }
}

impl AdvisorInfo for StructuredOutput {
    fn name(&self) -> &'static str {
        "structured-output"
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::Round, role: AdvisorRole::InsideMemory }
    }
}

#[async_trait]
impl StreamAdvisor for StructuredOutput {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        let support = self.support.unwrap_or_else(|| next.schema_support());
        let request = self.format.apply_to(request, support);
        let first = next.next_stream(request.clone()).await?;
        Ok(ChunkStream::new(Attempts::new(first, next, request, self.format.clone(), self.attempts - 1)))
    }
}
