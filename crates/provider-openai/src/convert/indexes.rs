//! The indexes of calls, as numbers.

use std::collections::HashMap;
use std::fmt;

use crate::wire::CallIndex;

/// The most odd indexes of an answer that are kept.
const MOST_KEPT: usize = 1 << 10;
/// The longest odd index that is kept, in bytes.
const LONGEST_KEPT: usize = 64;

/// The numbers that replace odd indexes in one answer: indexes that are no usable numbers.
#[derive(Default)]
pub(super) struct CallIndexes {
    /// The number of each spelling. The first spelling has the lowest number, the next one the next.
    odd: HashMap<String, i64>,
    given: i64,
    forgets: bool,
}

impl CallIndexes {
    /// Returns the number of an index, or the one that replaces it in this answer.
    pub(super) fn number_of(&mut self, index: CallIndex<'_>) -> Option<i64> {
        match index {
            CallIndex::Absent => None,
            CallIndex::Number(number) => Some(number),
            CallIndex::Odd(spelling) => Some(self.number_for(&spelling)),
        }
    }

    /// Checks whether an index arrived that is not kept.
    pub(super) fn forgets(&self) -> bool {
        self.forgets
    }

    /// Returns the number for a spelling. A spelling beyond the bounds is not kept and gets a new number each
    /// time.
    fn number_for(&mut self, spelling: &str) -> i64 {
        if let Some(number) = self.odd.get(spelling) {
            return *number;
        }
        let number = i64::MIN + self.given;
        self.given += 1;
        if spelling.len() <= LONGEST_KEPT && self.odd.len() < MOST_KEPT {
            self.odd.insert(spelling.to_owned(), number);
        } else {
            self.forgets = true;
        }
        number
    }
}

/// Omits the spellings, which are the server's words.
impl fmt::Debug for CallIndexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallIndexes").field("odd", &self.odd.len()).finish_non_exhaustive()
    }
}
