//! JSON paths to one value, such as `$.list[0].name` (RFC 9535).

/// A step from a value to one inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Key(String),
    Index(usize),
}

/// Returns the steps of a path; `None` if the path does not name exactly one value.
pub(super) fn parse(path: &str) -> Option<Vec<Segment>> {
    let mut rest = path.strip_prefix('$')?;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (segment, behind) = match rest.strip_prefix('.') {
            Some(name) => key(name)?,
            None => in_brackets(rest.strip_prefix('[')?)?,
        };
        segments.push(segment);
        rest = behind;
    }
    Some(segments)
}

/// Reads a key after a dot.
fn key(path: &str) -> Option<(Segment, &str)> {
    let (name, rest) = path.split_at_checked(path.find(['.', '[']).unwrap_or(path.len()))?;
    (!name.is_empty() && name != "*").then(|| (Segment::Key(name.to_owned()), rest))
}

/// Reads an index or a quoted key, and the bracket behind it.
fn in_brackets(path: &str) -> Option<(Segment, &str)> {
    let quote = path.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let Some(quote) = quote else {
        let (index, rest) = path.split_once(']')?;
        return Some((Segment::Index(index.parse().ok()?), rest));
    };
    let mut key = String::new();
    let mut letters = path.get(1..)?.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => key.push(letters.next()?.1),
            letter if letter == quote => {
                let rest = path.get(1 + at + 1..)?.strip_prefix(']')?;
                return Some((Segment::Key(key), rest));
            }
            letter => key.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_to_one_value_are_read_and_others_refused() {
        let key = |key: &str| Segment::Key(key.to_owned());
        let cases = [
            ("$", Some(vec![])),
            ("$.a", Some(vec![key("a")])),
            (
                "$.a.b[0].c d[12]",
                Some(vec![key("a"), key("b"), Segment::Index(0), key("c d"), Segment::Index(12)]),
            ),
            (r#"$['a.b']["c[0]"]"#, Some(vec![key("a.b"), key("c[0]")])),
            (r"$['it\'s'].é", Some(vec![key("it's"), key("é")])),
            ("", None),
            ("a", None),
            ("$.", None),
            ("$..a", None),
            ("$.*", None),
            ("$[*]", None),
            ("$[-1]", None),
            ("$[0", None),
            ("$['a'", None),
            ("$['a", None),
            ("$a", None),
        ];
        for (path, expected) in cases {
            assert_eq!(parse(path), expected, "{path}");
        }
    }
}
