//! Tests of `json`.

use proptest::prelude::*;

use super::*;

type Outcome = (Vec<(String, u64)>, Option<JsonError>);

fn decode(layout: Layout, limit: usize, pieces: &[&[u8]]) -> Outcome {
    let mut decoder = JsonDecoder::new(layout, limit);
    let (mut values, mut failed) = (Vec::new(), None);
    let mut take = |decoder: &mut JsonDecoder| loop {
        match decoder.next_value() {
            Ok(Some(value)) => values.push((value.json.to_owned(), value.position)),
            Ok(None) => break,
            Err(error) => {
                assert_eq!(decoder.next_value(), Err(error.clone()), "an error stays");
                failed = Some(error);
                break;
            }
        }
    };
    for piece in pieces {
        decoder.push(piece);
        take(&mut decoder);
    }
    decoder.finish();
    take(&mut decoder);
    (values, failed)
}

fn values(layout: Layout, body: &str) -> Vec<String> {
    let (values, failed) = decode(layout, 1 << 20, &[body.as_bytes()]);
    assert_eq!(failed, None, "{body}");
    values.into_iter().map(|(json, _)| json).collect()
}

#[test]
fn values_need_no_separator() {
    let body = "{\"a\":[1,{}]}{} [2]\r\n\"x\\\"}\"null 12\t-3.5e7{\"b\":\"\\\\\"}true";
    let expected =
        ["{\"a\":[1,{}]}", "{}", "[2]", "\"x\\\"}\"", "null", "12", "-3.5e7", "{\"b\":\"\\\\\"}", "true"];
    assert_eq!(values(Layout::Values, body), expected);
}

#[test]
fn line_of_plain_words_is_one_value() {
    let body = "{\"a\":1}\nfailed: [1] is \"x\"\r\n12 no more\n{}";
    let expected = ["{\"a\":1}", "failed: [1] is \"x\"", "12", "no more", "{}"];
    assert_eq!(values(Layout::Values, body), expected);
    assert_eq!(values(Layout::Values, "null\nnone left"), ["null", "none left"]);
}

/// Returns the outcome of a body that arrives byte by byte.
fn byte_by_byte(layout: Layout, body: &str) -> Outcome {
    decode(layout, 30, &body.as_bytes().chunks(1).collect::<Vec<_>>())
}

#[test]
fn law_s5_form_feed_is_no_white_space() {
    for layout in [Layout::Values, Layout::Array] {
        for body in ["{}\n\u{c}{}", "[1,\n\u{c}2]", " \u{c}\n3", "{}\n\u{b}{}"] {
            let whole = decode(layout, 30, &[body.as_bytes()]);
            assert_eq!(byte_by_byte(layout, body), whole, "{layout:?} {body:?}");
        }
    }
    assert_eq!(values(Layout::Values, "{}\n\u{c}x\n{}"), ["{}", "\u{c}x", "{}"]);
}

#[test]
fn elements_of_an_array_are_values() {
    for body in ["[1,{\"a\":\"],[\"},[2,3],\"x\"]9", " [ 1 , {\"a\":\"],[\"}\n,\n[2,3],\"x\" ] "] {
        assert_eq!(values(Layout::Array, body), ["1", "{\"a\":\"],[\"}", "[2,3]", "\"x\""], "{body}");
    }
    assert_eq!(values(Layout::Array, "[] 7"), [""; 0]);
}

#[test]
fn array_is_complete_once_it_is_closed() {
    let mut decoder = JsonDecoder::new(Layout::Array, 8);
    for (bytes, closed) in [("[1", false), (",[2]", false), (" ", false), ("] ", true), ("3", true)] {
        decoder.push(bytes.as_bytes());
        while decoder.next_value().expect("JSON").is_some() {}
        assert_eq!(decoder.is_closed(), closed, "{bytes}");
    }
    for cut in ["[", "[1", "[1,", "[1,[2]", "[1,[2", ""] {
        assert_eq!(decode(Layout::Array, 8, &[cut.as_bytes()]).1, Some(JsonError::Truncated), "{cut}");
    }
}

#[test]
fn errors_have_positions() {
    let fails = |body: &[u8]| decode(Layout::Values, 20, &[b"{}\n", body]).1;
    assert_eq!(fails(b"{\"a\":"), Some(JsonError::Truncated));
    assert_eq!(fails(b"{\"a\":\"\xC3"), Some(JsonError::Truncated));
    assert_eq!(fails(b"{\"a\";"), Some(JsonError::Malformed { line: 1, column: 5, position: 3 }));
    assert_eq!(fails(b"{\"a\":\"\xFF\"}"), Some(JsonError::InvalidUtf8 { position: 9 }));
    assert_eq!(fails(b"{\"a\":\"\xFF"), Some(JsonError::InvalidUtf8 { position: 9 }));
    assert_eq!(fails(b"{\"a\";\"\xFF"), Some(JsonError::Malformed { line: 1, column: 5, position: 3 }));
    assert_eq!(fails(b"  \"0123456789012345678\""), Some(JsonError::TooLarge { limit: 20, position: 5 }));
    assert_eq!(fails(b"  \"012345678901234567\""), None);
}

#[test]
fn law_r1_white_space_between_values_is_not_kept() {
    let mut decoder = JsonDecoder::new(Layout::Values, 8);
    for _ in 0..1000 {
        decoder.push(&[b' '; 1000]);
        assert_eq!(decoder.next_value(), Ok(None));
    }
    assert!(decoder.buffer.capacity() <= 8 << 10, "{}", decoder.buffer.capacity());
    decoder.push(b"7");
    decoder.finish();
    let last = decoder.next_value().expect("a number").map(|value| (value.json.to_owned(), value.position));
    assert_eq!(last, Some(("7".to_owned(), 1_000_000)));
}

proptest! {
    #[test]
    fn law_s5_any_split_gives_same_values(
        body in "([\\[\\]{}\",:0-9 \\\\nxé\n\x0C]|\\{\"a\":1\\}){0,40}",
        cuts in proptest::collection::vec(0usize..80, 0..6),
        array in any::<bool>(),
    ) {
        let layout = if array { Layout::Array } else { Layout::Values };
        let bytes = body.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let whole = decode(layout, 30, &[bytes]);
        prop_assert_eq!(&decode(layout, 30, &pieces), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&decode(layout, 30, &single), &whole);
    }

    #[test]
    fn valid_values_come_back_as_written(numbers in proptest::collection::vec(any::<i32>(), 0..8)) {
        let written: Vec<String> =
            numbers.iter().map(|number| format!("{{\"n\":[{number},\"\\\"]{number}\"]}}")).collect();
        prop_assert_eq!(&values(Layout::Values, &written.join("\n")), &written);
        prop_assert_eq!(&values(Layout::Array, &format!("[{}]", written.join(", "))), &written);
    }
}
