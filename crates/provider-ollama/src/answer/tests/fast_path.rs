//! Lines that match a template give the same deltas as when they are parsed.

use advisor_testkit::split;

use super::*;

/// The deltas of a body and its error, and the sum of its token counts, which may be emitted less often.
type Said = (Vec<Delta>, Usage, Option<String>);

fn said_by(mut decoder: Decoder, pieces: &[&[u8]]) -> Said {
    let (mut deltas, mut counted, mut failed) = (Vec::new(), Usage::default(), None);
    for piece in pieces.iter().map(|piece| Some(Bytes::copy_from_slice(piece))).chain([None]) {
        match piece {
            Some(piece) => decoder.push(piece),
            None => decoder.finish(),
        }
        while let Some(delta) = decoder.next() {
            match delta {
                Ok(Delta { kind: DeltaKind::Usage(usage), .. }) => counted.merge(&usage),
                Ok(delta) => deltas.push(delta),
                Err(error) => failed = failed.or(Some(format!("{error:?}"))),
            }
        }
    }
    (deltas, counted, failed)
}

/// Compares with the parser: whole, in reads, byte by byte and at random splits.
fn assert_said_as_parsed(body: &str) {
    let parsed = said_by(decoder().without_fast_path(), &[body.as_bytes()]);
    for size in [body.len().max(1), 700, 1] {
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
        assert_eq!(said_by(decoder(), &pieces), parsed, "in pieces of {size}: {body}");
    }
    for split in split::random_splits(body.as_bytes(), 20_261_122, 10) {
        assert_eq!(said_by(decoder(), &split.pieces), parsed, "seed {}: {body}", split.seed);
    }
}

/// Checks whether most lines match a template after the first ones.
fn has_template(body: &str) -> bool {
    let mut decoder = decoder();
    decoder.push(Bytes::copy_from_slice(body.as_bytes()));
    while decoder.next().is_some() {}
    !format!("{decoder:?}").contains("FastPath { templates: 0")
}

/// Returns twenty lines with the next text in place of `WORD`, and its number in place of `NUMBER`.
fn lines(form: &str) -> String {
    let words = [" the", "ïve", "😀", "\\n", "\\\"q\\\"", ",", " \\u00e9"];
    let word =
        |at: usize| form.replace("WORD", words[at % words.len()]).replace("NUMBER", &format!("{}", at + 10));
    (0..20).map(|at| word(at) + "\n").collect()
}

#[test]
fn law_s5_lines_give_same_deltas_on_fast_path() {
    let forms = [
        r#"{"model":"m","created_at":"2026-01-02T03:04:NUMBERZ","message":{"role":"assistant","content":"WORD"},"done":false}"#,
        r#"{"model":"m","created_at":"2026-01-02T03:04:NUMBERZ","message":{"role":"assistant","content":"","thinking":"WORD"},"done":false}"#,
        r#"{"model":"m","message":{"content":"WORD"},"done":false,"prompt_eval_count":7,"eval_count":NUMBER}"#,
        r#"{"model":"m","message":{"content":"WORD","logprobs":[NUMBER]},"done":false,"total_duration":NUMBER}"#,
        // Not to be learned from: two texts, calls, an end, an error.
        r#"{"model":"m","message":{"content":"WORD","thinking":"WORD"},"done":false}"#,
        r#"{"model":"m","message":{"content":"WORD","tool_calls":[{"function":{"name":"f","arguments":{"a":"WORD"}}}]},"done":false}"#,
        r#"{"model":"m","message":{"content":"","tool_calls":[{"function":{"name":"WORD","arguments":{}}}]},"done":false}"#,
        r#"{"model":"mNUMBER","message":{"content":"WORD"},"done":false}"#,
        r#"{"model":"m","message":{"content":"WORD"},"done":true,"done_reason":"WORD"}"#,
        r#"{"model":"m","message":{"content":"WORD"},"error":"WORD"}"#,
    ];
    for (at, form) in forms.into_iter().enumerate() {
        let body = lines(form);
        assert_said_as_parsed(&(body.clone() + STOP));
        // Lines of other forms between them.
        let others: String =
            forms.map(lines).iter().map(|lines| lines.lines().next().unwrap().to_owned() + "\n").collect();
        assert_said_as_parsed(&[&body, &others, &body, STOP].concat());
        assert!(at > 3 || has_template(&body), "{form}");
    }
}

#[test]
fn malformed_line_is_found_on_fast_path() {
    let body = lines(r#"{"model":"m","message":{"content":"WORD"},"done":false}"#);
    for bad in [
        r#"{"model":"m","message":{"content":"a" },"done":false}"#,
        r#"{"model":"m","message":{"content":"\ud800"},"done":false}"#,
        r#"{"model":"m","message":{"content":"a"b"},"done":false}"#,
        r#"{"model":"m","message":{"content":"a\x"},"done":false}"#,
        r#"{"model":"m","message":{"content":"a"},"done":false"#,
        r#"{"model":"m","message":{"content":7},"done":false}"#,
        r#"{"model":"m","message":{"content":"a"},"done":FALSE}"#,
    ] {
        assert_said_as_parsed(&[&body, bad, "\n", STOP].concat());
    }
}
