//! `AWAY_AFTER`: the delay of a poll from which on a timeout starts again.

use std::time::Duration;

/// The delay after the end of a timeout from which on its caller counts as away.
///
/// A timeout runs while its future is polled. If the first poll after its end is later than this, nobody was waiting.
/// The timeouts of providers and of policies start again then, so that a slow reader causes none.
pub const AWAY_AFTER: Duration = Duration::from_secs(1);
