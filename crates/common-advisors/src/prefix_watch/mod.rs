//! `PrefixWatch`: the advisor; warns of a changed beginning of the prompt. `PrefixChange`.

mod digests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, ConversationKey, Phase, Placement,
    Result, StreamAdvisor, TurnId, async_trait,
};

use self::digests::{Changed, Digests};
use crate::recent::Recent;

/// Warns if the beginning of a conversation's requests changes, which providers cache.
///
/// Providers read the beginning of a prompt from their cache, at lower cost and latency, as far as it is that of an
/// earlier call: the tools, the system text and the earlier messages. An advisor that writes the time into the system
/// text, or that removes an earlier message, makes each call pay for the whole prompt. Nothing else shows that.
///
/// Each call is compared with the one before in its conversation, or in its turn if it has none. A change is one warning
/// of `tracing`, with the parts that changed and without content. Compared are the tools, the system text and the
/// messages, except:
///
/// - ephemeral messages at the end of a call. They belong to that call, such as the correction of a rejected answer;
/// - the last message before them, which may change;
/// - added messages.
///
/// Context ([`ChatRequest::with_context`]) counts as a part of the message that it is sent with.
///
/// The order of the fields of a provider's request is not known here.
///
/// It keeps digests only, of a bounded number of conversations and messages. Clones have the same ones. It is beside the
/// model, so it sees what other advisors change. Add it after the others that are beside the model.
///
/// # Ordering
/// A request is compared before the model is called, and is not changed.
///
/// # Cancellation
/// A dropped call counts as made.
///
/// # Errors
/// None. A request that differs is sent.
///
/// # Example
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use common_advisors::PrefixWatch;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// let changes = Arc::new(Mutex::new(Vec::new()));
/// let noted = Arc::clone(&changes);
/// let watch = PrefixWatch::new().with_on_change(move |change| noted.lock().unwrap().push(change.clone()));
/// let model = ScriptedModel::new([Answer::from_text("Hi."), Answer::from_text("Hi.")]);
/// let client = ChatClient::builder(model).advisor(watch).build()?;
/// for time in ["12:00", "12:01"] {
///     client.prompt().system(format!("It is {time}.")).user("Hello").conversation("c").call().await?;
/// }
/// let changes = changes.lock().unwrap();
/// assert!(changes.len() == 1 && changes[0].system && !changes[0].tools);
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct PrefixWatch {
    calls: Arc<Mutex<Recent<Watched, Digests>>>,
    most_conversations: usize,
    on_change: Option<Arc<OnChange>>,
}

type OnChange = dyn Fn(&PrefixChange) + Send + Sync;

/// The calls that share a beginning.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Watched {
    Conversation(ConversationKey),
    /// A turn outside a conversation.
    Turn(TurnId),
}

/// A change of the beginning of a request, since the call before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrefixChange {
    /// The conversation.
    pub conversation: Option<ConversationKey>,
    /// The turn of the changed request.
    pub turn: TurnId,
    /// Whether the system text changed.
    pub system: bool,
    /// Whether the tools changed: their order, names, descriptions or schemas.
    pub tools: bool,
    /// The position of the first message that changed, moved or is missing. Counted from 0, without system messages.
    pub message: Option<usize>,
}

impl PrefixWatch {
    /// The number of messages of a conversation that are compared, the first ones.
    pub const MAX_MESSAGES: usize = 1_000;

    /// Creates one for the last 1,000 conversations.
    pub fn new() -> Self {
        Self { calls: Arc::default(), most_conversations: 1_000, on_change: None }
    }

    /// Sets the maximum number of conversations whose last call is known. Turns outside conversations count, too.
    pub fn with_conversations(self, number: usize) -> Self {
        Self { most_conversations: number, ..self }
    }

    /// Calls a function at each change, beside the warning: to count changes, or to fail a test. It must not block.
    pub fn with_on_change(self, on_change: impl Fn(&PrefixChange) + Send + Sync + 'static) -> Self {
        Self { on_change: Some(Arc::new(on_change)), ..self }
    }

    /// Notes a request, and returns what changed since the call before.
    fn note(&self, request: &ChatRequest) -> Option<PrefixChange> {
        let turn = request.turn.id().clone();
        let conversation = request.conversation.clone();
        let watched = conversation.clone().map_or(Watched::Turn(turn.clone()), Watched::Conversation);
        let digests = Digests::of(request, Self::MAX_MESSAGES);
        // Code under the lock never leaves the digests inconsistent.
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = calls.of(&watched).and_then(|earlier| digests.since(earlier));
        calls.note(&watched, digests, self.most_conversations);
        let Changed { system, tools, message } = changed?;
        Some(PrefixChange { conversation, turn, system, tools, message })
    }
}

impl PrefixChange {
    /// Logs the change, without content.
    fn warn(&self) {
        let conversation = self.conversation.as_ref().map(tracing::field::display);
        // A field `message` would be the text of the event.
        let (system, tools, position) = (self.system, self.tools, self.message);
        tracing::warn!(
            conversation,
            turn = %self.turn,
            system,
            tools,
            position,
            "the beginning of the prompt changed since the call before, so the provider's cache does not have it"
        );
    }
}

impl Default for PrefixWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl AdvisorInfo for PrefixWatch {
    fn name(&self) -> &str {
        "prefix-watch"
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel }
    }
}

#[async_trait]
impl StreamAdvisor for PrefixWatch {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        if let Some(change) = self.note(&request) {
            change.warn();
            if let Some(on_change) = &self.on_change {
                on_change(&change);
            }
        }
        next.next_stream(request).await
    }
}

impl fmt::Debug for PrefixWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on_change = self.on_change.is_some();
        f.debug_struct("PrefixWatch")
            .field("most_conversations", &self.most_conversations)
            .field("on_change", &on_change)
            .finish_non_exhaustive()
    }
}
