//! Names and ids of an answer, as they may be shown in spans and logs.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use advisor_core::Text;

use crate::request::ToolNames;
use provider_http::redaction::Redaction;

/// How many words are kept of each kind: some servers repeat the id and the name of a call in every piece of it.
const MOST_KEPT: usize = 8;
/// The longest word that is kept, in bytes.
const LONGEST_KEPT: usize = 256;
/// How many ids of calls are kept in which something is hidden.
const MOST_HIDDEN: usize = 1 << 10;
/// The longest of them that is kept, in bytes.
const LONGEST_HIDDEN: usize = 1 << 10;

/// Names and ids without what looks like a secret. Each is looked through once, so one that repeats costs next to nothing.
#[derive(Default)]
pub(super) struct Identifiers {
    redaction: Redaction,
    /// What tools are called in the request that is answered.
    tools: Option<Arc<ToolNames>>,
    names: Recent,
    ids: Recent,
    /// The ids of calls in which something is hidden, and what stands for each.
    hidden: HashMap<Text, Text>,
    /// What stands for some of them.
    taken: HashSet<Text>,
    /// How many were not kept.
    forgotten: usize,
}

/// Words, and how they are shown: the last ones.
#[derive(Default)]
struct Recent(Vec<(Text, Text)>);

impl Identifiers {
    pub(super) fn new(redaction: Redaction) -> Self {
        // Not from the default one, whose empty sets would be made to be thrown away.
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

    /// Whether an id came that is not kept.
    pub(super) fn forgets(&self) -> bool {
        self.forgotten > 0
    }

    /// The id of an answer, a model, or why it ends.
    pub(super) fn word(&self, word: &str) -> Text {
        self.redaction.identifier(word).into()
    }

    /// The tool of this name. Those of the request are no words of the server.
    pub(super) fn tool(&mut self, name: &str) -> Text {
        if let Some(known) = self.names.shown(name) {
            return known;
        }
        let offered = self.tools.as_ref().and_then(|tools| tools.meant_by(name));
        let tool = offered.unwrap_or_else(|| self.redaction.identifier(name).into());
        self.names.keep(name, &tool);
        tool
    }

    /// The id of a call: in one answer the same one each time, and different ones stay different.
    pub(super) fn call_id(&mut self, id: &str) -> Text {
        if let Some(known) = self.ids.shown(id) {
            return known;
        }
        let shown = match self.redaction.identifier(id) {
            shown if shown == id && !shown.contains(Redaction::BLANK) => Text::from(id),
            shown => self.hidden_id(id, &shown),
        };
        self.ids.keep(id, &shown);
        shown
    }

    /// An id beyond the bounds is not kept, so it is another one each time.
    fn hidden_id(&mut self, id: &str, shown: &str) -> Text {
        if let Some(known) = self.hidden.get(id) {
            return known.clone();
        }
        if id.len() > LONGEST_HIDDEN || self.hidden.len() >= MOST_HIDDEN {
            return self.forgotten_id(shown);
        }
        // Once some are forgotten, it would not be known whether a word stands for one of them already.
        let bare = (self.forgotten == 0).then(|| Text::from(shown));
        let numbered = (self.taken.len() + 1..).map(|number| Text::from(format!("{shown}-{number}")));
        let mut others = bare.into_iter().chain(numbered);
        let unique = others.find(|other| self.taken.insert(other.clone())).unwrap_or_default();
        self.hidden.insert(id.into(), unique.clone());
        unique
    }

    /// Another one each time. Its number is beyond those of ids that are kept, also of the ones to come.
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

    fn keep(&mut self, word: &str, shown: &Text) {
        if word.len() <= LONGEST_KEPT {
            if self.0.len() == MOST_KEPT {
                self.0.remove(0);
            }
            let word = if shown == word { shown.clone() } else { word.into() };
            self.0.push((word, shown.clone()));
        }
    }
}

/// Without the words, which are as the server wrote them.
impl fmt::Debug for Identifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identifiers").field("hidden", &self.hidden.len()).finish_non_exhaustive()
    }
}
