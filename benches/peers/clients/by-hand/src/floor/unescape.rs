//! `unescape`: decodes a JSON string up to its closing quote.

/// Appends the content of a JSON string, up to its closing quote. Returns `None` if the string is invalid.
pub(crate) fn unescape(mut json: &[u8], text: &mut String) -> Option<()> {
    loop {
        let end = memchr::memchr2(b'"', b'\\', json)?;
        text.push_str(str::from_utf8(json.get(..end)?).ok()?);
        if json[end] == b'"' {
            return Some(());
        }
        let (letter, rest) = json.get(end + 1..)?.split_first()?;
        json = rest;
        text.push(match letter {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => by_number(&mut json)?,
            other => char::from(*other),
        });
    }
}

/// A character by its number, or by two where it takes two.
fn by_number(json: &mut &[u8]) -> Option<char> {
    let first = unit(json)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    *json = json.strip_prefix(b"\\u")?;
    let second = unit(json)?;
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second.checked_sub(0xdc00)?)
}

fn unit(json: &mut &[u8]) -> Option<u32> {
    let (digits, rest) = json.split_at_checked(4)?;
    *json = rest;
    u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn it_reads_what_serde_reads() {
        for json in [r#""plain""#, r#"" \"On\n\t\\ \/ \u2013""#, r#""naïve \ud83d\ude00 東京""#] {
            let mut text = String::new();
            assert_eq!(unescape(&json.as_bytes()[1..], &mut text), Some(()), "{json}");
            assert_eq!(serde_json::from_str::<String>(json).expect("JSON"), text);
        }
        for json in ["unfinished", r"\ud83d alone", r"\u12"] {
            assert_eq!(unescape(json.as_bytes(), &mut String::new()), None, "{json}");
        }
    }
}
