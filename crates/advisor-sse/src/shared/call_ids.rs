//! `CallIds`: unique ids of the calls of a turn.

use std::collections::HashSet;

use advisor_core::Text;

/// The ids of the calls of one turn, as clients get them. Models repeat ids in later rounds; a repeated one is numbered.
///
/// Stored calls that are named in the order of their turn have the same ids as in its stream, if no attempt was void.
///
/// # Example
/// ```
/// use advisor_core::Text;
/// use advisor_sse::CallIds;
///
/// let mut ids = CallIds::default();
/// let shown = ["call_0", "call_0", "call_1"].map(|id| ids.next_id(&Text::from(id)));
/// assert_eq!(shown, ["call_0", "call_0_2", "call_1"].map(Text::from));
///
/// let mut ids = CallIds::with_suffix("-a1");
/// assert_eq!([ids.next_id(&"call_0".into()), ids.next_id(&"call_0".into())], ["call_0-a1", "call_0_2-a1"].map(Text::from));
/// ```
#[derive(Debug, Clone, Default)]
pub struct CallIds {
    used: HashSet<Text>,
    suffix: Text,
}

impl CallIds {
    /// Creates the ids of a turn that all end so. Clients that keep the calls of several turns together need it: models
    /// repeat ids in later turns, too.
    #[must_use]
    pub fn with_suffix(suffix: impl Into<Text>) -> Self {
        Self { used: HashSet::new(), suffix: suffix.into() }
    }

    /// Returns the id of the next call of the turn, which the model has named so.
    pub fn next_id(&mut self, call_id: &Text) -> Text {
        let suffix = &self.suffix;
        let mut id =
            if suffix.is_empty() { call_id.clone() } else { Text::from(format!("{call_id}{suffix}")) };
        let mut number = 2_u32;
        while !self.used.insert(id.clone()) {
            id = Text::from(format!("{call_id}_{number}{suffix}"));
            number += 1;
        }
        id
    }
}
