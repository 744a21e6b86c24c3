//! The chunks of rounds that an earlier run of the turn has stored.

use advisor_core::{Chunk, EarlierRound, NotStartedReason, ToolEvent, ToolEventKind};

use crate::run::LoopRun;
use crate::run::step::{Next, Outcome};
use crate::streaming::Filter;

impl LoopRun {
    /// Prepends what this run shows of the rounds that an earlier one has stored: what it would have shown of them,
    /// without usage and progress, which are not stored. A turn that fails before its model answers shows nothing.
    pub(super) fn after_earlier_rounds(&self, opened: Outcome) -> Outcome {
        if !matches!(opened.next, Next::Read(_)) {
            return opened;
        }
        let (mode, tool_events) = (self.config.streaming, self.config.tool_events);
        let filter = Filter { mode, tool_events, certain: false };
        let rounds = self.request.turn.take_earlier_rounds();
        opened.led_by(rounds.iter().flat_map(|round| chunks_of(round, filter)).collect())
    }
}

fn chunks_of(round: &EarlierRound, filter: Filter) -> impl Iterator<Item = Chunk> {
    let blocks = round.response.blocks().flat_map(|(id, block)| Chunk::from_block(id, block));
    let shown = blocks.chain(tool_events(round)).filter(move |chunk| filter.shows(chunk));
    let end = filter.shows_round_end().then(|| Chunk::RoundCompleted(round.response.clone()));
    let mut chunks: Vec<_> = shown.collect();
    // The tools of a round run after its end.
    let tools = chunks.iter().position(|chunk| matches!(chunk, Chunk::Tool(_))).unwrap_or(chunks.len());
    chunks.splice(tools..tools, end);
    chunks.into_iter()
}

/// Returns the events of the results. Ids need not be unique: a result belongs to the first call with its id that has none.
fn tool_events(round: &EarlierRound) -> Vec<Chunk> {
    let mut open: Vec<_> = round.response.tool_calls().collect();
    let mut events = Vec::new();
    for result in &round.results {
        let place = open.iter().position(|(_, call)| call.id == result.call_id);
        let Some((block, call)) = place.map(|place| open.remove(place)) else { continue };
        let not_started = |reason| vec![ToolEventKind::NotStarted { reason, result: result.clone() }];
        let kinds = match (result.is_denied, result.is_error) {
            (true, _) => not_started(NotStartedReason::Denied),
            // What is stored does not tell failed calls from those that never began.
            (false, true) => not_started(NotStartedReason::Other),
            (false, false) => {
                let arguments = call.arguments.clone().into();
                vec![ToolEventKind::Started { arguments }, ToolEventKind::Finished(result.clone())]
            }
        };
        let event =
            |kind| Chunk::Tool(Box::new(ToolEvent::new(block, call.id.clone(), call.name.clone(), kind)));
        events.extend(kinds.into_iter().map(event));
    }
    events
}
