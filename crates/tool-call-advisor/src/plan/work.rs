//! How long the check of a call's arguments may take.

/// How long a check of arguments may take.
#[cfg_attr(not(feature = "schema-validation"), expect(dead_code, reason = "nothing is checked"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Too short to notice.
    Little,
    /// Long enough to hold up other work of the thread.
    Much,
    /// Too long. The schema has so many patterns.
    TooMuch { patterns: usize },
}
