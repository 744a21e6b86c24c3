use std::fmt;
use std::sync::Arc;

use message_aggregator::WireForms;

use crate::{Tool, ToolDefinition};

/// Tools under their names, in the order in which they were added. Cheap to clone.
///
/// A set remembers its serialised form per wire format, so that in a turn of fifty rounds it is written once.
#[derive(Clone, Default)]
pub struct ToolSet(Arc<Tools>);

#[derive(Default)]
struct Tools {
    tools: Vec<Arc<dyn Tool>>,
    wire_forms: WireForms,
}

/// To be changed, so without what was written of it.
impl Clone for Tools {
    fn clone(&self) -> Self {
        self.tools.clone().into()
    }
}

impl From<Vec<Arc<dyn Tool>>> for Tools {
    fn from(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools, wire_forms: WireForms::default() }
    }
}

impl ToolSet {
    /// No tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same set with one more tool, in place of one of the same name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool) -> Self {
        self.insert(Arc::new(tool));
        self
    }

    /// Adds a tool. If one of the same name was there, it is replaced and given back.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) -> Option<Arc<dyn Tool>> {
        let Tools { tools, wire_forms } = Arc::make_mut(&mut self.0);
        *wire_forms = WireForms::default();
        let name = &tool.definition().name;
        match tools.iter_mut().find(|known| known.definition().name == *name) {
            Some(known) => Some(std::mem::replace(known, tool)),
            None => {
                tools.push(tool);
                None
            }
        }
    }

    /// The same set without the tools for whose names `keep` says no.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        let kept: Vec<_> = self.iter().filter(|tool| keep(&tool.definition().name)).cloned().collect();
        Self(Arc::new(kept.into()))
    }

    /// The tool of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.iter().find(|tool| tool.definition().name == *name)
    }

    /// All tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.0.tools.iter()
    }

    /// What the model is told, in order.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.iter().map(|tool| tool.definition())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.tools.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.tools.is_empty()
    }

    /// The form that a wire format gives the definitions of this set, made by `make` the first time it is asked for.
    ///
    /// `T` is a type of the caller's own, one per wire format. A set that is changed has forms of its own.
    pub fn wire_form<T: Send + Sync + 'static>(&self, make: impl FnOnce(&Self) -> T) -> &T {
        self.0.wire_forms.form(|| make(self))
    }
}

impl FromIterator<Arc<dyn Tool>> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        let mut set = Self::new();
        for tool in tools {
            set.insert(tool);
        }
        set
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.definitions().map(|definition| &definition.name)).finish()
    }
}
