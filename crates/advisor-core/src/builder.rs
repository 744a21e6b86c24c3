use std::fmt;
use std::sync::Arc;

use crate::chain::Link;
use crate::{AdvisorChain, AdvisorRole, ChatModel, Error, Phase, Placement, Result, StreamAdvisor};

/// Puts a chain together and checks it.
///
/// Advisors are ordered by phase, outermost first; inside a phase the one added first is outermost.
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

    /// Adds an advisor at its own place.
    pub fn advisor(self, advisor: impl StreamAdvisor) -> Self {
        self.shared_advisor(Arc::new(advisor))
    }

    /// Adds an advisor in another phase than its own.
    pub fn advisor_in(self, phase: Phase, advisor: impl StreamAdvisor) -> Self {
        let advisor: Arc<dyn StreamAdvisor> = Arc::new(advisor);
        let placement = Placement { phase, ..advisor.placement() };
        self.placed(placement, advisor)
    }

    /// Adds an advisor that others hold as well, at its own place.
    pub fn shared_advisor(self, advisor: Arc<dyn StreamAdvisor>) -> Self {
        self.placed(advisor.placement(), advisor)
    }

    /// Adds an advisor unless another of the same role is added.
    pub fn fallback_advisor(mut self, advisor: impl StreamAdvisor) -> Self {
        let placement = advisor.placement();
        self.fallbacks.push(Link {
            advisor: Arc::new(advisor),
            phase: placement.phase,
            role: placement.role,
            fallback: true,
        });
        self
    }

    fn placed(mut self, placement: Placement, advisor: Arc<dyn StreamAdvisor>) -> Self {
        self.links.push(Link { advisor, phase: placement.phase, role: placement.role, fallback: false });
        self
    }

    /// The chain.
    ///
    /// # Errors
    /// Of kind [`Configuration`](crate::ErrorKind::Configuration), with what to do, for two tool loops
    /// or memories, one of them in a phase where it cannot work, or a loop whose history is switched
    /// against the place of memory.
    pub fn build(self) -> Result<AdvisorChain> {
        let mut links = self.links;
        for fallback in self.fallbacks {
            let taken =
                |link: &Link| std::mem::discriminant(&link.role) == std::mem::discriminant(&fallback.role);
            if !links.iter().any(taken) {
                links.push(fallback);
            }
        }
        links.sort_by_key(|link| link.phase);
        check(&links)?;
        Ok(AdvisorChain::new(links, self.model))
    }
}

fn check(links: &[Link]) -> Result<()> {
    let loops = with_role(links, AdvisorRole::is_tool_loop);
    let memories = with_role(links, |role| role == AdvisorRole::Memory);
    refuse_second(&loops, "run tools")?;
    refuse_second(&memories, "remember the conversation")?;
    for link in links {
        let (does, belongs) = match (link.role, link.phase) {
            (AdvisorRole::ToolLoop { .. }, phase) if phase != Phase::Loop => ("runs tools", "the loop phase"),
            (AdvisorRole::Memory, Phase::Loop | Phase::ModelCall) => {
                ("remembers the conversation", "the turn or the round phase")
            }
            (AdvisorRole::General, Phase::Loop) => ("runs no tools", "the turn or the round phase"),
            _ => continue,
        };
        return Err(Error::configuration(format!(
            "`{}` {does} and belongs in {belongs}, not in the {} phase",
            link.advisor.name(),
            link.phase
        )));
    }
    check_history(&loops, memories.first().is_some_and(|memory| memory.phase == Phase::Round))
}

fn refuse_second(links: &[&Link], both: &str) -> Result<()> {
    let [first, second, ..] = links else { return Ok(()) };
    let (first, second) = (first.advisor.name(), second.advisor.name());
    Err(Error::configuration(format!("`{first}` and `{second}` both {both}; keep one of them")))
}

fn check_history(loops: &[&Link], memory_inside: bool) -> Result<()> {
    let Some(Link { role: AdvisorRole::ToolLoop { own_history }, advisor, .. }) = loops.first() else {
        return Ok(());
    };
    match own_history {
        Some(true) if memory_inside => Err(Error::configuration(format!(
            "`{}` keeps its own history while memory inside the loop keeps it too, so the model would see each message twice; \
             leave the history unset, or place the memory in the turn phase",
            advisor.name()
        ))),
        Some(false) if !memory_inside => Err(Error::configuration(format!(
            "`{}` keeps no history and no memory inside the loop does, so the model would not see what was said before; \
             leave the history unset, or add a memory in the round phase",
            advisor.name()
        ))),
        _ => Ok(()),
    }
}

fn with_role(links: &[Link], is: impl Fn(AdvisorRole) -> bool) -> Vec<&Link> {
    links.iter().filter(|link| is(link.role)).collect()
}

impl fmt::Debug for ChainBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.links.iter().map(|link| link.advisor.name())).finish()
    }
}
