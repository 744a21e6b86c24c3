//! Tests of `sse`.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

/// An event in the form that the tests compare: name, data, trailing.
type Event = (Option<String>, String, bool);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    events: Vec<Event>,
    error: Option<SseError>,
    comments: u64,
}

/// Decodes the pieces. Every event is taken out before the next piece is pushed.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: SseLimits) -> Outcome {
    let mut decoder = SseDecoder::new(limits);
    let mut events = Vec::new();
    let mut error = None;
    for piece in pieces {
        decoder.push(piece);
        error = error.or(take_events(&mut decoder, &mut events));
    }
    decoder.finish();
    error = error.or(take_events(&mut decoder, &mut events));
    assert_eq!(decoder.events(), events.len() as u64);
    Outcome { events, error, comments: decoder.comments() }
}

fn take_events(decoder: &mut SseDecoder, events: &mut Vec<Event>) -> Option<SseError> {
    loop {
        match decoder.next_event() {
            Ok(Some(event)) => {
                events.push((event.event.map(str::to_owned), event.data.to_owned(), event.trailing))
            }
            Ok(None) => return None,
            Err(error) => {
                assert_eq!(decoder.next_event(), Err(error.clone()), "an error stays");
                return Some(error);
            }
        }
    }
}

fn decode_whole(bytes: &[u8]) -> Outcome {
    decode([bytes], SseLimits::default())
}

/// Decodes the bytes whole, byte by byte and at every two-way split. The outcome must be the same.
fn decode_every_way(bytes: &[u8], limits: SseLimits) -> Outcome {
    let whole = decode([bytes], limits);
    assert_eq!(
        decode(bytes.chunks(1), limits),
        whole,
        "byte by byte: {:?}",
        bytes.escape_ascii().to_string()
    );
    for at in 0..=bytes.len() {
        let (front, back) = bytes.split_at(at);
        assert_eq!(
            decode([front, back], limits),
            whole,
            "split at {at}: {:?}",
            bytes.escape_ascii().to_string()
        );
    }
    whole
}

fn message(data: &str) -> Event {
    (None, data.to_owned(), false)
}

fn named(name: &str, data: &str) -> Event {
    (Some(name.to_owned()), data.to_owned(), false)
}

fn trailing(data: &str) -> Event {
    (None, data.to_owned(), true)
}

