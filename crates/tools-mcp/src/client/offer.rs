use std::sync::Arc;

use advisor_core::{AdvisorChain, Tool, ToolSet, Turn};

use super::McpTools;
use super::catalog::{Catalog, DuplicateTool, Listed};
use super::failure;

/// The lists that the servers of a turn have offered. An extension of the turn.
#[derive(Clone, Default)]
struct OfferedLists(Vec<Arc<Catalog>>);

impl OfferedLists {
    fn note(&mut self, catalog: &Arc<Catalog>) {
        if !self.0.iter().any(|known| Arc::ptr_eq(known, catalog)) {
            self.0.push(Arc::clone(catalog));
        }
    }

    /// Returns the entry of a tool of a server.
    fn entry(&self, tool: &Arc<dyn Tool>) -> Option<&Listed> {
        self.0.iter().find_map(|catalog| catalog.entry(tool))
    }
}

impl McpTools {
    /// Returns the tools of a round: those of `base`, and those of the server that the chain accepts and whose names no
    /// other tool has.
    pub(super) fn offered(
        &self,
        base: &ToolSet,
        catalog: &Arc<Catalog>,
        turn: &Turn,
        chain: &AdvisorChain,
    ) -> ToolSet {
        let offered = turn.extensions().get::<OfferedLists>().unwrap_or_default();
        turn.extensions().update(|offered: &mut OfferedLists| offered.note(catalog));
        let accepts = |set: &ToolSet| chain.validate_tools(set).is_ok();
        let known = self.listing().merged.find(base, catalog);
        if let Some(set) = known.into_iter().find(accepts) {
            return set;
        }
        let mut set = self.added(base, catalog, &offered, |_| true);
        if !accepts(&set) {
            set = self.added(base, catalog, &offered, |listed| self.is_accepted(listed, chain));
        }
        self.listing().merged.keep(base, Arc::clone(catalog), set.clone());
        set
    }

    /// Returns `base` with those tools of the server that `keep` returns true for. Of two tools of one name, the one that
    /// was there first stays: that of `base`, unless it is one that another server announced later.
    fn added(
        &self,
        base: &ToolSet,
        catalog: &Catalog,
        offered: &OfferedLists,
        keep: impl Fn(&Listed) -> bool,
    ) -> ToolSet {
        let mut all = base.clone();
        for listed in catalog.tools.iter().filter(|listed| keep(listed)) {
            if let Some(known) = base.find(&listed.tool.definition.name) {
                let newer = offered.entry(known).filter(|known| known.since > listed.since);
                self.leave_out(newer.unwrap_or(listed));
                if newer.is_none() {
                    continue;
                }
            }
            all.insert(Arc::clone(&listed.tool) as Arc<dyn Tool>);
        }
        all
    }

    fn leave_out(&self, listed: &Listed) {
        warn(listed, "another tool has its name");
        let duplicate = DuplicateTool::from(&*listed.tool);
        let mut listing = self.listing();
        if !listing.duplicates.contains(&duplicate) {
            listing.duplicates.push(duplicate);
        }
    }

    /// Checks a tool alone. Warns about a refused one.
    fn is_accepted(&self, listed: &Listed, chain: &AdvisorChain) -> bool {
        let Err(error) = chain.validate_tools(&listed.alone) else { return true };
        warn(listed, &error.to_string());
        false
    }
}

fn warn(listed: &Listed, reason: &str) {
    listed.warning.call_once(|| {
        let server = listed.tool.link.server.settings.name.as_str();
        let (tool, reason) = (failure::logged(&listed.tool.name), failure::logged(reason));
        tracing::warn!(server, tool, reason, "a tool of an MCP server is left out");
    });
}
