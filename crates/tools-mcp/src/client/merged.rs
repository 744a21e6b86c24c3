//! `MergedSets`: sets of a request and a server, kept so that they are serialised once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use advisor_core::ToolSet;

use super::catalog::Catalog;

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
