//! `ChainBuilder`: orders advisors by phase and rejects contradictory chains.

use std::fmt;
use std::sync::Arc;

use crate::chain::Link;
use crate::{
    AdvisorChain, AdvisorRole, ChatModel, Error, History, MemorySide, Phase, PhaseOrder, Placement, Result,
    StreamAdvisor,
};

/// Builder that orders the advisors of a chain and checks it.
///
/// Advisors are ordered by phase, outermost first; inside a phase the one added first is outermost. An advisor
/// [beside the model](PhaseOrder::BesideModel) is inside all others.
#[derive(Clone)]
#[must_use = "a chain is made by `build`"]
pub struct ChainBuilder {
    links: Vec<Link>,
    fallbacks: Vec<Link>,
    model: Arc<dyn ChatModel>,
}

impl ChainBuilder {
    pub(crate) fn new(model: Arc<dyn ChatModel>) -> Self {
        Self::resume(Vec::new(), model)
    }

    pub(crate) fn resume(links: Vec<Link>, model: Arc<dyn ChatModel>) -> Self {
        let (fallbacks, links) = links.into_iter().partition(|link| link.fallback);
        Self { links, fallbacks, model }
    }

    /// Uses another model.
    pub fn model(self, model: impl ChatModel) -> Self {
        Self { model: Arc::new(model), ..self }
    }

    /// Adds an advisor at its default placement.
    pub fn advisor(self, advisor: impl StreamAdvisor) -> Self {
        self.shared_advisor(Arc::new(advisor))
    }

    /// Adds an advisor in another phase than its default one.
    pub fn advisor_in(self, phase: Phase, advisor: impl StreamAdvisor) -> Self {
        let advisor: Arc<dyn StreamAdvisor> = Arc::new(advisor);
        let placement = Placement { phase, ..advisor.placement() };
        self.placed(placement, advisor)
    }

    /// Adds a shared advisor at its default placement.
    pub fn shared_advisor(self, advisor: Arc<dyn StreamAdvisor>) -> Self {
        self.placed(advisor.placement(), advisor)
    }

    /// Adds an advisor that is used only if no other advisor of the same role is added.
    pub fn fallback_advisor(mut self, advisor: impl StreamAdvisor) -> Self {
        let placement = advisor.placement();
        self.fallbacks.push(Link { advisor: Arc::new(advisor), placement, fallback: true });
        self
    }

    /// Replaces the model by the one that `around` makes of it, such as one that measures it.
    pub fn map_model(self, around: impl FnOnce(Arc<dyn ChatModel>) -> Arc<dyn ChatModel>) -> Self {
        Self { model: around(self.model), ..self }
    }

    /// Replaces each advisor that was added so far by the one that `around` makes of it, such as one that measures it.
    /// Placements stay.
    pub fn map_advisors(mut self, around: impl Fn(Arc<dyn StreamAdvisor>) -> Arc<dyn StreamAdvisor>) -> Self {
        for link in self.links.iter_mut().chain(&mut self.fallbacks) {
            link.advisor = around(Arc::clone(&link.advisor));
        }
        self
    }

    fn placed(mut self, placement: Placement, advisor: Arc<dyn StreamAdvisor>) -> Self {
        self.links.push(Link { advisor, placement, fallback: false });
        self
    }

    /// Checks and builds the chain.
    ///
    /// # Errors
    /// Of kind [`Configuration`](crate::ErrorKind::Configuration), with the remedy, for:
    /// - two tool loops, two memories or two readers of calls in text, or one of them in a phase where it cannot work;
    /// - a loop whose history setting contradicts the placement of memory;
    /// - an advisor on the wrong [side](MemorySide) of memory;
    /// - an advisor that must be [beside the model](PhaseOrder::BesideModel) in another phase.
    pub fn build(self) -> Result<AdvisorChain> {
        let mut links = self.links;
        for fallback in self.fallbacks {
            let role = |link: &Link| std::mem::discriminant(&link.placement.role);
            let taken = |link: &Link| role(link) == role(&fallback);
            if !links.iter().any(taken) {
                links.push(fallback);
            }
        }
        links.sort_by_key(|link| (link.placement.phase, link.placement.order));
        check(&links)?;
        Ok(AdvisorChain::new(links, self.model))
    }
}

