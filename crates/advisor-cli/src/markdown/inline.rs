//! The marks inside a line: emphasis, code, links.

use super::line::{Extent, run};
use crate::look::Attribute;

/// The longest part of a line that is held back for its end, in characters. A mark whose end comes later is shown as
/// it was written.
const MOST_HELD: usize = 256;

/// The next part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// Its bytes in the source.
    pub(super) length: usize,
    pub(super) shown: Shown<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown<'a> {
    /// Text without marks.
    Text(&'a str),
    Code(&'a str),
    /// Text with these attributes, which may contain further marks.
    Emphasis(&'static [Attribute], &'a str),
    Link {
        text: &'a str,
        url: &'a str,
    },
}

/// Returns the next part of a line that is not empty; `None` if more of the line is needed to decide. `before` is the
/// character in front of it.
pub(super) fn next(line: &str, extent: Extent, before: Option<char>) -> Option<Part<'_>> {
    let (window, extent) = match line.char_indices().nth(MOST_HELD) {
        Some((end, _)) => (line.get(..end).unwrap_or(line), Extent::Whole),
        None => (line, extent),
    };
    let first = window.chars().next()?;
    let marked = match first {
        '\\' => escaped(window),
        '`' => code(window, extent),
        '*' | '_' => emphasis(window, first, before, extent),
        '~' => struck(window, extent),
        '[' => link(window, "[", extent),
        '!' => link(window, "![", extent),
        _ => return Some(text(line)),
    };
    match (marked, extent) {
        (Marked::Part(part), _) => Some(part),
        (Marked::Unfinished, Extent::Begun) => None,
        (Marked::Literal(length), _) => Some(literal(line, length)),
        (Marked::Unfinished, Extent::Whole) => Some(literal(line, run(window, first).0)),
    }
}

/// A mark, as far as the line is known.
enum Marked<'a> {
    Part(Part<'a>),
    /// Its end is not known yet.
    Unfinished,
    /// As many bytes are no mark.
    Literal(usize),
}

fn literal(line: &str, length: usize) -> Part<'_> {
    Part { length, shown: Shown::Text(line.get(..length).unwrap_or(line)) }
}

/// Returns the text up to the next character that may be a mark.
fn text(line: &str) -> Part<'_> {
    let length = line.find(['\\', '`', '*', '_', '~', '[', '!']).unwrap_or(line.len());
    literal(line, length)
}

fn escaped(line: &str) -> Marked<'_> {
    match line.chars().nth(1) {
        None => Marked::Unfinished,
        Some(char) if char.is_ascii_punctuation() => {
            Marked::Part(Part { length: 2, shown: Shown::Text(line.get(1..2).unwrap_or_default()) })
        }
        Some(_) => Marked::Literal(1),
    }
}

fn code(line: &str, extent: Extent) -> Marked<'_> {
    let (count, inside) = run(line, '`');
    let Some(end) = runs(inside, '`', extent).find(|end| end.count == count) else {
        return Marked::Unfinished;
    };
    // Spaces separate the marks from code that begins or ends with one.
    let code = end.before.strip_prefix(' ').and_then(|code| code.strip_suffix(' ')).unwrap_or(end.before);
    Marked::Part(Part { length: count + end.before.len() + count, shown: Shown::Code(code) })
}

fn struck(line: &str, extent: Extent) -> Marked<'_> {
    let (count, inside) = run(line, '~');
    match inside.chars().next() {
        None => return Marked::Unfinished,
        Some(char) if count == 2 && !char.is_whitespace() => {}
        Some(_) => return Marked::Literal(count),
    }
    match runs(inside, '~', extent).find(|end| end.count == count) {
        Some(end) => emphasised(&[Attribute::Struck], count, end.before),
        None => Marked::Unfinished,
    }
}

fn emphasis(line: &str, mark: char, before: Option<char>, extent: Extent) -> Marked<'_> {
    let (count, inside) = run(line, mark);
    let attributes: &[Attribute] = match count {
        1 => &[Attribute::Italic],
        2 => &[Attribute::Bold],
        3 => &[Attribute::Bold, Attribute::Italic],
        _ => return Marked::Literal(count),
    };
    // A product or a name with underscores is no emphasis.
    let in_word = before.is_some_and(|char| match mark {
        '_' => char.is_alphanumeric(),
        _ => count == 1 && char.is_ascii_alphanumeric(),
    });
    match inside.chars().next() {
        _ if in_word => return Marked::Literal(count),
        None => return Marked::Unfinished,
        Some(char) if char.is_whitespace() => return Marked::Literal(count),
        Some(_) => {}
    }
    let closes = |end: &Run<'_>| {
        let ends_word = mark != '_' || !end.after.is_some_and(char::is_alphanumeric);
        (end.count == count || end.count == 3) && ends_word && !end.before.ends_with(char::is_whitespace)
    };
    match runs(inside, mark, extent).find(closes) {
        // The end of another emphasis inside belongs to the text.
        Some(end) => {
            let text = inside.get(..end.before.len() + (end.count - count)).unwrap_or(end.before);
            emphasised(attributes, count, text)
        }
        None => Marked::Unfinished,
    }
}

