//! `NestedBounds`: what a turn leaves to turns inside its tools; `Turn::inherited_bounds`.

use tokio::time::Instant;

use crate::Turn;

/// What a turn leaves to the turns inside its tools: an [extension](crate::Extensions) of the outer turn.
///
/// The tool loop states it before the tools of a round start. [`Prompt::inside`](crate::Prompt::inside) passes it on.
/// Turns that run side by side each get what was left then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NestedBounds {
    /// The time at which the outer turn ends.
    pub deadline: Option<Instant>,
    /// The number of requests to the model that the outer turn has left.
    pub rounds: Option<u32>,
    /// The number of tool calls that the outer turn has left.
    pub calls: Option<u32>,
    /// The number of turns around the inner turn, at least 1.
    pub depth: u32,
}

impl NestedBounds {
    /// Creates bounds for turns with `depth` turns around them, and without further limits.
    #[must_use]
    pub fn at_depth(depth: u32) -> Self {
        Self { depth, ..Self::default() }
    }
}

/// The bounds that a turn has got from the one around it.
#[derive(Clone)]
pub(crate) struct Inherited(pub(crate) NestedBounds);

impl Turn {
    /// Returns the bounds of a turn inside a tool, as the outer turn left them.
    #[must_use]
    pub fn inherited_bounds(&self) -> Option<NestedBounds> {
        self.extensions().get().map(|Inherited(bounds)| bounds)
    }
}
