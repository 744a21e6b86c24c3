//! Tests of `backoff`.

use std::time::UNIX_EPOCH;

use super::*;

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
