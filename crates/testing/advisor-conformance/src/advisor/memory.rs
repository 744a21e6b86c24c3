//! Clauses about an advisor in a chain with memory and a tool loop.

use advisor_core::{ChatClient, ChatModel, ChatResponse, ErrorKind, Message, Phase, Result, Role, ToolSet};
use advisor_testkit::{TranscriptError, validate_transcript};
use chat_memory_advisor::{ChatMemoryAdvisor, InMemoryStore};
use futures::StreamExt;
use tool_call_advisor::{ToolCallAdvisor, ToolCallStreaming};

use super::inside::Inside;
use super::reading::{Items, bounded, read, tools, within};
use super::script::{Cut, LAST, Pace, Script};
use super::subject::{Clause, Declaration, Subject};
use super::whole::{check_chunks, said};
use crate::sent::written;
use advisor_testkit::Answer;

/// The turns of a conversation.
const TURNS: [&str; 3] = ["one", "two", "three"];

pub(super) const FITS: Clause = Clause {
    law: "a chain with memory",
    rule: "the advisor works beside a memory and a tool loop",
    remedy: "answer requests with results of tools, too; set `answer` if the advisor needs certain words of the model",
};
const VALID: Clause = Clause {
    law: "law M1",
    rule: "each request has a valid transcript",
    remedy: "add instructions with `with_system`, and keep each call with its result",
};
const EQUAL: Clause = Clause {
    law: "law M4",
    rule: "memory inside the tool loop and memory outside it have the same transcript",
    remedy: "place an advisor that changes messages or answers inside memory (a `Placement` with the role \
             `AdvisorRole::InsideMemory`), or declare `EditsAnswers`, `EditsRequests`, `AnswersItself` or `AsksAgain`",
};
const REMEMBERED: Clause = Clause {
    law: "law S4",
    rule: "memory has the answer that was shown",
    remedy: "place an advisor that changes answers inside memory: `Placement { phase: Phase::ModelCall, role: AdvisorRole::InsideMemory }`",
};
const BEFORE_TOOLS: Clause = Clause {
    law: "law O3",
    rule: "the completion work of a round ends before a tool of the round starts",
    remedy: "return the `Completed` of the inner stream, and put work of your own into `on_completed`",
};
const NEXT_TURN: Clause = Clause {
    law: "law K4",
    rule: "the turn after a dropped one works",
    remedy: "keep no state of a turn in the advisor; release it when the stream is dropped",
};

/// The label of a tool that starts before its round has completed.
const EARLY: &str = "a tool starts too early";

/// The place of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    InsideTheLoop,
    OutsideTheLoop,
    /// Outside the loop, and outside the advisor.
    Outermost,
}

impl Position {
    const ALL: [Self; 3] = [Self::InsideTheLoop, Self::OutsideTheLoop, Self::Outermost];

    fn phase(self) -> Phase {
        if self == Self::InsideTheLoop { Phase::Round } else { Phase::Turn }
    }
}

/// A conversation whose memory is at one position.
struct Conversation<'a> {
    subject: &'a Subject,
    position: Position,
    inside: Inside,
    client: ChatClient,
}

impl<'a> Conversation<'a> {
    /// Creates a conversation without turns; `None` if the chain refuses this position.
    fn new(subject: &'a Subject, position: Position) -> Option<Self> {
        let inside = model(subject);
        let at_start = inside.clone();
        let client = client(subject, position, inside.clone(), &tools(move |_| note_start(&at_start)))?;
        Some(Self { subject, position, inside, client })
    }

    fn turn(&self, turn: &str) -> Items {
        let question = format!("{} This is turn {turn}.", self.subject.question);
        bounded(self.client.prompt().user(question).conversation("talk").turn(turn).stream())
    }

    async fn answer(&self, turn: &str, clause: Clause) -> ChatResponse {
        let (subject, position) = (self.subject, self.position);
        let run = read(subject, self.turn(turn)).await;
        check_chunks(subject, &run, &format!("turn {turn} with memory {position:?}"));
        match run.end {
            Ok(response) => response,
            Err(error) => subject.breaks(
                clause,
                format_args!("turn {turn} fails, with memory {position:?}: {:?}: {error}", error.kind()),
            ),
        }
    }

    /// Returns the messages of each request so far.
    fn requests(&self) -> Vec<Vec<Message>> {
        self.inside.prompts().iter().map(|prompt| said(prompt.messages.iter())).collect()
    }

    fn check_requests(&self) {
        let adds = self.subject.declares(Declaration::EditsRequests);
        for messages in self.requests() {
            let defects = validate_transcript(&messages);
            let defect = defects
                .iter()
                .find(|defect| !(adds && matches!(defect, TranscriptError::TwoUserMessages { .. })));
            let begins_wrong = messages.first().is_none_or(|first| first.role() != Role::User);
            self.subject.breaks_if(defect.is_some() || begins_wrong, VALID, || {
                format!("{defect:?} with memory {:?}, in {}", self.position, written(&messages))
            });
        }
    }

    fn check_tools(&self) {
        let journal = self.inside.journal();
        self.subject.breaks_if(journal.count(EARLY) > 0, BEFORE_TOOLS, || {
            format!("this order, with memory {:?}:\n{journal}", self.position)
        });
    }

