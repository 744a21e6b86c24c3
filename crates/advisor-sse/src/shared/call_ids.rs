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
/// ```
#[derive(Debug, Clone, Default)]
pub struct CallIds {
    used: HashSet<Text>,
}

impl CallIds {
    /// Returns the id of the next call of the turn, which the model has named so.
    pub fn next_id(&mut self, call_id: &Text) -> Text {
        let mut id = call_id.clone();
        let mut number = 2_u32;
        while !self.used.insert(id.clone()) {
            id = Text::from(format!("{call_id}_{number}"));
            number += 1;
        }
        id
    }
}