#[test]
fn follows_the_standard() {
    let cases: Vec<(&str, &str, Vec<Event>)> = vec![
        // Line ends
        ("LF", "data: one\n\ndata: two\n\n", vec![message("one"), message("two")]),
        ("CRLF", "data: one\r\n\r\ndata: two\r\n\r\n", vec![message("one"), message("two")]),
        ("CR", "data: one\r\rdata: two\r\r", vec![message("one"), message("two")]),
        (
            "a line ends with CRLF, the blank one with LF",
            "data: one\r\n\ndata: two\r\n\n",
            vec![message("one"), message("two")],
        ),
        (
            "a line ends with LF, the blank one with CRLF",
            "data: one\n\r\ndata: two\n\r\n",
            vec![message("one"), message("two")],
        ),
        (
            "a line ends with LF, the blank one with CR",
            "data: one\n\rdata: two\n\r",
            vec![message("one"), message("two")],
        ),
        (
            "LF CR LF is two line ends, not three",
            "data: one\n\r\ndata: two\n\n",
            vec![message("one"), message("two")],
        ),
        (
            "CRLF is one line end, so the block goes on",
            "data: one\r\ndata: two\r\n\r\n",
            vec![message("one\ntwo")],
        ),
        (
            "many blank lines",
            "\n\r\n\r\r\n\n\ndata: one\n\n\n\n\r\r\ndata: two\n\n\n",
            vec![message("one"), message("two")],
        ),
        (
            "line ends of Unicode are text",
            "data: a\u{85}b\u{2028}c\u{2029}d\u{b}e\u{c}f\n\n",
            vec![message("a\u{85}b\u{2028}c\u{2029}d\u{b}e\u{c}f")],
        ),
        // Fields
        ("no space after the colon", "data:one\n\n", vec![message("one")]),
        ("one space only is taken off", "data:  one \n\n", vec![message(" one ")]),
        ("a tab is no space", "data:\tone\n\n", vec![message("\tone")]),
        ("a colon in the value", "data: {\"a\": 1}\n\n", vec![message("{\"a\": 1}")]),
        ("several data lines", "data: one\ndata:two\ndata:  three\n\n", vec![message("one\ntwo\n three")]),
        ("data with no colon", "data\n\n", vec![message("")]),
        ("data with a colon and nothing else", "data:\n\n", vec![message("")]),
        ("data with a colon and the space", "data: \n\n", vec![message("")]),
        ("two empty data lines make a newline", "data\ndata:\n\n", vec![message("\n")]),
        ("an empty first data line counts", "data\ndata: one\n\n", vec![message("\none")]),
        ("an empty last data line counts", "data: one\ndata\n\n", vec![message("one\n")]),
        ("a field is known by its whole name", "datax: one\ndat: two\n data: three\nData: four\n\n", vec![]),
        ("a space before the colon belongs to the name", "data : one\n\n", vec![]),
        ("unknown fields", "foo: bar\ndata: one\nfoo\n\n", vec![message("one")]),
        ("a name", "event: message_start\ndata: {}\n\n", vec![named("message_start", "{}")]),
        ("a name after the data", "data: {}\nevent: ping\n\n", vec![named("ping", "{}")]),
        ("the last name counts", "event: one\nevent: two\ndata: x\n\n", vec![named("two", "x")]),
        ("an empty name is the default name", "event: one\nevent:\ndata: x\n\n", vec![message("x")]),
        (
            "a name is for one event",
            "event: one\ndata: x\n\ndata: y\n\n",
            vec![named("one", "x"), message("y")],
        ),
        ("a name alone is no event, and is forgotten", "event: one\n\ndata: x\n\n", vec![message("x")]),
        ("an id alone is no event", "id: 1\n\ndata: x\n\n", vec![message("x")]),
        ("a NUL in an id", "id: a\0b\ndata: x\n\n", vec![message("x")]),
        ("a NUL in data is data", "data: a\0b\n\n", vec![message("a\0b")]),
        // Comments
        ("comments", ": ping\n\n:\n:pong\ndata: one\n: in between\ndata: two\n\n", vec![message("one\ntwo")]),
        ("a comment that looks like data", ":data: one\n\n", vec![]),
        ("a comment before the blank line", "data: one\n: ping\n\n", vec![message("one")]),
        // The start
        ("nothing", "", vec![]),
        ("a byte-order mark", "\u{feff}data: one\n\n", vec![message("one")]),
        ("a byte-order mark before a blank line", "\u{feff}\n\ndata: one\n\n", vec![message("one")]),
        ("a byte-order mark before a comment", "\u{feff}: hi\ndata: one\n\n", vec![message("one")]),
        ("only one byte-order mark is taken off", "\u{feff}\u{feff}data: one\n\n", vec![]),
        (
            "a byte-order mark later is part of a name",
            "data: one\n\n\u{feff}data: two\n\n",
            vec![message("one")],
        ),
        ("a byte-order mark in a value is kept", "data: \u{feff}one\n\n", vec![message("\u{feff}one")]),
        ("only a byte-order mark", "\u{feff}", vec![]),
        // Characters of every length
        (
            "characters of 1 to 4 bytes",
            "data: aé東😀\n\nevent: é東😀\ndata: 😀\n\n",
            vec![message("aé東😀"), named("é東😀", "😀")],
        ),
    ];
    for (name, input, expected) in cases {
        let outcome = decode_every_way(input.as_bytes(), SseLimits::default());
        assert_eq!((outcome.events, outcome.error), (expected.clone(), None), "{name}");
        assert_eq!(reference(input.as_bytes()).0, expected, "the reference parser: {name}");
    }
}

