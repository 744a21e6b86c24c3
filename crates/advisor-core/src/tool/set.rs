//! `ToolSet`: tools by name, in order, with one serialised form per wire format.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Once};

use message_aggregator::{Text, WireForms};

use crate::{Error, Result, Tool, ToolDefinition};

/// Tools by name, in the order in which they were added. Cheap to clone.
///
/// A set caches its serialised form per wire format, so a turn of fifty rounds serialises it once. It dereferences to the
/// list of its tools.
#[derive(Clone, Default)]
pub struct ToolSet(Arc<Tools>);

#[derive(Default)]
struct Tools {
    tools: Vec<Arc<dyn Tool>>,
    wire_forms: WireForms,
}

/// Cloned only to be changed, so the clone starts without cached wire forms.
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
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool and replaces one of the same name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool) -> Self {
        self.insert(Arc::new(tool));
        self
    }

    /// Adds a tool. Returns the replaced tool of the same name, if any.
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

    /// Returns the set without the tools for whose names `keep` returns false.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        let kept: Vec<_> = self.iter().filter(|tool| keep(&tool.definition().name)).cloned().collect();
        Self(Arc::new(kept.into()))
    }

    /// Adds the tools of another set.
    ///
    /// Where both have a tool of the same name, a [foreign](ToolDefinition::origin) one is left out with a warning; of
    /// two foreign ones, that of the other set. The other set is warned of once, though each round may add it.
    ///
    /// # Errors
    /// Of kind [`Configuration`](crate::ErrorKind::Configuration) if both sets have a tool of the same name, and neither
    /// is foreign. The text names it.
    pub fn merged(mut self, other: &Self) -> Result<Self> {
        let mut left_out = Vec::new();
        for tool in other.iter() {
            left_out.extend(self.join(Arc::clone(tool))?);
        }
        if !left_out.is_empty() {
            let Warning(once) = other.wire_form(|_| Warning(Once::new()));
            once.call_once(|| left_out.iter().for_each(|name| warn_of_left_out(name)));
        }
        Ok(self)
    }

    /// Adds a tool. If there is one of its name, a foreign one of the two is left out, and the name is returned.
    ///
    /// # Errors
    /// If neither is foreign. The set then has the new one.
    pub(crate) fn join(&mut self, tool: Arc<dyn Tool>) -> Result<Option<Text>> {
        let (name, is_foreign) = (tool.definition().name.clone(), tool.definition().origin.is_some());
        let known = self.find(&name).map(|known| known.definition().origin.is_some());
        if known.is_none() || !is_foreign {
            self.insert(tool);
        }
        match known {
            Some(false) if !is_foreign => Err(duplicate_tool(&name)),
            known => Ok(known.map(|_| name)),
        }
    }

    /// Checks whether the other set is a clone of this one. Equal sets of different origin are not.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the tool of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.iter().find(|tool| tool.definition().name == *name)
    }

    /// Iterates over the definitions, in order.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.iter().map(|tool| tool.definition())
    }

    /// Returns the cached wire form of the definitions; `make` creates it at the first call.
    ///
    /// `T` is a type of the caller, one per wire format. A changed set has its own forms.
    pub fn wire_form<T: Send + Sync + 'static>(&self, make: impl FnOnce(&Self) -> T) -> &T {
        self.0.wire_forms.form(|| make(self))
    }
}

/// Warns once of the tools that a set has in vain.
struct Warning(Once);

/// Warns of a foreign tool that is left out.
pub(crate) fn warn_of_left_out(name: &str) {
    let tool = name.escape_debug().to_string();
    tracing::warn!(tool, "a foreign tool is left out: another tool has its name");
}

/// Returns the error of two tools with the same name.
pub(crate) fn duplicate_tool(name: &str) -> Error {
    Error::configuration(format!("two tools are called `{name}`; rename or leave out one of them"))
}

impl Deref for ToolSet {
    type Target = [Arc<dyn Tool>];

    fn deref(&self) -> &Self::Target {
        &self.0.tools
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
