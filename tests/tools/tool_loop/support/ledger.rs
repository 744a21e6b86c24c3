//! A recorder that keeps its records, as a memory would.

use std::fmt;

use advisor_chain::Advisor;
use advisor_tests::prelude::*;
use futures::future::BoxFuture;

use super::Stages;

/// An advisor that registers itself as the turn's recorder. Clones share their records.
///
/// With stages, it announces `record answer 1`, `record results 1`, `record injected 1` or `record end 2`
/// before it keeps a record. A test can make it wait or fail there.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    told: Arc<Mutex<Told>>,
    stages: Option<Stages>,
}

#[derive(Default)]
struct Told {
    input: Vec<Message>,
    records: Vec<Record>,
}

impl Ledger {
    pub(crate) fn at(stages: &Stages) -> Self {
        Self { stages: Some(stages.clone()), ..Self::default() }
    }

    /// Returns the records, in order.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.told.lock().unwrap().records.clone()
    }

    /// Returns the steps of the kept records: `answer`, `started`, `results`, `injected`, `end`.
    pub(crate) fn steps(&self) -> Vec<&'static str> {
        self.records().iter().map(|record| step_name(&record.step)).collect()
    }

    /// The conversation as a memory outside the loop would hold it.
    pub(crate) fn transcript(&self) -> MessageList {
        let told = self.told.lock().unwrap();
        let recorded = told.records.iter().flat_map(|record| record.messages.iter().cloned());
        told.input.iter().cloned().chain(recorded).collect()
    }

    /// Returns the end of the turn, if it has ended.
    pub(crate) fn end(&self) -> Option<TurnEnd> {
        self.records().into_iter().rev().find_map(|record| match record.step {
            Step::End(end) => Some(end),
            _ => None,
        })
    }
}

fn step_name(step: &Step) -> &'static str {
    match step {
        Step::Answer => "answer",
        Step::Started(_) => "started",
        Step::Results => "results",
        Step::Injected => "injected",
        Step::End(_) => "end",
        other => panic!("a step that these tests do not know: {other:?}"),
    }
}

impl AdvisorInfo for Ledger {
    fn name(&self) -> &'static str {
        "ledger"
    }
}

#[async_trait]
impl Advisor for Ledger {
    type State = ();

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, ())> {
        self.told.lock().unwrap().input.extend(request.messages.split_system().1);
        request.turn.add_recorder(Arc::new(self.clone()));
        Ok((request, ()))
    }

    async fn after(&self, _state: (), _response: &ChatResponse) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl TurnRecorder for Ledger {
    async fn record(&self, record: &Record) -> Result<()> {
        if let Some(stages) = &self.stages {
            stages.at(&format!("record {} {}", step_name(&record.step), record.round)).await?;
        }
        self.told.lock().unwrap().records.push(record.clone());
        Ok(())
    }

    fn dropped(&self, _round: u32, _end: &TurnEnd) -> Option<BoxFuture<'static, ()>> {
        if let Some(stages) = &self.stages {
            stages.journal.record("told of the drop");
        }
        None
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps()).finish()
    }
}
