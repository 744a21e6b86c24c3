//! The advisor under test, its declarations, and the words of a failure.

use std::fmt;

use advisor_core::{
    AdvisorChain, AdvisorRole, ChatClient, ChatClientBuilder, ChatModel, Phase, Placement, StreamAdvisor,
};

/// A deviation from an advisor that passes everything through, which the advisor declares.
///
/// Each one relaxes some clauses. Without it, the suite checks them in full. To exclude a clause would hide
/// too much: an advisor that may hold back a word could then hold back everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Declaration {
    /// The answer may differ from that of the model: blocks are changed, added or left out, or the answer ends early.
    ///
    /// Without it, the chunks and the response are those of the model.
    EditsAnswers,
    /// The non-ephemeral messages of a request may be changed. Instructions and ephemeral messages always may.
    ///
    /// Without it, the model receives the messages of the request.
    EditsRequests,
    /// It may answer without the model.
    AnswersItself,
    /// It may call the rest of the chain more than once for a request.
    AsksAgain,
    /// An error from inside may end as an answer, or as an error of another kind.
    ///
    /// Without it, the error arrives with its kind.
    HandlesErrors,
    /// It holds back at most this many bytes of each block that is still open, counted in its output. Text that it
    /// adds at the end of a block counts, too.
    HoldsBackBytes(usize),
    /// It holds back a block until the block ends.
    HoldsBackBlocks,
    /// It holds back chunks until the answer ends, so law S2 is not checked.
    HoldsBackAnswers,
    /// Its answer depends on the pieces in which a text arrives, so law S5 is not checked.
    DependsOnPieces,
}

/// A rule that a clause checks, with the words of its failure.
#[derive(Clone, Copy)]
pub(super) struct Clause {
    /// The law, such as `law S2`.
    pub(super) law: &'static str,
    /// What holds for every advisor.
    pub(super) rule: &'static str,
    /// What the author of the advisor can do.
    pub(super) remedy: &'static str,
}

/// The advisor under test, with its declarations, and the words of the user and the model.
///
/// [`advisor_conformance!`](crate::advisor_conformance!) creates it; clauses take it.
pub struct Subject {
    add: Box<dyn Fn(ChatClientBuilder, Phase) -> ChatClientBuilder + Send + Sync>,
    pub(super) name: String,
    pub(super) placement: Placement,
    declared: Vec<Declaration>,
    pub(super) question: String,
    pub(super) answer: String,
}

impl Subject {
    /// Creates a subject whose advisor `make` creates, once for each chain.
    #[must_use]
    pub fn new<A: StreamAdvisor>(make: impl Fn() -> A + Send + Sync + 'static) -> Self {
        let example = make();
        Self {
            name: example.name().to_owned(),
            placement: example.placement(),
            add: Box::new(move |client, phase| client.advisor_in(phase, make())),
            declared: Vec::new(),
            question: "How is the weather?".into(),
            answer: "Grüße aus Oslo: 12 °C and windy. More tomorrow, as always.".into(),
        }
    }

    /// Adds declarations.
    #[must_use]
    pub fn with_declared(mut self, declared: impl IntoIterator<Item = Declaration>) -> Self {
        self.declared.extend(declared);
        self
    }

    /// Sets the words of the user, for an advisor that reacts to certain ones.
    #[must_use]
    pub fn with_question(self, question: impl Into<String>) -> Self {
        Self { question: question.into(), ..self }
    }

    /// Sets the words of the model, for an advisor that reacts to certain ones.
    #[must_use]
    pub fn with_answer(self, answer: impl Into<String>) -> Self {
        Self { answer: answer.into(), ..self }
    }

    pub(super) fn declares(&self, declaration: Declaration) -> bool {
        self.declared.contains(&declaration)
    }

    /// Returns the bytes of an open block that may be held back; `None` if there is no bound.
    pub(super) fn held_bytes(&self) -> Option<usize> {
        if self.declares(Declaration::HoldsBackBlocks) || self.declares(Declaration::HoldsBackAnswers) {
            return None;
        }
        let bytes = self.declared.iter().map(|declaration| match declaration {
            Declaration::HoldsBackBytes(bytes) => *bytes,
            _ => 0,
        });
        Some(bytes.max().unwrap_or_default())
    }

    /// Checks whether chunks pass unchanged, each in its poll.
    pub(super) fn passes_chunks(&self) -> bool {
        self.held_bytes() == Some(0) && !self.declares(Declaration::EditsAnswers)
    }

    /// Checks whether each request takes exactly one answer of the model.
    pub(super) fn asks_once(&self) -> bool {
        !self.declares(Declaration::AnswersItself) && !self.declares(Declaration::AsksAgain)
    }

    /// Checks whether it leaves the messages of a conversation as they are.
    pub(super) fn keeps_messages(&self) -> bool {
        self.asks_once()
            && !self.declares(Declaration::EditsAnswers)
            && !self.declares(Declaration::EditsRequests)
    }

    pub(super) fn is_memory(&self) -> bool {
        self.placement.role == AdvisorRole::Memory
    }

    pub(super) fn is_tool_loop(&self) -> bool {
        matches!(self.placement.role, AdvisorRole::ToolLoop(_))
    }

    /// Checks whether it has to be further inside than a memory of the same phase.
    pub(super) fn is_inside_memory(&self) -> bool {
        self.placement.role == AdvisorRole::InsideMemory
    }

    /// Adds the advisor, in its phase or in another one.
    pub(super) fn add_to(&self, client: ChatClientBuilder, phase: Phase) -> ChatClientBuilder {
        (self.add)(client, phase)
    }

    /// Creates a chain of the advisor alone.
    #[track_caller]
    pub(super) fn chain(&self, model: impl ChatModel) -> AdvisorChain {
        match self.add_to(ChatClient::builder(model), self.placement.phase).build() {
            Ok(client) => client.chain().clone(),
            Err(error) => panic!("`{}` cannot be the only advisor of a chain: {error}", self.name),
        }
    }

    /// Fails the test if this was seen.
    #[track_caller]
    pub(super) fn breaks_if(&self, is_seen: bool, clause: Clause, seen: impl FnOnce() -> String) {
        if is_seen {
            self.breaks(clause, seen());
        }
    }

    /// Fails the test.
    #[track_caller]
    pub(super) fn breaks(&self, clause: Clause, seen: impl fmt::Display) -> ! {
        let Clause { law, rule, remedy } = clause;
        panic!("`{}` breaks {law}: {rule}\n  seen:  {seen}\n  to do: {remedy}", self.name)
    }
}
