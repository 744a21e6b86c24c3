//! Tests of `backoff`.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn waits_double_up_to_the_longest() {
    let ceilings = [500, 1000, 2000, 4000, 8000, 8000, 8000].map(Duration::from_millis);
    for seed in 0..200 {
        let mut waits = Backoff { retries: ceilings.len(), seed: Some(seed), ..Backoff::default() }.waits();
        for ceiling in ceilings {
            let wait = waits.next_wait(None).expect("a retry is left");
            // backon computes in 32-bit floats.
            assert!(
                wait + MILLISECOND >= ceiling / 2 && wait <= ceiling + MILLISECOND,
                "{wait:?} of {ceiling:?}"
            );
        }
        assert_eq!(waits.next_wait(None), None);
        assert_eq!(waits.next_wait(Some(Duration::ZERO)), None);
    }
}

#[test]
fn seed_fixes_jitter_and_unseeded_jitter_varies() {
    let first_wait = |backoff: Backoff| backoff.waits().next_wait(None).expect("a retry");
    let of_seed = |seed| first_wait(Backoff { seed: Some(seed), ..Backoff::default() });
    assert_eq!(of_seed(7), of_seed(7));
    let mut waits: Vec<Duration> = (0..100).map(of_seed).collect();
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 90, "{}", waits.len());
    let mut unseeded: Vec<Duration> = (0..100).map(|_| first_wait(Backoff::default())).collect();
    unseeded.sort_unstable();
    unseeded.dedup();
    assert!(unseeded.len() > 90, "{}", unseeded.len());
}

/// An attempt before the server wants one is refused again.
#[test]
fn server_wait_overrides_schedule_and_no_longer_one_begins() {
    let second = Duration::from_secs(1);
    let cases = [
        (Duration::ZERO, Some(Duration::ZERO)),
        (second, Some(second)),
        (60 * second, Some(60 * second)),
        (61 * second, None),
        (Duration::MAX, None),
    ];
    for (asked, expected) in cases {
        assert_eq!(Backoff::default().waits().next_wait(Some(asked)), expected, "{asked:?}");
    }
    let patient = Backoff { max_retry_after: Duration::MAX, ..Backoff::default() };
    assert_eq!(patient.waits().next_wait(Some(Duration::MAX)), Some(Duration::MAX));
}

#[test]
fn no_retries_means_none() {
    assert_eq!(Backoff::none().waits().next_wait(None), None);
    assert_eq!(Backoff::none().waits().next_wait(Some(Duration::ZERO)), None);
}

#[test]
fn any_bounds_are_safe() {
    let extremes = [
        Duration::ZERO,
        Duration::from_nanos(1),
        MILLISECOND,
        Duration::from_secs(u64::MAX / 2),
        Duration::MAX,
    ];
    for first in extremes {
        for longest in extremes {
            let mut waits =
                Backoff { first, longest, retries: 200, seed: Some(1), ..Backoff::default() }.waits();
            let mut count = 0;
            while let Some(wait) = waits.next_wait(None) {
                count += 1;
                let rounding = longest / 1_000_000 + Duration::from_nanos(1);
                assert!(wait <= longest.saturating_add(rounding), "{wait:?}: {first:?}, {longest:?}");
            }
            assert_eq!(count, 200);
        }
    }
}

#[test]
fn waits_are_put_in_words_that_promise_no_earlier_time() {
    for (milliseconds, words) in [
        (0, "0 s"),
        (1, "1 s"),
        (7_000, "7 s"),
        (119_100, "120 s"),
        (120_001, "3 min"),
        (600_000, "10 min"),
        (7_199_500, "2 h"),
        (7_200_000, "2 h"),
        (7_200_001, "2 h 1 min"),
        (172_800_001, "3 d"),
    ] {
        assert_eq!(wait_in_words(Duration::from_millis(milliseconds)), words, "{milliseconds}");
    }
    assert_eq!(wait_in_words(Duration::MAX), "more than a year");
}
