//! `PrefixWatch`: warns of a changed beginning of the prompt. `PrefixChange`; `Digests` of the parts.

use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatRequest, ChunkStream, ConversationKey, Message, Phase,
    Placement, Result, Role, StreamAdvisor, ToolSet, TurnId, async_trait,
};
use serde::Serialize;

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
/// It keeps digests only, of the last 1,000 conversations and of 1,000 messages each. Clones have the same ones. It is beside the
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
/// let watch = PrefixWatch::default().with_on_change(move |change| noted.lock().unwrap().push(change.clone()));
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
#[derive(Clone, Default)]
pub struct PrefixWatch {
    calls: Arc<Mutex<Recent<Watched, Digests>>>,
    on_change: Option<Arc<OnChange>>,
}

type OnChange = dyn Fn(&PrefixChange) + Send + Sync;

/// The calls that share a beginning: those of a conversation, or of a turn outside one.
type Watched = (Option<ConversationKey>, Option<TurnId>);

/// The number of conversations whose last call is known. Turns outside conversations count, too.
const MOST_CONVERSATIONS: usize = 1_000;

/// The number of messages of a conversation that are compared, the first ones.
const MOST_MESSAGES: usize = 1_000;

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
    /// Calls a function at each change, beside the warning: to count changes, or to fail a test. It must not block.
    pub fn with_on_change(self, on_change: impl Fn(&PrefixChange) + Send + Sync + 'static) -> Self {
        Self { on_change: Some(Arc::new(on_change)), ..self }
    }

    /// Notes a request, and returns what changed since the call before.
    fn note(&self, request: &ChatRequest) -> Option<PrefixChange> {
        let (turn, conversation) = (request.turn.id().clone(), request.conversation.clone());
        let of_turn = conversation.is_none().then(|| turn.clone());
        let watched = (conversation.clone(), of_turn);
        let digests = Digests::of(request);
        // Code under the lock never leaves the digests inconsistent.
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = calls.of(&watched).map(|earlier| digests.since(earlier));
        calls.note(&watched, digests, MOST_CONVERSATIONS);
        let (system, tools, message) = changed?;
        let change = PrefixChange { conversation, turn, system, tools, message };
        (system || tools || message.is_some()).then_some(change)
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
        f.debug_struct("PrefixWatch").field("on_change", &self.on_change.is_some()).finish_non_exhaustive()
    }
}

/// The digests of the parts of a request that providers cache, in the order in which they do.
#[derive(Debug)]
struct Digests {
    tools: u64,
    system: u64,
    /// Those of the other messages: the first ones only, up to the ephemeral ones at the end.
    messages: Vec<u64>,
}

/// The digest of a message or of a set of tools, which is computed once for each.
struct Digest(u64);

impl Digests {
    /// Computes the digests of a request, with those of its first messages.
    ///
    /// Ephemeral messages at the end are of this call alone, such as the correction of a rejected answer.
    fn of(request: &ChatRequest) -> Self {
        let is_system = |message: &&Message| message.role() == Role::System;
        let is_last = |message: &&Message| is_system(message) || message.is_ephemeral();
        let kept = request.messages.len() - request.messages.iter().rev().take_while(is_last).count();
        let mut system = DefaultHasher::new();
        request.messages.iter().filter(is_system).for_each(|message| system.write_u64(digest_of(message)));
        let others = request.messages.iter().take(kept).filter(|message| !is_system(message));
        // Context is sent at the beginning of the message that it stands before.
        let (mut messages, mut context) = (Vec::new(), DefaultHasher::new());
        for message in others {
            context.write_u64(digest_of(message));
            if !(message.is_ephemeral() && message.role() == Role::User) {
                messages.push(std::mem::take(&mut context).finish());
            }
            if messages.len() == MOST_MESSAGES {
                break;
            }
        }
        Self { tools: request.api_tools().wire_form(digest_of_tools).0, system: system.finish(), messages }
    }

    /// Returns whether system text and tools changed since an earlier request, and the first message that did. Its last
    /// message may change, and others may follow it.
    fn since(&self, earlier: &Self) -> (bool, bool, Option<usize>) {
        let kept = earlier.messages.len().saturating_sub(1);
        let message = (0..kept).find(|place| self.messages.get(*place) != earlier.messages.get(*place));
        (self.system != earlier.system, self.tools != earlier.tools, message)
    }
}

fn digest_of(message: &Message) -> u64 {
    message.wire_form(|message| Digest(digest(message.content()))).0
}

fn digest_of_tools(tools: &ToolSet) -> Digest {
    let sent: Vec<_> =
        tools.definitions().map(|tool| (&tool.name, &tool.description, &tool.parameters)).collect();
    Digest(digest(&sent))
}

/// Returns the digest of the JSON form of a value.
fn digest(value: &impl Serialize) -> u64 {
    struct Hashing(DefaultHasher);

    impl io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut hashing = Hashing(DefaultHasher::new());
    // A value without a JSON form has the digest of its beginning.
    let _ = serde_json::to_writer(&mut hashing, value);
    hashing.0.finish()
}