    /// Checks that the request of the next turn has the answer of the one before.
    fn check_remembered(&self, shown: &ChatResponse, turn: &str) {
        let (subject, position) = (self.subject, self.position);
        let is_inside = subject.placement.phase == Phase::ModelCall || subject.is_inside_memory();
        let is_rewritten = subject.declares(Declaration::EditsRequests);
        if is_rewritten || subject.is_memory() || !(is_inside || subject.keeps_messages()) {
            return;
        }
        let prompts = self.inside.prompts();
        let Some(prompt) = prompts.iter().find(|prompt| prompt.turn.as_str() == turn) else { return };
        let messages = said(prompt.messages.iter());
        let remembered = messages.iter().rev().nth(1);
        subject.breaks_if(remembered != Some(shown.message()), REMEMBERED, || {
            format!(
                "with memory {position:?}, this was shown: {}\n  and this is remembered: {}",
                written([shown.message()]),
                written(remembered)
            )
        });
    }
}

/// The advisor works with a memory inside the tool loop and with one outside it, and both have the same transcript.
pub async fn law_m1_m4_o3_memory_is_the_same_at_each_position(subject: &Subject) {
    let may_be_between = subject.placement.phase == Phase::Turn && subject.keeps_messages();
    let positions =
        Position::ALL.into_iter().filter(|position| *position != Position::Outermost || may_be_between);
    let mut conversations = Vec::new();
    for conversation in positions.filter_map(|position| Conversation::new(subject, position)) {
        let mut shown = Vec::new();
        for turn in TURNS {
            shown.push(conversation.answer(turn, FITS).await);
        }
        conversation.check_requests();
        conversation.check_tools();
        conversations.push((conversation, shown));
    }
    let Some((first, _)) = conversations.first() else {
        subject.breaks(FITS, "the chain refuses a memory at each position");
    };
    conversations.iter().for_each(|(conversation, _)| check_equal(subject, first, conversation));
    for (conversation, shown) in &conversations {
        for (shown, next) in shown.iter().zip(TURNS.into_iter().skip(1)) {
            conversation.check_remembered(shown, next);
        }
    }
}

fn check_equal(subject: &Subject, one: &Conversation<'_>, other: &Conversation<'_>) {
    // The law is about two positions between which nothing changes messages.
    if subject.placement.phase == Phase::Round && !subject.keeps_messages() {
        return;
    }
    let (of_one, of_other) = (one.requests(), other.requests());
    subject.breaks_if(of_one != of_other, EQUAL, || {
        format!(
            "the model receives other messages with memory {:?}: {}\n  than with memory {:?}: {}",
            one.position,
            written(of_one.iter().flatten()),
            other.position,
            written(of_other.iter().flatten())
        )
    });
}

/// After a turn that was dropped at any chunk, the next turn of the conversation works, and its requests are valid.
pub async fn law_k2_k4_turn_after_a_dropped_one_works(subject: &Subject) {
    let [one, two, three] = TURNS;
    for position in [Position::InsideTheLoop, Position::OutsideTheLoop] {
        let Some(whole) = Conversation::new(subject, position) else { continue };
        let count = within(subject, whole.turn(one).count()).await;
        for chunks in 0..=count {
            let Some(conversation) = Conversation::new(subject, position) else { continue };
            let mut turn = conversation.turn(one);
            for _ in 0..chunks {
                within(subject, turn.next()).await;
            }
            drop(turn);
            subject.breaks_if(conversation.inside.live() > 0, NEXT_TURN, || {
                format!("an inner stream is left after {chunks} chunks")
            });
            conversation.answer(two, NEXT_TURN).await;
            conversation.answer(three, NEXT_TURN).await;
            conversation.check_requests();
        }
    }
}

/// Creates a chain of the advisor with memory and a tool loop; `None` if it refuses this position of memory.
pub(super) fn client(
    subject: &Subject,
    position: Position,
    model: impl ChatModel,
    tools: &ToolSet,
) -> Option<ChatClient> {
    match built(subject, position, model, tools) {
        Ok(client) => Some(client),
        Err(error) if error.kind() == ErrorKind::Configuration => None,
        Err(error) => subject.breaks(FITS, error),
    }
}

fn built(
    subject: &Subject,
    position: Position,
    model: impl ChatModel,
    tools: &ToolSet,
) -> Result<ChatClient> {
    let mut client = ChatClient::builder(model).system("Be brief.").tools(tools);
    if !subject.is_tool_loop() {
        let all = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All);
        client = client.advisor(all.build()?);
    }
    if subject.is_memory() {
        return subject.add_to(client, position.phase()).build();
    }
    let memory = ChatMemoryAdvisor::new(InMemoryStore::new());
    let phase = subject.placement.phase;
    // Inside a phase, the advisor that is added first is outermost.
    let client = if position == Position::Outermost || subject.is_inside_memory() {
        subject.add_to(client.advisor_in(position.phase(), memory), phase)
    } else {
        subject.add_to(client, phase).advisor_in(position.phase(), memory)
    };
    client.build()
}

/// Records the start of a tool, and whether an inner answer is still incomplete then.
fn note_start(inside: &Inside) {
    let journal = inside.journal();
    let is_early =
        inside.live() > 0 || journal.count("inner work begins *") != journal.count("inner work ends *");
    journal.record(if is_early { EARLY } else { "a tool starts" });
}

/// Returns a model whose first turn calls tools, and whose others answer at once.
fn model(subject: &Subject) -> Inside {
    let (calls, text, words) = (Script::calls(subject), Script::text(subject), subject.answer.clone());
    Inside::from_fn(move |prompt| {
        let script = if prompt.turn.as_str() == "one" { &calls } else { &text };
        match prompt.round {
            1 => script.whole(Cut::Every(5), Pace::OneByOne),
            2 => Answer::from_text(words.as_str()),
            _ => Answer::from_text(LAST),
        }
    })
}
