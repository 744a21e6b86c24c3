//! Tests of `fast_path::scan`.

use super::*;

/// Returns the expected result of `string`: the JSON between the quotes and its text, as a parser reads them.
fn parsed(bytes: &[u8]) -> Option<(&[u8], String)> {
    let quoted = [b"\"", bytes].concat();
    let mut values = serde_json::Deserializer::from_slice(&quoted).into_iter::<String>();
    let said = values.next()?.ok()?;
    Some((bytes.get(..values.byte_offset() - "\"\"".len())?, said))
}

fn scanned(bytes: &[u8]) -> Option<(&[u8], String)> {
    let string = string(bytes)?;
    let text = str::from_utf8(string.bytes).ok()?;
    assert!(!string.ascii || text.is_ascii(), "{text:?}");
    let mut said = text.to_owned();
    if string.escaped {
        unescape(text, &mut said);
    }
    Some((string.bytes, said))
}

#[test]
fn law_s5_scanned_string_equals_parsed_string_for_any_bytes() {
    let pieces: Vec<Vec<u8>> = (0..=255)
        .map(|byte| vec![byte])
        .chain(
            ["ü", "😀", r"\n", r"\u00fc", r"\x", r"\ud800", "\"\"", "\"\\", "!#"].map(|piece| piece.into()),
        )
        .collect();
    for before in 0..18 {
        for behind in 0..18 {
            for piece in &pieces {
                let bytes =
                    [&vec![b'x'; before][..], piece, &vec![b' '; behind], b"\"},\"next\":\"\x01\""].concat();
                assert_eq!(scanned(&bytes), parsed(&bytes), "{before} bytes, {piece:?}, {behind} bytes");
                let cut = bytes.get(..before + piece.len() + behind).unwrap();
                assert_eq!(scanned(cut), parsed(cut), "{before} bytes, {piece:?}, {behind} bytes, the end");
            }
        }
    }
}

#[test]
fn law_s5_scanned_number_is_json_integer() {
    for digits in ["0", "7", "10", "123", "1234567", "12345678", "123456789012345", "12345678901234567890"] {
        for behind in (0..=255).filter(|byte: &u8| !byte.is_ascii_digit()) {
            for more in [&b""[..], b"89", b"}]}\n\ndata: "] {
                let bytes = [digits.as_bytes(), &[behind], more].concat();
                assert_eq!(number(&bytes), Some(digits.as_bytes()), "{bytes:?}");
                assert_eq!(count(&bytes), number(&bytes).filter(|digits| digits.len() <= 15), "{bytes:?}");
            }
        }
    }
    for other in ["", ",", "-1,", "00,", "01234567", "0123,", "012345678,", "/0,", ":0,", " 1,"] {
        assert!(number(other.as_bytes()).is_none(), "{other:?}");
    }
    for cut in ["7", "1234567", "12345678"] {
        assert!(number(cut.as_bytes()).is_none(), "{cut:?} may go on");
    }
}