#[test]
fn body_end_emits_event_without_blank_line() {
    let cases: Vec<(&str, &str, Vec<Event>)> = vec![
        ("no blank line", "data: one\n\ndata: two\n", vec![message("one"), trailing("two")]),
        ("no line end", "data: one\n\ndata: two", vec![message("one"), trailing("two")]),
        ("no line end after a finished line", "data: one\ndata: two", vec![trailing("one\ntwo")]),
        ("a CR at the end", "data: one\r", vec![trailing("one")]),
        ("a named one", "event: done\ndata: {}", vec![(Some("done".to_owned()), "{}".to_owned(), true)]),
        ("cut in its data", "data: {\"a\":", vec![trailing("{\"a\":")]),
        ("cut in a field's name", "data: one\nda", vec![trailing("one")]),
        ("cut in its only field's name", "dat", vec![]),
        ("the field's name without a colon is a field", "data", vec![trailing("")]),
        ("a name without data", "event: done\n", vec![]),
        ("a comment", "data: one\n\n: bye", vec![message("one")]),
        ("with a byte-order mark", "\u{feff}data: one", vec![trailing("one")]),
        ("complete", "data: one\n\n", vec![message("one")]),
        ("complete with CR", "data: one\r\r", vec![message("one")]),
    ];
    for (name, input, expected) in cases {
        let outcome = decode_every_way(input.as_bytes(), SseLimits::default());
        assert_eq!((outcome.events, outcome.error), (expected.clone(), None), "{name}");
        assert_eq!(reference(input.as_bytes()).0, expected, "the reference parser: {name}");
    }
}

#[test]
fn invalid_utf8_is_an_error_with_its_position() {
    let cases: Vec<(&str, &[u8], Vec<Event>, u64)> = vec![
        ("in a whole event", b"data: a\xFFb\n\n", vec![], 7),
        ("after an event", b"data: a\n\ndata: \xC3\x28\n\n", vec![message("a")], 15),
        ("in a second data line", b"data: a\ndata: b\xFE\n\n", vec![], 15),
        ("in a field's name", b"da\xFFta: a\n\n", vec![], 2),
        ("in a comment", b": \xFF\n\ndata: a\n\n", vec![], 2),
        ("in an event's name", b"event: \xFF\ndata: a\n\n", vec![], 7),
        ("a character that the line end cuts", b"data: a\xE6\x9D\n\n", vec![], 7),
        ("an encoded surrogate", b"data: \xED\xA0\x80\n\n", vec![], 6),
        ("an overlong form", b"data: \xC0\xAF\n\n", vec![], 6),
        ("after a byte-order mark", b"\xEF\xBB\xBFdata: \xFF\n\n", vec![], 9),
        ("in a line without an end", b"data: a\n\ndata: b\xFFc", vec![message("a")], 16),
        ("after characters of several bytes", "data: é東😀|".as_bytes(), vec![], 15),
    ];
    for (name, input, events, position) in cases {
        let input: Vec<u8> = input.iter().map(|&byte| if byte == b'|' { 0xFF } else { byte }).collect();
        let outcome = decode_every_way(&input, SseLimits::default());
        assert_eq!(
            (outcome.events, outcome.error),
            (events, Some(SseError::InvalidUtf8 { position })),
            "{name}"
        );
    }
}

#[test]
fn body_cut_inside_character_is_truncated_not_malformed() {
    for input in ["data: one\n\ndata: 東".as_bytes(), "data: one\n\ndata: two\ndata: 😀".as_bytes()] {
        for cut in 1..3 {
            let cut = input.split_at(input.len() - cut).0;
            let outcome = decode_every_way(cut, SseLimits::default());
            assert_eq!((outcome.events, outcome.error), (vec![message("one")], None));
        }
    }
}

#[test]
fn comments_are_counted() {
    let outcome = decode_every_way(b": one\n\n:\ndata: x\n: two\n\n: three", SseLimits::default());
    assert_eq!((outcome.events, outcome.comments), (vec![message("x")], 4));
}

