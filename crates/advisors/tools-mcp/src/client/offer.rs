//! The tools of a round: a request's own, and those of the server that the chain accepts and that have their names
//! first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use advisor_core::{AdvisorChain, ChatRequest, Tool, ToolSet, Turn};

use super::McpTools;
use super::catalog::{Catalog, Listed};
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
    /// Returns the tools of a round: those of the request, and those of the server that the chain accepts and whose names
    /// no other tool has.
    ///
    /// The schemas of a server are compiled off the async threads, within the time of the server. Its tools are left out if
    /// that takes longer.
    pub(super) async fn offered(
        &self,
        request: &ChatRequest,
        catalog: &Arc<Catalog>,
        chain: &AdvisorChain,
    ) -> ToolSet {
        let known = self.listing().merged.find(&request.tools, catalog);
        if let Some(set) = known.into_iter().find(|set| chain.validate_tools(set).is_ok()) {
            note_offered(&request.turn, catalog);
            return set;
        }
        let (this, base, turn) = (self.clone(), request.tools.clone(), Arc::clone(&request.turn));
        let (catalog, chain) = (Arc::clone(catalog), chain.clone());
        let merging = tokio::task::spawn_blocking(move || this.merged(&base, &catalog, &turn, &chain));
        let settings = &self.link.server.settings;
        match tokio::time::timeout(settings.timeout, merging).await {
            Ok(Ok(set)) => set,
            _ => {
                let server = settings.name.as_str();
                tracing::warn!(
                    server,
                    "the tools of an MCP server are left out: their schemas cannot be checked in time"
                );
                request.tools.clone()
            }
        }
    }

    fn merged(&self, base: &ToolSet, catalog: &Arc<Catalog>, turn: &Turn, chain: &AdvisorChain) -> ToolSet {
        let offered = turn.extensions().get::<OfferedLists>().unwrap_or_default();
        note_offered(turn, catalog);
        let accepts = |set: &ToolSet| chain.validate_tools(set).is_ok();
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
                warn(newer.unwrap_or(listed), "another tool has its name");
                if newer.is_none() {
                    continue;
                }
            }
            all.insert(Arc::clone(&listed.tool) as Arc<dyn Tool>);
        }
        all
    }

    /// Checks a tool alone. Warns about a refused one.
    fn is_accepted(&self, listed: &Listed, chain: &AdvisorChain) -> bool {
        let Err(error) = chain.validate_tools(&listed.alone) else { return true };
        warn(listed, &error.to_string());
        false
    }
}

fn note_offered(turn: &Turn, catalog: &Arc<Catalog>) {
    turn.extensions().update(|offered: &mut OfferedLists| offered.note(catalog));
}

fn warn(listed: &Listed, reason: &str) {
    listed.warning.call_once(|| {
        let server = listed.tool.link.server.settings.name.as_str();
        let (tool, reason) = (failure::logged(&listed.tool.name), failure::logged(reason));
        tracing::warn!(server, tool, reason, "a tool of an MCP server is left out");
    });
}

/// The number of sets that are kept. A client has one, and so has each turn with further tools.
const KEPT: usize = 8;

/// The identity of a set, kept with it. A changed set has another one.
struct Identity(u64);

fn identity(set: &ToolSet) -> u64 {
    static SETS: AtomicU64 = AtomicU64::new(0);
    set.wire_form(|_| Identity(SETS.fetch_add(1, Ordering::Relaxed))).0
}

/// The sets made of other sets and the tools of a server, so that a turn of fifty rounds serialises its tools once.
#[derive(Default)]
pub(super) struct MergedSets(VecDeque<Merged>);

struct Merged {
    base: u64,
    catalog: Arc<Catalog>,
    set: ToolSet,
}

impl MergedSets {
    /// Returns the sets that were made of these: one, or several for chains that accept different tools.
    pub(super) fn find(&self, base: &ToolSet, catalog: &Arc<Catalog>) -> Vec<ToolSet> {
        let base = identity(base);
        let found = self.0.iter().filter(|known| known.base == base && Arc::ptr_eq(&known.catalog, catalog));
        found.map(|known| known.set.clone()).collect()
    }

    /// Keeps a set. The oldest one is forgotten.
    pub(super) fn keep(&mut self, base: &ToolSet, catalog: Arc<Catalog>, set: ToolSet) {
        self.0.truncate(KEPT - 1);
        self.0.push_front(Merged { base: identity(base), catalog, set });
    }
}
