//! Data of a call that may belong to another call.

use crate::{Text, ToolCallDelta};

/// Data of a call that may belong to another call, so that later fragments may mean this call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claims {
    header: Option<Header>,
    /// Other ids than the call's, under which arguments of it came.
    ids: Vec<Text>,
}

/// A repeated header of the call, which may have begun a further call of the same tool.
#[derive(Debug, Clone)]
struct Header {
    /// `None` if the header had none, or if several headers had different ones.
    index: Option<i64>,
    id: Option<Text>,
    /// The number of calls at that time.
    calls: usize,
}

/// The maximum number of noted ids: a server that gives every piece another id means nothing by it.
const MOST_IDS: usize = 64;

impl Claims {
    /// Notes a repeated header; `calls` is the number of calls so far.
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

    /// Returns the id of `fragment`, if it comes with arguments, differs from `own`, and is not noted yet.
    pub(crate) fn new_id<'a>(&self, own: Option<&Text>, fragment: &'a ToolCallDelta) -> Option<&'a Text> {
        let id = fragment.call_id().filter(|_| fragment.arguments_delta().is_some())?;
        let is_other = own.is_some_and(|own| own != id);
        (is_other && self.ids.len() < MOST_IDS && !self.ids.contains(id)).then_some(id)
    }

    /// Checks whether `fragment` may continue a call begun by the repeated header, rather than the call at
    /// `taken`. If that call began later than the header, it is the one meant.
    pub(crate) fn continues(&self, fragment: &ToolCallDelta, taken: usize) -> bool {
        self.header.as_ref().is_some_and(|header| {
            let (index, id) = (fragment.index, fragment.call_id());
            taken < header.calls
                && (index.is_none() || header.index.is_none() || index == header.index)
                && (id.is_none() || header.id.is_none() || id == header.id.as_ref())
        })
    }

    /// Checks whether arguments arrived under this id; without an id, whether any arrived under another id than
    /// the call's.
    pub(crate) fn has_id(&self, id: Option<&Text>) -> bool {
        id.map_or(!self.ids.is_empty(), |id| self.ids.contains(id))
    }
}
