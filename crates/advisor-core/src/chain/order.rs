//! The order of the advisors of a chain, and the checks that reject contradictory chains.

use crate::chain::Link;
use crate::chain::placement::{AdvisorRole, LoopHistory, is_memory, is_tool_loop};
use crate::{Error, Phase, Placement, Result};

/// Orders the advisors of a chain by phase, outermost first, and checks it. Inside a phase the one added first is
/// outermost.
pub(super) fn arranged(links: Vec<Link>) -> Result<Vec<Link>> {
    let (fallbacks, mut links): (Vec<_>, Vec<_>) = links.into_iter().partition(|link| link.fallback);
    for fallback in fallbacks {
        let role = |link: &Link| std::mem::discriminant(&link.placement.role);
        let taken = |link: &Link| role(link) == role(&fallback);
        if !links.iter().any(taken) {
            links.push(fallback);
        }
    }
    links.sort_by_key(|link| (link.placement.phase, link.placement.role == AdvisorRole::BesideModel));
    check(&links)?;
    Ok(links)
}

fn check(links: &[Link]) -> Result<()> {
    refuse_second(links, is_tool_loop, "run tools")?;
    refuse_second(links, is_memory, "remember the conversation")?;
    for link in links {
        let (does, belongs) = match (link.placement.role, link.placement.phase) {
            (AdvisorRole::ToolLoop(_), phase) if phase != Phase::Loop => ("runs tools", "the loop phase"),
            (AdvisorRole::ToolLoop(_), _) => continue,
            (AdvisorRole::Memory, Phase::Loop | Phase::ModelCall) => {
                ("remembers the conversation", "the turn or the round phase")
            }
            (AdvisorRole::BesideModel, phase) if phase != Phase::ModelCall => {
                ("must be beside the model", "the model-call phase")
            }
            (_, Phase::Loop) => ("runs no tools", "the turn or the round phase"),
            _ => continue,
        };
        return Err(Error::configuration(format!(
            "`{}` {does} and belongs in {belongs}, not in the {} phase",
            link.advisor.name(),
            link.placement.phase
        )));
    }
    check_sides(links)?;
    check_history(links)
}

fn refuse_second(links: &[Link], is: fn(&Placement) -> bool, both: &str) -> Result<()> {
    let mut names = links.iter().filter(|link| is(&link.placement)).map(|link| link.advisor.name());
    let (Some(first), Some(second)) = (names.next(), names.next()) else { return Ok(()) };
    Err(Error::configuration(format!("`{first}` and `{second}` both {both}; keep one of them")))
}

fn check_sides(links: &[Link]) -> Result<()> {
    let position = |is: fn(&Placement) -> bool| links.iter().position(|link| is(&link.placement));
    let Some(memory) = position(is_memory) else { return Ok(()) };
    let tool_loop = position(is_tool_loop).unwrap_or_default();
    let misplaced = [
        (
            0..memory,
            AdvisorRole::InsideMemory,
            "inside memory, so that its answers are stored as they leave it",
        ),
        (
            memory..tool_loop,
            AdvisorRole::InsideMemory,
            "inside the tool loop, so that its answers are stored as they leave it",
        ),
        (
            memory..links.len(),
            AdvisorRole::OutsideMemory,
            "outside memory, so that the user's messages reach it before they are stored",
        ),
    ];
    for (places, role, belongs) in misplaced {
        let mut links = links.get(places).unwrap_or_default().iter();
        if let Some(link) = links.find(|link| link.placement.role == role) {
            let remedy = match (role, link.advisor.placement().phase) {
                (AdvisorRole::OutsideMemory, _) => "place it in the turn phase and add it before the memory",
                (_, Phase::Round) => "place it in the round phase and add it after the memory",
                _ => "place it in the model-call phase",
            };
            let name = link.advisor.name();
            return Err(Error::configuration(format!("`{name}` must be {belongs}; {remedy}")));
        }
    }
    Ok(())
}

/// Checks that exactly one of the loop and a memory inside it sends the messages.
fn check_history(links: &[Link]) -> Result<()> {
    let memory_is_inside =
        links.iter().any(|link| is_memory(&link.placement) && link.placement.phase == Phase::Round);
    for link in links {
        let name = link.advisor.name();
        match link.placement.role {
            AdvisorRole::ToolLoop(LoopHistory::InLoop) if memory_is_inside => {
                return Err(Error::configuration(format!(
                    "`{name}` keeps its own history while memory inside the loop keeps it too, so the model would see each message twice; \
                     leave the history unset, or place the memory in the turn phase"
                )));
            }
            AdvisorRole::ToolLoop(LoopHistory::InMemory) if !memory_is_inside => {
                return Err(Error::configuration(format!(
                    "`{name}` keeps no history and no memory inside the loop does, so the model would not see earlier messages; \
                     leave the history unset, or add a memory in the round phase"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}
