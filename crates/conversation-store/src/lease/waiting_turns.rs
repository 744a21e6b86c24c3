//! The turns that wait for a lease, in the order in which they came, as one pure function of times.

use std::time::Duration;

use advisor_core::TurnId;

/// The queue of a conversation: the places of the turns that wait for its lease. For store implementations that
/// decide in this process.
///
/// A refused request of a turn that waits takes a place at the end, and each further one keeps it for
/// [`LASTS`](Self::LASTS). A free lease goes to the first place. A turn that takes the lease over passes the queue,
/// until the first place has waited for [`PASSED_FOR`](Self::PASSED_FOR). Times are those of the store's clock, since
/// any moment.
#[derive(Debug, Clone, Default)]
pub struct WaitingTurns(Vec<Place>);

#[derive(Debug, Clone)]
struct Place {
    turn: TurnId,
    since: Duration,
    until: Duration,
}

impl WaitingTurns {
    /// The time for which a request keeps a place. A turn that is gone delays those behind it by this time.
    pub const LASTS: Duration = Duration::from_secs(3);

    /// The time for which other turns may pass a waiting one by a takeover.
    pub const PASSED_FOR: Duration = Duration::from_secs(10);

    /// The number of places of a conversation. Further turns wait without order until one is free.
    pub const MOST: usize = 100;

    /// Removes the places that have ended.
    pub fn expire(&mut self, now: Duration) {
        self.0.retain(|place| place.until > now);
    }

    /// Returns the first place that this turn has to let go first: its turn, and the time until it ends.
    /// `takes_over` says whether the turn takes over the lease of another turn.
    #[must_use]
    pub fn ahead_of(&self, turn: &TurnId, takes_over: bool, now: Duration) -> Option<(&TurnId, Duration)> {
        let first = self.0.first().filter(|first| first.turn != *turn)?;
        let is_passed = takes_over && now.saturating_sub(first.since) < Self::PASSED_FOR;
        (!is_passed).then(|| (&first.turn, first.until.saturating_sub(now)))
    }

    /// Takes or keeps the place of a turn whose request was refused.
    pub fn wait(&mut self, turn: &TurnId, now: Duration) {
        let until = now.saturating_add(Self::LASTS);
        if let Some(place) = self.0.iter_mut().find(|place| place.turn == *turn) {
            place.until = until;
        } else if self.0.len() < Self::MOST {
            self.0.push(Place { turn: turn.clone(), since: now, until });
        }
    }

    /// Removes the place of a turn that has got the lease.
    pub fn leave(&mut self, turn: &TurnId) {
        self.0.retain(|place| place.turn != *turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(name: &str) -> TurnId {
        TurnId::new(name).unwrap()
    }

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn first_place_goes_first_and_ends_with_its_time() {
        let mut waiting = WaitingTurns::default();
        waiting.wait(&turn("a"), seconds(0));
        waiting.wait(&turn("b"), seconds(1));
        waiting.wait(&turn("a"), seconds(2));
        assert_eq!(waiting.ahead_of(&turn("a"), false, seconds(2)), None);
        assert_eq!(waiting.ahead_of(&turn("b"), false, seconds(2)), Some((&turn("a"), seconds(3))));
        waiting.expire(seconds(4));
        assert_eq!(
            waiting.ahead_of(&turn("c"), false, seconds(4)),
            Some((&turn("a"), seconds(1))),
            "b is gone"
        );
        waiting.expire(seconds(5));
        assert_eq!(waiting.ahead_of(&turn("c"), false, seconds(5)), None);
    }

    #[test]
    fn a_takeover_passes_the_first_place_for_a_while_only() {
        let mut waiting = WaitingTurns::default();
        for now in 0..12 {
            waiting.wait(&turn("a"), seconds(now));
            let ahead = waiting.ahead_of(&turn("b"), true, seconds(now));
            assert_eq!(ahead.is_some(), now >= 10, "after {now} s");
        }
        waiting.leave(&turn("a"));
        assert_eq!(waiting.ahead_of(&turn("b"), false, seconds(12)), None);
    }

    #[test]
    fn law_r1_places_are_bounded() {
        let mut waiting = WaitingTurns::default();
        for number in 0..300 {
            waiting.wait(&turn(&number.to_string()), seconds(0));
        }
        assert_eq!(waiting.0.len(), WaitingTurns::MOST);
    }
}