fn check(links: &[Link]) -> Result<()> {
    let loops = with_role(links, AdvisorRole::is_tool_loop);
    let memories = with_role(links, |role| role == AdvisorRole::Memory);
    let text_calls = with_role(links, |role| role == AdvisorRole::TextCalls);
    refuse_second(&loops, "run tools")?;
    refuse_second(&memories, "remember the conversation")?;
    refuse_second(&text_calls, "read tool calls in the text")?;
    for link in links {
        let (does, belongs) = match (link.placement.role, link.placement.phase) {
            (AdvisorRole::ToolLoop { .. }, phase) if phase != Phase::Loop => ("runs tools", "the loop phase"),
            (AdvisorRole::Memory, Phase::Loop | Phase::ModelCall) => {
                ("remembers the conversation", "the turn or the round phase")
            }
            (AdvisorRole::TextCalls, phase) if phase != Phase::ModelCall => {
                ("reads tool calls in the text", "the model-call phase")
            }
            (AdvisorRole::General | AdvisorRole::Context, Phase::Loop) => {
                ("runs no tools", "the turn or the round phase")
            }
            _ => continue,
        };
        return Err(Error::configuration(format!(
            "`{}` {does} and belongs in {belongs}, not in the {} phase",
            link.advisor.name(),
            link.placement.phase
        )));
    }
    check_beside_model(links)?;
    check_sides(links)?;
    check_history(&loops, memories.first().map(|memory| memory.placement.phase))
}

fn refuse_second(links: &[&Link], both: &str) -> Result<()> {
    let [first, second, ..] = links else { return Ok(()) };
    let (first, second) = (first.advisor.name(), second.advisor.name());
    Err(Error::configuration(format!("`{first}` and `{second}` both {both}; keep one of them")))
}

fn check_beside_model(links: &[Link]) -> Result<()> {
    let is_misplaced = |link: &&Link| {
        link.placement.order == PhaseOrder::BesideModel && link.placement.phase != Phase::ModelCall
    };
    let Some(link) = links.iter().find(is_misplaced) else { return Ok(()) };
    Err(Error::configuration(format!(
        "`{}` must be beside the model, inside all other advisors; place it in the model-call phase, not in the {} phase",
        link.advisor.name(),
        link.placement.phase
    )))
}

fn check_sides(links: &[Link]) -> Result<()> {
    let position = |is: fn(AdvisorRole) -> bool| links.iter().position(|link| is(link.placement.role));
    let Some(memory) = position(|role| role == AdvisorRole::Memory) else { return Ok(()) };
    let tool_loop = position(AdvisorRole::is_tool_loop).unwrap_or_default();
    let misplaced = [
        (0..memory, MemorySide::Inside, "inside memory, so that its answers are stored as they leave it"),
        (
            memory..tool_loop,
            MemorySide::Inside,
            "inside the tool loop, so that its answers are stored as they leave it",
        ),
        (
            memory..links.len(),
            MemorySide::Outside,
            "outside memory, so that the user's messages reach it before they are stored",
        ),
    ];
    for (places, side, belongs) in misplaced {
        let mut links = links.get(places).unwrap_or_default().iter();
        if let Some(link) = links.find(|link| link.placement.side == side) {
            let (name, remedy) = (link.advisor.name(), remedy(side, link.advisor.placement().phase));
            return Err(Error::configuration(format!("`{name}` must be {belongs}; {remedy}")));
        }
    }
    Ok(())
}

/// Returns how to move an advisor to its side of memory. `own` is the phase that the advisor chooses by default.
fn remedy(side: MemorySide, own: Phase) -> &'static str {
    match (side, own) {
        (MemorySide::Outside, _) => "place it in the turn phase and add it before the memory",
        (_, Phase::Round) => "place it in the round phase and add it after the memory",
        _ => "place it in the model-call phase",
    }
}

/// Checks that exactly one of the loop and a memory inside it sends the messages. `memory` is the phase of memory.
fn check_history(loops: &[&Link], memory: Option<Phase>) -> Result<()> {
    let Some((AdvisorRole::ToolLoop { history }, advisor)) =
        loops.first().map(|link| (link.placement.role, &link.advisor))
    else {
        return Ok(());
    };
    let memory_is_inside = memory == Some(Phase::Round);
    match history {
        History::InLoop if memory_is_inside => Err(Error::configuration(format!(
            "`{}` keeps its own history while memory inside the loop keeps it too, so the model would see each message twice; \
             leave the history unset, or place the memory in the turn phase",
            advisor.name()
        ))),
        History::InMemory if !memory_is_inside => Err(Error::configuration(format!(
            "`{}` keeps no history and no memory inside the loop does, so the model would not see earlier messages; \
             leave the history unset, or add a memory in the round phase",
            advisor.name()
        ))),
        _ => Ok(()),
    }
}

fn with_role(links: &[Link], is: impl Fn(AdvisorRole) -> bool) -> Vec<&Link> {
    links.iter().filter(|link| is(link.placement.role)).collect()
}

impl fmt::Debug for ChainBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.links.iter().map(|link| link.advisor.name())).finish()
    }
}