#[test]
fn event_is_emitted_at_first_blank_line_byte() {
    for bytes in ["data: one\n\n", "data: one\r\n\r", "data: one\r\r"] {
        let mut decoder = SseDecoder::default();
        let last = bytes.len() - 1;
        decoder.push(&bytes.as_bytes()[..last]);
        assert_eq!(decoder.next_event(), Ok(None));
        decoder.push(&bytes.as_bytes()[last..]);
        assert_eq!(
            decoder.next_event().map(|event| event.map(|event| event.data)),
            Ok(Some("one")),
            "{bytes:?}"
        );
    }
}

#[test]
fn bytes_pushed_before_draining_are_kept() {
    let mut decoder = SseDecoder::default();
    for piece in ["data: one\n\nda", "ta: two", "\r", "\n\r\n", "data: three\n\n"] {
        decoder.push(piece.as_bytes());
    }
    decoder.finish();
    let mut events = Vec::new();
    assert_eq!(take_events(&mut decoder, &mut events), None);
    assert_eq!(events, [message("one"), message("two"), message("three")]);

    // Positions continue.
    let mut decoder = SseDecoder::default();
    decoder.push(b"data: one\n\ndata: two\n\n");
    assert!(decoder.next_event().is_ok_and(|event| event.is_some()));
    decoder.push(b"data: \xFF\n\n");
    let mut events = Vec::new();
    let error = take_events(&mut decoder, &mut events);
    assert_eq!((events, error), (vec![message("two")], Some(SseError::InvalidUtf8 { position: 28 })));
}

#[test]
fn bytes_after_the_end_are_ignored() {
    let mut decoder = SseDecoder::default();
    decoder.finish();
    decoder.push(b"data: one\n\n");
    assert_eq!(decoder.next_event(), Ok(None));
}

#[test]
fn lines_and_events_are_bounded() {
    let limits = SseLimits { line: 16, event: 12 };
    let too_large = |part, position| {
        let limit = if part == "line" { 16 } else { 12 };
        Some(SseError::TooLarge { part, limit, position })
    };
    let cases: Vec<(&str, &str, Vec<Event>, Option<SseError>)> = vec![
        ("a line at the limit", ": 3456789_123456\n\ndata: x\n\n", vec![message("x")], None),
        (
            "a line over the limit",
            "data: x\n\n: 3456789_1234567\n\n",
            vec![message("x")],
            too_large("line", 9),
        ),
        (
            "a line over the limit, without an end",
            "data: x\n\n: 3456789_1234567",
            vec![message("x")],
            too_large("line", 9),
        ),
        ("a whole event over the line's limit", "data:123456789_12\n\n", vec![], too_large("line", 0)),
        ("an event at the limit", "data:12345\ndata:123456\n\n", vec![message("12345\n123456")], None),
        ("an event over the limit", "data:12345\ndata:1234567\n\n", vec![], too_large("event", 11)),
        (
            "empty data lines add up",
            "data\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\ndata\n\n",
            vec![],
            too_large("event", 65),
        ),
        (
            "events do not add up",
            "data:123456789_1\n\ndata:123456789_1\n\n",
            vec![message("123456789_1"), message("123456789_1")],
            None,
        ),
    ];
    for (name, input, events, error) in cases {
        let outcome = decode_every_way(input.as_bytes(), limits);
        assert_eq!((outcome.events, outcome.error), (events, error), "{name}");
    }
    let limits = SseLimits { line: 17, event: 10 };
    let outcome = decode_every_way(b"data:123456789_\n\ndata:123456789_1\n\n", limits);
    let error = SseError::TooLarge { part: "event", limit: 10, position: 17 };
    assert_eq!(
        (outcome.events, outcome.error),
        (vec![message("123456789_")], Some(error)),
        "one line over the event's limit"
    );
}

#[test]
fn errors_say_what_to_do() {
    let error = SseError::TooLarge { part: "line", limit: 16, position: 9 };
    assert_eq!(
        error.to_string(),
        "the line of the event stream at byte 9 is longer than 16 bytes; if that is expected, raise `SseLimits::line`"
    );
}

