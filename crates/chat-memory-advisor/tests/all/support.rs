//! Shared parts of the tests: a client with memory, a small tool loop, and transcripts as short words.

use std::sync::Arc;

use advisor_core::{
    AdvisorChain, AdvisorInfo, AdvisorRole, ChatClient, ChatClientBuilder, ChatRequest, Chunk, ChunkStream,
    ConversationKey, FinishReason, LoopHistory, Message, Phase, Placement, Record, Result, Role, Step,
    StreamAdvisor, ToolResult, TurnEnd, TurnStream, async_trait,
};
use advisor_testkit::validate_transcript;
use advisor_testkit::{Answer, ScriptedModel};
use chat_memory_advisor::ChatMemoryAdvisor;
use conversation_store::{Entry, EntryKind};
use futures::{StreamExt, stream};

pub(crate) fn key() -> ConversationKey {
    ConversationKey::new("c").unwrap()
}

/// A client with this memory inside the small loop, or outside it, around a scripted model.
pub(crate) fn client(
    memory: &ChatMemoryAdvisor,
    place: Phase,
    answers: impl IntoIterator<Item = Answer>,
) -> (ChatClient, ScriptedModel) {
    let model = ScriptedModel::new(answers);
    let client = builder(memory, place, &model).advisor(Rounds::default()).build().unwrap();
    (client, model)
}

/// A client with memory and without a loop.
pub(crate) fn plain(
    memory: &ChatMemoryAdvisor,
    answers: impl IntoIterator<Item = Answer>,
) -> (ChatClient, ScriptedModel) {
    let model = ScriptedModel::new(answers);
    (builder(memory, Phase::Round, &model).build().unwrap(), model)
}

pub(crate) fn builder(memory: &ChatMemoryAdvisor, place: Phase, model: &ScriptedModel) -> ChatClientBuilder {
    ChatClient::builder(model.clone()).system("S").advisor_in(place, memory.clone())
}

/// Begins a turn of the one conversation.
pub(crate) fn turn(client: &ChatClient, user: &str) -> TurnStream {
    client.prompt().user(user).conversation("c").stream()
}

/// Runs a turn and gives the text of its answer.
pub(crate) async fn ask(client: &ChatClient, user: &str) -> Result<String> {
    turn(client, user).call().await.map(|response| response.text())
}

/// Reads a turn until it has shown this text.
pub(crate) async fn read_until(turn: &mut TurnStream, text: &str) {
    let mut shown = String::new();
    while shown != text {
        shown.push_str(turn.next().await.unwrap().unwrap().text().unwrap_or_default());
    }
}

/// Returns the messages of the `nth` request, and checks that they are valid.
pub(crate) fn sent(model: &ScriptedModel, nth: usize) -> String {
    let prompt = &model.prompts()[nth];
    assert_eq!(validate_transcript(&prompt.messages), [], "{}", words(&prompt.messages));
    words(&prompt.messages)
}

/// A transcript in one word per message: `u:hello`, `a:hi`, `a(1,2)`, `r1`, `r1!` for an error result.
pub(crate) fn words<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    messages.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

fn word(message: &Message) -> String {
    let text = message.text();
    match message.role() {
        Role::System => format!("s:{text}"),
        Role::User => format!("u:{text}"),
        Role::Assistant if message.tool_calls().next().is_some() => {
            let ids: Vec<_> = message.tool_calls().map(|call| call.id.to_string()).collect();
            format!("a({}){text}", ids.join(","))
        }
        Role::Assistant => format!("a:{text}"),
        Role::Tool => {
            let result = message.tool_result().unwrap();
            format!("r{}{}", result.call_id, if result.is_error { "!" } else { "" })
        }
    }
}

/// A log in one word per entry, starts as `started(1)`, the ends of turns as `.`, `cut(…)`, `failed(…)` or `undone`.
pub(crate) fn log_words(log: &[Entry]) -> String {
    let word_of = |entry: &Entry| match &entry.kind {
        EntryKind::Message(message) => word(message),
        EntryKind::CallStarted(start) => format!("started({})", start.call_id),
        EntryKind::TurnEnded(TurnEnd::Completed(_)) => String::from("."),
        EntryKind::TurnEnded(TurnEnd::Interrupted { partial }) => format!("cut({partial})"),
        EntryKind::TurnEnded(TurnEnd::Failed { partial }) => format!("failed({partial})"),
        EntryKind::TurnEnded(TurnEnd::RolledBack) => String::from("undone"),
        other => format!("{other:?}"),
    };
    log.iter().map(word_of).collect::<Vec<_>>().join(" ")
}

