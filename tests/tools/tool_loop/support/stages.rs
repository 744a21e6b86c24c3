//! Names every place of a turn at which code outside the loop runs, as a stage.

use advisor_chain::Advisor;
use advisor_chain::tools::{LoopEnd, LoopOutcome};
use advisor_tests::prelude::*;

/// Journals the stages of a turn and can make it wait or fail at one of them. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Stages {
    pub(crate) journal: Journal,
    waits_at: Option<(String, Gate)>,
    fails_at: Option<String>,
    outcomes: Arc<Mutex<Vec<LoopOutcome>>>,
}

impl Stages {
    /// Stages at one of which the turn waits at a gate.
    pub(crate) fn waiting_at(stage: &str, gate: &Gate) -> Self {
        Self { waits_at: Some((String::from(stage), gate.clone())), ..Self::default() }
    }

    /// Stages at one of which something fails.
    pub(crate) fn failing_at(stage: &str) -> Self {
        Self { fails_at: Some(String::from(stage)), ..Self::default() }
    }

    /// The turn has come to this stage.
    pub(crate) async fn at(&self, stage: &str) -> Result<()> {
        self.journal.record(stage);
        if let Some((waits_at, gate)) = &self.waits_at
            && waits_at == stage
        {
            gate.pass().await;
        }
        if self.fails_at.as_deref() == Some(stage) {
            return Err(self.failure());
        }
        Ok(())
    }

    /// The error with which a stage fails.
    pub(crate) fn failure(&self) -> Error {
        Error::new(ErrorKind::Advisor, "failed as the test wants")
    }

    /// Returns whether this stage must fail.
    pub(crate) fn fails(&self, stage: &str) -> bool {
        self.fails_at.as_deref() == Some(stage)
    }

    /// Returns the outcome that `finalize` received, each time it ran.
    pub(crate) fn outcomes(&self) -> Vec<LoopOutcome> {
        self.outcomes.lock().unwrap().clone()
    }

    /// The ends that `finalize` was given.
    pub(crate) fn ends(&self) -> Vec<LoopEnd> {
        self.outcomes().into_iter().map(|outcome| outcome.end).collect()
    }
}

/// Hooks that do nothing but announce themselves as stages: `loop_start`, `before_round 1`, `after_round 1`,
/// `next_messages 1`, `finalize`.
#[derive(Clone, Default)]
pub(crate) struct Watch(pub(crate) Stages);

#[async_trait]
impl LoopHooks for Watch {
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        self.0.at("loop_start").await?;
        Ok(request)
    }

    async fn before_round(&self, request: ChatRequest, round: u32) -> Result<ChatRequest> {
        self.0.at(&format!("before_round {round}")).await?;
        Ok(request)
    }

    async fn after_round(&self, response: ChatResponse, round: u32) -> Result<ChatResponse> {
        self.0.at(&format!("after_round {round}")).await?;
        Ok(response)
    }

    async fn next_messages(&self, next: MessageList, results: &[Message]) -> Result<MessageList> {
        self.0.at(&format!("next_messages {}", results.len())).await?;
        Ok(next)
    }

    fn finalize(&self, outcome: &LoopOutcome) {
        self.0.journal.record("finalize");
        self.0.outcomes.lock().unwrap().push(outcome.clone());
    }
}

/// An advisor inside the loop whose parts are the stages `before 1` and `after 1`, counted by its own passes.
#[derive(Clone)]
pub(crate) struct Staged {
    stages: Stages,
    passes: Arc<Mutex<u32>>,
}

impl Staged {
    pub(crate) fn new(stages: &Stages) -> Self {
        Self { stages: stages.clone(), passes: Arc::default() }
    }
}

/// One pass of a [`Staged`]: journals `gone 1` if it is dropped before its end.
pub(crate) struct Pass {
    number: u32,
    ended: bool,
    journal: Journal,
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.ended {
            self.journal.record(format!("gone {}", self.number));
        }
    }
}

impl AdvisorInfo for Staged {
    fn name(&self) -> &'static str {
        "staged"
    }

    fn placement(&self) -> Placement {
        Placement::new(Phase::Round)
    }
}

#[async_trait]
impl Advisor for Staged {
    type State = Pass;

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, Pass)> {
        let pass = {
            let mut passes = self.passes.lock().unwrap();
            *passes += 1;
            *passes
        };
        self.stages.at(&format!("before {pass}")).await?;
        Ok((request, Pass { number: pass, ended: false, journal: self.stages.journal.clone() }))
    }

    async fn after(&self, mut pass: Pass, _response: &ChatResponse) -> Result<()> {
        pass.ended = true;
        self.stages.at(&format!("after {}", pass.number)).await
    }
}

/// Denies every call of `delete`.
pub(crate) struct Denying;

#[async_trait]
impl LoopHooks for Denying {
    async fn after_round(&self, response: ChatResponse, _round: u32) -> Result<ChatResponse> {
        let blocks: Vec<_> = response
            .blocks()
            .filter(|(_, block)| block.as_tool_call().is_none_or(|call| call.name != "delete"))
            .map(|(id, block)| (id, block.clone()))
            .collect();
        Ok(response.with_blocks(blocks))
    }
}