/// Pushes 100 MiB of the piece. Returns the decoder's error, the bytes pushed by then, and the memory used.
fn flood(piece: &[u8], limits: SseLimits) -> (SseError, usize, allocation_counter::AllocationInfo) {
    let mut outcome = None;
    let memory = allocation_counter::measure(|| {
        let mut decoder = SseDecoder::new(limits);
        decoder.push(b"data: ");
        for count in 1..=(100 << 20) / piece.len() {
            decoder.push(piece);
            match decoder.next_event() {
                Ok(event) => assert_eq!(event, None),
                Err(error) => {
                    outcome = Some((error, count * piece.len()));
                    return;
                }
            }
        }
    });
    let (error, pushed) = outcome.expect("100 MiB were taken in");
    (error, pushed, memory)
}

#[test]
fn line_of_100_mib_stops_at_limit() {
    // Not a power of two, so that doubling would overshoot.
    let limit = 5 << 20;
    let limits = SseLimits { line: limit, ..SseLimits::default() };
    let (error, pushed, memory) = flood(&[b'x'; 64 << 10], limits);
    let part = "line";
    assert_eq!((error, pushed), (SseError::TooLarge { part, limit, position: 0 }, limit));
    // The buffer never exceeds the limit. During its last growth, the old one still exists.
    assert!(memory.bytes_max < limit as u64 * 2, "{memory:?}");
    assert!(memory.bytes_total <= limit as u64 * 3, "bytes are copied a bounded number of times: {memory:?}");
}

#[test]
fn event_of_100_mib_lines_stops_at_limit() {
    let limit = 5 << 20;
    let limits = SseLimits { event: limit, ..SseLimits::default() };
    let line = ["x".repeat((64 << 10) - 7).as_str(), "\ndata: "].concat();
    let (error, pushed, memory) = flood(line.as_bytes(), limits);
    assert!(matches!(error, SseError::TooLarge { part: "event", .. }), "{error}");
    assert!(pushed <= limit + (128 << 10), "{pushed}");
    assert!(memory.bytes_max <= limit as u64 * 2, "{memory:?}");
    assert!(memory.bytes_total <= limit as u64 * 3, "bytes are copied a bounded number of times: {memory:?}");
}

#[test]
fn events_cost_no_allocation() {
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n";
    let named = "event: content_block_delta\ndata: {\"delta\":{\"text\":\"Hello\"}}\n\n";
    for body in [event.repeat(1000), named.repeat(1000), event.replace('\n', "\r\n").repeat(1000)] {
        // With 100 bytes nearly every event is split, with 4096 some are, with the whole body none is.
        for read in [100, 4096, body.len()] {
            let mut decoder = SseDecoder::default();
            let mut at = 0;
            let mut pass = |bytes: usize| {
                while at < bytes {
                    let end = bytes.min(at + read);
                    decoder.push(&body.as_bytes()[at..end]);
                    at = end;
                    while decoder.next_event().is_ok_and(|event| event.is_some()) {}
                }
                decoder.events()
            };
            // The first events size the buffers.
            assert!(pass(body.len() / 2) > 0);
            let memory = allocation_counter::measure(|| assert_eq!(pass(body.len()), 1000));
            assert_eq!(memory.count_total, 0, "reads of {read}");
        }
    }
}

/// The standard and our departures from it, applied to the whole input: the events, and the position of invalid
/// UTF-8.
fn reference(bytes: &[u8]) -> (Vec<Event>, Option<u64>) {
    let (text, cut) = match str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            (str::from_utf8(&bytes[..error.valid_up_to()]).expect("valid up to there"), Some(error))
        }
    };
    let unmarked = text.strip_prefix('\u{feff}').unwrap_or(text);
    let unified = unmarked.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = unified.split('\n').collect();
    let last = lines.pop().filter(|_| cut.is_none()).unwrap_or_default();

    let mut events = Vec::new();
    let mut data: Vec<&str> = Vec::new();
    let mut name = "";
    for (line, trailing) in lines.into_iter().map(|line| (line, false)).chain([(last, true)]) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data.push(value),
            "event" => name = value,
            _ => {}
        }
        if (line.is_empty() || trailing) && cut.is_none_or(|_| !trailing) {
            if !data.is_empty() {
                events.push(((!name.is_empty()).then(|| name.to_owned()), data.join("\n"), trailing));
            }
            data.clear();
            name = "";
        }
    }
    // A character cut off by the end of the body is no error.
    let invalid = cut.filter(|error| error.error_len().is_some());
    (events, invalid.map(|error| error.valid_up_to() as u64))
}

