use std::collections::HashSet;

use advisor_core::Text;

/// The ids of segments: a prefix and a number, or the id that a call has.
#[derive(Debug, Default)]
pub(super) struct SegmentIds {
    prefix: Text,
    texts: usize,
    calls: usize,
    used: HashSet<Text>,
}

impl SegmentIds {
    pub(super) fn new(prefix: Text) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// The ids of another answer, with the same prefix.
    pub(super) fn renewed(&self) -> Self {
        Self::new(self.prefix.clone())
    }

    pub(super) fn next_text(&mut self) -> Text {
        self.texts += 1;
        format!("{}text_{}", self.prefix, self.texts).into()
    }

    /// Returns the id of a call: its own, unless another segment has it.
    pub(super) fn call(&mut self, own: Option<&Text>) -> Text {
        let mut id = own.filter(|id| !id.is_empty()).cloned();
        loop {
            let candidate = id.take().unwrap_or_else(|| {
                self.calls += 1;
                format!("{}call_{}", self.prefix, self.calls).into()
            });
            if self.used.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}
