use std::time::UNIX_EPOCH;

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

type Pairs<'a> = &'a [(&'static str, &'a str)];

fn headers(pairs: Pairs<'_>) -> HeaderMap {
    let parse = |value: &str| value.parse().expect("a header value");
    pairs.iter().map(|&(name, value)| (HeaderName::from_static(name), parse(value))).collect()
}

#[test]
fn reads_what_the_server_asks_for() {
    // Sat, 21 Nov 2026 12:00:00 GMT
    let now = UNIX_EPOCH + Duration::from_secs(1_795_262_400);
    let ms = |value| Some(Duration::from_millis(value));
    let cases: &[(Pairs<'_>, Option<Duration>)] = &[
        (&[], None),
        (&[("retry-after", "7")], ms(7000)),
        (&[("retry-after", " 7 ")], ms(7000)),
        (&[("retry-after", "0")], ms(0)),
        (&[("retry-after", "1.5")], ms(1500)),
        (&[("retry-after", "Sat, 21 Nov 2026 12:00:09 GMT")], ms(9000)),
        (&[("retry-after", "Saturday, 21-Nov-26 12:00:09 GMT")], ms(9000)),
        (&[("retry-after", "Sat Nov 21 12:00:09 2026")], ms(9000)),
        (&[("retry-after", "Sat, 21 Nov 2026 11:00:00 GMT")], ms(0)),
        (&[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")], ms(0)),
        (&[("retry-after-ms", "1500")], ms(1500)),
        (&[("retry-after-ms", "0.5")], Some(Duration::from_micros(500))),
        (&[("retry-after-ms", "1500"), ("retry-after", "2")], ms(1500)),
        (&[("retry-after-ms", "soon"), ("retry-after", "2")], ms(2000)),
        // Invalid
        (&[("retry-after", "")], None),
        (&[("retry-after", ".")], None),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "+1")], None),
        (&[("retry-after", "1e3")], None),
        (&[("retry-after", "0x10")], None),
        (&[("retry-after", "NaN")], None),
        (&[("retry-after", "inf")], None),
        (&[("retry-after", "infinity")], None),
        (&[("retry-after", "7 seconds")], None),
        (&[("retry-after", "Sat, 99 Nov 2026 12:00:09 GMT")], None),
        (&[("retry-after-ms", "-1500")], None),
        (&[("retry-after-ms", "Sat, 21 Nov 2026 12:00:09 GMT")], None),
        // Too large
        (&[("retry-after", "99999999999999999999999999")], Some(Duration::MAX)),
        (&[("retry-after-ms", "99999999999999999999999999")], Some(Duration::MAX)),
    ];
    for (pairs, expected) in cases {
        assert_eq!(retry_after(&headers(pairs), now), *expected, "{pairs:?}");
    }
    let endless = "9".repeat(400);
    assert_eq!(retry_after(&headers(&[("retry-after", &endless)]), now), Some(Duration::MAX));
    let mut not_ascii = HeaderMap::new();
    not_ascii.insert(RETRY_AFTER, http::HeaderValue::from_bytes(b"\xFF7").expect("allowed in a header"));
    assert_eq!(retry_after(&not_ascii, now), None);
}

#[test]
fn waits_double_up_to_the_longest() {
    let ceilings = [500, 1000, 2000, 4000, 8000, 8000, 8000].map(Duration::from_millis);
    for seed in 0..200 {
        let mut waits = Backoff::default().with_retries(ceilings.len()).with_seed(seed).waits();
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
    let of_seed = |seed| first_wait(Backoff::default().with_seed(seed));
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

#[test]
fn server_wait_overrides_schedule_up_to_limit() {
    let second = Duration::from_secs(1);
    let cases = [
        (Duration::ZERO, Duration::ZERO),
        (second, second),
        (60 * second, 60 * second),
        (61 * second, 60 * second),
        (Duration::MAX, 60 * second),
    ];
    for (asked, expected) in cases {
        assert_eq!(Backoff::default().waits().next_wait(Some(asked)), Some(expected), "{asked:?}");
    }
    let patient = Backoff::default().with_max_retry_after(Duration::MAX);
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
                Backoff::default().with_waits(first, longest).with_retries(200).with_seed(1).waits();
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