fn lines_of_a_stream() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        6 => "data:? ?[a-z:é東😀\u{feff}]{0,6}",
        2 => "event: ?[a-zé]{0,3}",
        1 => "id: ?[0-9\0]{0,2}",
        1 => "retry: ?[0-9x]{0,3}",
        1 => ":[ a-z]{0,4}",
        1 => "[a-z: \u{feff}]{0,4}",
        3 => Just(String::new()),
    ];
    let end = select(vec!["\n", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\r\r", "\n\r\n", ""]);
    vec((line, end), 0..20).prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

/// Returns bytes that matter to the decoder, in any order, some of which are not UTF-8.
fn bytes_of_trouble() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        &b"data: "[..],
        b"data:",
        b"data",
        b"event:",
        b"a",
        b":",
        b" ",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\xEF\xBB\xBF",
        b"\xEF",
        b"\xBB",
        b"\xE6\x9D\xB1",
        b"\xE6\x9D",
        b"\xF0\x9F\x98\x80",
        b"\xFF",
        b"\0",
    ]);
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut pieces = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[start..end]);
        start = end;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    #[test]
    fn law_s5_any_split_gives_the_same_events(text in lines_of_a_stream(), cuts in vec(any::<Index>(), 0..12)) {
        let whole = decode_whole(text.as_bytes());
        prop_assert_eq!((&whole.events, &whole.error), (&reference(text.as_bytes()).0, &None));
        prop_assert_eq!(decode(pieces(text.as_bytes(), &cuts), SseLimits::default()), whole);
    }

    #[test]
    fn law_s5_any_split_gives_same_outcome(bytes in bytes_of_trouble(), cuts in vec(any::<Index>(), 0..12)) {
        let whole = decode_whole(&bytes);
        let (events, invalid) = reference(&bytes);
        let error = invalid.map(|position| SseError::InvalidUtf8 { position });
        prop_assert_eq!((&whole.events, &whole.error), (&events, &error));
        prop_assert_eq!(decode(pieces(&bytes, &cuts), SseLimits::default()), whole);
    }

    #[test]
    fn law_s5_any_split_meets_the_same_bounds(
        text in lines_of_a_stream(),
        cuts in vec(any::<Index>(), 0..12),
        line in 0..16_usize,
        event in 0..16_usize,
    ) {
        let limits = SseLimits { line, event };
        let whole = decode([text.as_bytes()], limits);
        prop_assert_eq!(decode(pieces(text.as_bytes(), &cuts), limits), whole.clone());
        prop_assert!(whole.events.iter().all(|(_, data, _)| data.len() <= event));
    }
}

#[test]
fn an_event_knows_where_its_data_starts() {
    let input = b"data: one\n\n: comment\nevent: x\ndata: two\ndata: three\n\nid: 1\n\ndata: four";
    let expected = [0, 30, 60];
    for size in [1, 2, 3, 7, 11, input.len()] {
        let mut decoder = SseDecoder::default();
        let mut positions = Vec::new();
        for piece in input.chunks(size) {
            decoder.push(piece);
            while let Ok(Some(event)) = decoder.next_event() {
                positions.push(event.position);
            }
        }
        decoder.finish();
        while let Ok(Some(event)) = decoder.next_event() {
            positions.push(event.position);
        }
        assert_eq!(positions, expected, "in pieces of {size}");
    }
}
