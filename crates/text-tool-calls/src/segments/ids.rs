//! `SegmentIds`: the ids of segments and calls.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_calls_keep_their_own() {
        let mut ids = SegmentIds::new("t:".into());
        let mut call = |own: &str| ids.call(Some(&own.into())).to_string();
        let calls = ["c1", "", "c1", "t:call_3", "run_bash:0", "run_bash:1"].map(&mut call);
        assert_eq!(calls, ["c1", "t:call_1", "t:call_2", "t:call_3", "run_bash:0", "run_bash:1"]);
        assert_eq!(call("c1"), "t:call_4", "an id that a call has brought is not made again");
        assert_eq!([ids.next_text(), ids.next_text()], ["t:text_1", "t:text_2"]);
        assert_eq!(ids.renewed().call(Some(&"c1".into())), "c1", "another answer starts from the beginning");
    }
}