fn emphasised<'a>(attributes: &'static [Attribute], count: usize, text: &'a str) -> Marked<'a> {
    Marked::Part(Part { length: count + text.len() + count, shown: Shown::Emphasis(attributes, text) })
}

/// Returns a link or an image, which begins with `mark`.
fn link<'a>(line: &'a str, mark: &str, extent: Extent) -> Marked<'a> {
    let Some(inside) = line.strip_prefix(mark) else {
        return if mark.starts_with(line) { Marked::Unfinished } else { Marked::Literal(1) };
    };
    let Some((text, behind)) = inside.split_once(']') else { return Marked::Unfinished };
    let Some(target) = behind.strip_prefix('(') else {
        return if behind.is_empty() && extent == Extent::Begun {
            Marked::Unfinished
        } else {
            Marked::Literal(mark.len())
        };
    };
    let Some((url, _)) = target.split_once(')') else { return Marked::Unfinished };
    let length = mark.len() + text.len() + "](".len() + url.len() + ")".len();
    // A title may follow the address.
    let url = url.split_once(' ').map_or(url, |(url, _)| url);
    Marked::Part(Part { length, shown: Shown::Link { text, url } })
}

/// Several of one character in a row.
struct Run<'a> {
    before: &'a str,
    count: usize,
    after: Option<char>,
}

/// Returns the runs of a character. One at the end of a line that is not whole may go on, and is left out.
fn runs(text: &str, mark: char, extent: Extent) -> impl Iterator<Item = Run<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(mark)?;
        let (before, rest) = text.split_at_checked(at)?;
        let (count, behind) = run(rest, mark);
        from = text.len() - behind.len();
        let after = behind.chars().next();
        (after.is_some() || extent == Extent::Whole).then_some(Run { before, count, after })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITALIC: &[Attribute] = &[Attribute::Italic];
    const BOLD: &[Attribute] = &[Attribute::Bold];

    fn parts(line: &str) -> Vec<Shown<'_>> {
        let (mut rest, mut before, mut parts) = (line, None, Vec::new());
        while let Some(part) = next(rest, Extent::Whole, before) {
            let (source, behind) = rest.split_at(part.length);
            (before, rest) = (source.chars().next_back(), behind);
            parts.push(part.shown);
        }
        parts
    }

    #[test]
    fn marks_are_found_in_a_line() {
        use Shown::{Code, Emphasis, Link, Text};
        for (line, expected) in [
            ("plain", &[Text("plain")][..]),
            ("a **b** c", &[Text("a "), Emphasis(BOLD, "b"), Text(" c")]),
            ("*a* _b_", &[Emphasis(ITALIC, "a"), Text(" "), Emphasis(ITALIC, "b")]),
            ("***a***", &[Emphasis(&[Attribute::Bold, Attribute::Italic], "a")]),
            ("**a *b***", &[Emphasis(BOLD, "a *b*")]),
            ("*a **b** c*", &[Emphasis(ITALIC, "a **b** c")]),
            ("这是**重点**内容", &[Text("这是"), Emphasis(BOLD, "重点"), Text("内容")]),
            ("2 * 3 * 4", &[Text("2 "), Text("*"), Text(" 3 "), Text("*"), Text(" 4")]),
            ("2*3*4", &[Text("2"), Text("*"), Text("3"), Text("*"), Text("4")]),
            ("a_b_c", &[Text("a"), Text("_"), Text("b"), Text("_"), Text("c")]),
            ("`a*b*`", &[Code("a*b*")]),
            ("`` a`b ``", &[Code("a`b")]),
            ("~~a~~", &[Emphasis(&[Attribute::Struck], "a")]),
            (r"\*a\* \n", &[Text("*"), Text("a"), Text("*"), Text(" "), Text("\\"), Text("n")]),
            ("[a](https://b)", &[Link { text: "a", url: "https://b" }]),
            ("![a](b \"c\")!", &[Link { text: "a", url: "b" }, Text("!")]),
            ("[1] and [x", &[Text("["), Text("1] and "), Text("["), Text("x")]),
            ("*args", &[Text("*"), Text("args")]),
            ("`open", &[Text("`"), Text("open")]),
            ("****", &[Text("****")]),
        ] {
            assert_eq!(parts(line), expected, "{line}");
        }
    }

    #[test]
    fn a_mark_waits_for_its_end_within_a_bound() {
        for (begun, decided) in [
            ("a", true),
            ("*", false),
            ("* ", true),
            ("**bold", false),
            ("**bold*", false),
            ("**bold**", false),
            ("**bold** ", true),
            ("`code", false),
            ("[te", false),
            ("[te]", false),
            ("[te] ", true),
            ("[te](a", false),
            ("[te](a)", true),
            ("!", false),
            ("!a", true),
        ] {
            assert_eq!(next(begun, Extent::Begun, None).is_some(), decided, "{begun}");
        }
        let long = format!("**{}", "ä".repeat(MOST_HELD));
        let part = next(&long, Extent::Begun, None).unwrap();
        assert_eq!(part, Part { length: 2, shown: Shown::Text("**") });
        let ended_too_late = format!("{long}**");
        assert_eq!(next(&ended_too_late, Extent::Whole, None), Some(part));
    }
}
