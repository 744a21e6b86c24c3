//! What came of a call and may be another's.

use crate::{Text, ToolCallDelta};

/// What came of a call and may be another's: such a call may be meant by what comes later.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims {
    header: Option<Header>,
    /// Other ids than the call's, under which arguments of it came.
    ids: Vec<Text>,
}

/// A header of the call that came again, and may have begun a further one of the same tool.
#[derive(Debug, Clone)]
struct Header {
    /// Absent where it had none, or where several had different ones.
    index: Option<i64>,
    id: Option<Text>,
    /// How many calls there were.
    calls: usize,
}

/// A server that gives every piece another id means nothing by it.
const MOST_IDS: usize = 64;

impl Claims {
    /// Notes that `fragment` is a header that came again; `calls`: how many there are.
    pub(crate) fn note_header(&mut self, fragment: &ToolCallDelta, calls: usize) {
        let (mut index, mut id) = (fragment.index, fragment.call_id().cloned());
        if let Some(before) = self.header.take() {
            index = index.filter(|_| index == before.index);
            id = id.filter(|id| before.id.as_ref() == Some(id));
        }
        self.header = Some(Header { index, id, calls });
    }

    #[inline]
    pub(crate) fn has_header(&self) -> bool {
        self.header.is_some()
    }

    pub(crate) fn note_id(&mut self, id: Option<&Text>) {
        self.ids.extend(id.cloned());
    }

    /// The id of `fragment`, if it comes with arguments, is another one than `own`, and is not noted yet.
    pub(crate) fn new_id<'a>(&self, own: Option<&Text>, fragment: &'a ToolCallDelta) -> Option<&'a Text> {
        let id = fragment.call_id().filter(|_| fragment.arguments_delta().is_some())?;
        let is_other = own.is_some_and(|own| own != id);
        (is_other && self.ids.len() < MOST_IDS && !self.ids.contains(id)).then_some(id)
    }

    /// Whether `fragment` may go on with what a header began that came again, rather than with the call at `taken`. That call
    /// is the one that is meant if it began later.
    pub(crate) fn goes_on(&self, fragment: &ToolCallDelta, taken: usize) -> bool {
        self.header.as_ref().is_some_and(|header| {
            let (index, id) = (fragment.index, fragment.call_id());
            taken < header.calls
                && (index.is_none() || header.index.is_none() || index == header.index)
                && (id.is_none() || header.id.is_none() || id == header.id.as_ref())
        })
    }

    /// Whether arguments came under this id; without one, whether any came under another id than the call's.
    pub(crate) fn has_id(&self, id: Option<&Text>) -> bool {
        id.map_or(!self.ids.is_empty(), |id| self.ids.contains(id))
    }
}
