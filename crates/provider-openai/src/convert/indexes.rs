//! The indexes of calls, as numbers.

use std::collections::HashMap;
use std::fmt;

use crate::wire::CallIndex;

/// How many odd indexes of an answer are kept.
const MOST_KEPT: usize = 1 << 10;
/// The longest spelling of one that is kept, in bytes.
const LONGEST_KEPT: usize = 64;

/// The numbers of one answer that stand for indexes that are none.
#[derive(Default)]
pub(super) struct CallIndexes {
    /// Each spelling has its own: the first one the lowest, the next one the next.
    odd: HashMap<String, i64>,
    given: i64,
    forgets: bool,
}

impl CallIndexes {
    /// The number that an index is, or stands for in this answer.
    pub(super) fn number_of(&mut self, index: CallIndex<'_>) -> Option<i64> {
        match index {
            CallIndex::Absent => None,
            CallIndex::Number(number) => Some(number),
            CallIndex::Odd(spelling) => Some(self.number_for(&spelling)),
        }
    }

    /// Whether an index came that is not kept.
    pub(super) fn forgets(&self) -> bool {
        self.forgets
    }

    /// A spelling beyond the bounds is not kept, so it is another one each time.
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

/// Without the spellings, which are as the server wrote them.
impl fmt::Debug for CallIndexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallIndexes").field("odd", &self.odd.len()).finish_non_exhaustive()
    }
}