/// A tool loop as small as can be: every call is answered with `ran <id>`, everything is announced as the
/// contract of recorders says.
#[derive(Clone, Default)]
pub(crate) struct Rounds {
    /// Injected after the results of each round.
    pub(crate) inject: Vec<Message>,
    /// Asks once more after an answer without calls, adding this.
    pub(crate) steer: Option<Message>,
    /// Runs no call and leaves all to the caller.
    pub(crate) end_client_side: bool,
}

struct Round {
    request: ChatRequest,
    next: AdvisorChain,
    stream: Option<ChunkStream>,
    rounds: Rounds,
    ended: bool,
}

impl AdvisorInfo for Rounds {
    fn name(&self) -> &'static str {
        "rounds"
    }

    fn placement(&self) -> Placement {
        Placement { phase: Phase::Loop, role: AdvisorRole::ToolLoop(LoopHistory::Auto) }
    }
}

#[async_trait]
impl StreamAdvisor for Rounds {
    async fn advise_stream(self: Arc<Self>, request: ChatRequest, next: AdvisorChain) -> Result<ChunkStream> {
        next.on_loop_start(&request)?;
        let stream = Some(next.next_stream(request.clone()).await?);
        let round = Round { request, next, stream, rounds: (*self).clone(), ended: false };
        Ok(ChunkStream::new(stream::unfold(round, |mut round| async {
            let item = round.advance().await?;
            Some((item, round))
        })))
    }
}

impl Round {
    async fn advance(&mut self) -> Option<Result<Chunk>> {
        if self.ended {
            return None;
        }
        let item = self.step().await;
        self.ended = !matches!(&item, Ok(chunk) if chunk.completed().is_none());
        Some(item)
    }

    async fn step(&mut self) -> Result<Chunk> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(self.next.next_stream(self.request.clone()).await?),
        };
        let chunk = stream.next().await.expect("a stream ends with its completion")?;
        let Chunk::Completed(response) = chunk else { return Ok(chunk) };
        self.stream = None;
        let said = Some(response.message()).filter(|message| !message.blocks().is_empty());
        let answer: Vec<_> = said.cloned().into_iter().collect();
        let calls: Vec<_> = response.tool_calls().map(|(_, call)| call.clone()).collect();
        let steer = self.rounds.steer.take().filter(|_| calls.is_empty());
        let mut added: Vec<_> = steer.into_iter().collect();
        let over = calls.is_empty() && added.is_empty() && response.finish.reason != FinishReason::Paused;
        if over || self.rounds.end_client_side {
            let end = Step::End(TurnEnd::Completed(response.finish.reason.clone()));
            self.record(response.round(), end, answer).await?;
            return Ok(Chunk::Completed(response));
        }
        self.record(response.round(), Step::Answer, answer.clone()).await?;
        if !calls.is_empty() {
            let ran = |call| Message::tool(ToolResult::new(call, vec![format!("ran {}", call.id).into()]));
            let results: Vec<_> = calls.iter().map(ran).collect();
            self.record(response.round(), Step::Results, results.clone()).await?;
            added = results;
            let injected = self.rounds.inject.clone();
            if !injected.is_empty() {
                self.record(response.round(), Step::Injected, injected.clone()).await?;
            }
            added.extend(injected);
        } else if !added.is_empty() {
            self.record(response.round(), Step::Injected, added.clone()).await?;
        }
        if !self.next.has_memory() {
            // Without a memory inside, the loop sends everything again.
            self.request.messages.extend(answer);
        }
        self.request.messages.extend(added);
        Ok(Chunk::RoundCompleted(response))
    }

    async fn record(&mut self, round: u32, step: Step, messages: Vec<Message>) -> Result<()> {
        self.request.turn.record(&Record::new(round, step, messages)).await
    }
}
