//! Names and ids of calls, in the form that spans and logs may show.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use advisor_core::{Text, ToolCallDelta};

use crate::names::ToolNames;
use crate::redaction::Redaction;

/// The most words kept of each kind. Some servers repeat the id and the name of a call in every piece of it.
const MOST_KEPT: usize = 8;
/// The longest word that is kept, in bytes.
const LONGEST_KEPT: usize = 256;
/// The most redacted call ids that are kept.
const MOST_HIDDEN: usize = 1 << 10;
/// The longest redacted call id that is kept, in bytes.
const LONGEST_HIDDEN: usize = 1 << 10;

/// Names and ids without anything that looks like a secret. Recent ones are cached, so a repeated one costs
/// next to nothing.
pub(super) struct Identifiers {
    redaction: Redaction,
    /// The tool names of the answered request.
    tools: Option<Arc<ToolNames>>,
    names: Recent,
    ids: Recent,
    /// The call ids that were redacted, and the replacement of each.
    hidden: HashMap<Text, Text>,
    /// The replacements of the ids that are kept.
    taken: HashSet<Text>,
    /// The number of redacted ids that were not kept.
    forgotten: usize,
}

/// The last words, each with the form in which it is shown.
#[derive(Default)]
struct Recent(Vec<(Text, Text)>);

impl Identifiers {
    pub(super) fn new(redaction: Redaction) -> Self {
        // The default is not used, because its empty sets would be created and dropped.
        Self {
            redaction,
            tools: None,
            names: Recent::default(),
            ids: Recent::default(),
            hidden: HashMap::new(),
            taken: HashSet::new(),
            forgotten: 0,
        }
    }

    pub(super) fn set_tools(&mut self, tools: Arc<ToolNames>) {
        self.tools = Some(tools);
    }

    /// Checks whether an id arrived that is not kept.
    pub(super) fn forgets(&self) -> bool {
        self.forgotten > 0
    }

    /// Replaces the name and the id of a call's fragment. Empty ones stay: they count as absent.
    pub(super) fn show(&mut self, fragment: &mut ToolCallDelta) {
        if let Some(name) = fragment.name.as_mut().filter(|name| !name.is_empty()) {
            *name = self.tool(name);
        }
        if let Some(id) = fragment.call_id.as_mut().filter(|id| !id.is_empty()) {
            *id = self.call_id(id);
        }
    }

    /// Returns the tool of this name. Tool names of the request are not redacted.
    fn tool(&mut self, name: &Text) -> Text {
        if let Some(known) = self.names.shown(name) {
            return known;
        }
        let offered = self.tools.as_ref().and_then(|tools| tools.meant_by(name));
        let tool = offered.unwrap_or_else(|| match self.redaction.identifier(name) {
            Cow::Borrowed(_) => name.clone(),
            Cow::Owned(shown) => shown.into(),
        });
        self.names.keep(name, &tool);
        tool
    }

    /// Returns the id of a call, redacted. In one answer equal ids give equal results, and different ids
    /// different ones.
    fn call_id(&mut self, id: &Text) -> Text {
        if let Some(known) = self.ids.shown(id) {
            return known;
        }
        let shown = match self.redaction.identifier(id) {
            Cow::Borrowed(_) if !id.contains(Redaction::BLANK) => id.clone(),
            shown => self.hidden_id(id, &shown),
        };
        self.ids.keep(id, &shown);
        shown
    }

    /// Returns the replacement of a redacted id. An id beyond the bounds is not kept and gets a new one each
    /// time.
    fn hidden_id(&mut self, id: &Text, shown: &str) -> Text {
        if let Some(known) = self.hidden.get(id) {
            return known.clone();
        }
        if id.len() > LONGEST_HIDDEN || self.hidden.len() >= MOST_HIDDEN {
            return self.forgotten_id(shown);
        }
        // Once ids were forgotten, the bare word may already replace one of them.
        let bare = (self.forgotten == 0).then(|| Text::from(shown));
        let numbered = (self.taken.len() + 1..).map(|number| Text::from(format!("{shown}-{number}")));
        let mut others = bare.into_iter().chain(numbered);
        let unique = others.find(|other| self.taken.insert(other.clone())).unwrap_or_default();
        self.hidden.insert(id.clone(), unique.clone());
        unique
    }

    /// Returns a new replacement each time. Its number is beyond those of kept ids, present and future.
    fn forgotten_id(&mut self, shown: &str) -> Text {
        loop {
            self.forgotten += 1;
            let other = Text::from(format!("{shown}-{}", 2 * MOST_HIDDEN + self.forgotten));
            if !self.taken.contains(&other) {
                return other;
            }
        }
    }
}

impl Recent {
    fn shown(&self, word: &str) -> Option<Text> {
        self.0.iter().find(|(known, _)| known.as_str() == word).map(|(_, shown)| shown.clone())
    }

    fn keep(&mut self, word: &Text, shown: &Text) {
        if word.len() <= LONGEST_KEPT {
            if self.0.len() == MOST_KEPT {
                self.0.remove(0);
            }
            self.0.push((word.clone(), shown.clone()));
        }
    }
}

/// Omits the words, which are the server's.
impl fmt::Debug for Identifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identifiers").field("hidden", &self.hidden.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
