//! The kind of a line, decided as soon as its beginning allows.

/// How much of a line is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Its beginning: more may follow.
    Begun,
    Whole,
}

/// The beginning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    /// The number of quotes around it.
    pub(super) quotes: usize,
    /// The spaces in front of it.
    pub(super) indent: usize,
    pub(super) kind: Kind,
    /// The bytes of the beginning. For some kinds it is the whole line.
    pub(super) length: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// A heading, by its level from 1 to 6.
    Heading(usize),
    /// An item of a list, with the mark to show.
    Item(String),
    /// The line that begins a block of code.
    Fence(Fence),
    /// A line between two sections.
    Rule,
    /// A row of a table.
    Row,
}

/// The mark that begins and ends a block of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    count: usize,
    pub(super) quotes: usize,
}

/// A line inside a block of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeLine {
    /// Ends the block.
    End,
    /// Its code begins after this many bytes.
    Code(usize),
}

/// The most quotes around a line. Further ones are text.
const MOST_QUOTES: usize = 16;
/// The most bytes of a line that is held back as a whole. A longer one is text.
const LONGEST_HELD: usize = 8 << 10;

/// Returns the beginning of a line without its line break; `None` if more of the line is needed to decide.
pub(super) fn start(line: &str, extent: Extent) -> Option<Start> {
    let (quotes, rest) = unquoted(line, MOST_QUOTES);
    let text = rest.trim_start_matches([' ', '\t']);
    let indent = rest.len() - text.len();
    let is_open = text.is_empty() && extent == Extent::Begun;
    let decided = if is_open { None } else { kind(text, extent, quotes) };
    let (kind, length) = match decided {
        None | Some((Kind::Row | Kind::Fence(_) | Kind::Rule, _)) if line.len() > LONGEST_HELD => {
            (Kind::Text, 0)
        }
        decided => decided?,
    };
    Some(Start { quotes, indent, kind, length: line.len() - text.len() + length })
}

/// Returns the beginning of a line inside a block of code; `None` if more of the line is needed to decide.
pub(super) fn code_line(line: &str, fence: &Fence, extent: Extent) -> Option<CodeLine> {
    let (quotes, rest) = unquoted(line, fence.quotes);
    let mark = rest.trim_start_matches(' ').trim_end_matches([' ', '\r']);
    let (count, behind) = run(mark, fence.mark);
    let is_end = count >= fence.count && behind.is_empty();
    match extent {
        Extent::Whole if is_end => Some(CodeLine::End),
        Extent::Begun if behind.is_empty() || (quotes < fence.quotes && rest.trim().is_empty()) => None,
        _ => Some(CodeLine::Code(line.len() - rest.len())),
    }
}

/// Returns the number of quotes in front, and the rest.
fn unquoted(line: &str, most: usize) -> (usize, &str) {
    let (mut quotes, mut rest) = (0, line);
    while quotes < most
        && let Some(quoted) = rest.trim_start_matches(' ').strip_prefix('>')
    {
        rest = quoted.strip_prefix(' ').unwrap_or(quoted);
        quotes += 1;
    }
    (quotes, rest)
}

/// Returns the kind of a text and the length of its mark.
fn kind(text: &str, extent: Extent, quotes: usize) -> Option<(Kind, usize)> {
    let Some(first) = text.chars().next() else { return Some((Kind::Text, 0)) };
    let (count, behind) = run(text, first);
    let is_open = behind.is_empty() && extent == Extent::Begun;
    match first {
        '#' | '-' | '*' | '+' | '_' | '`' | '~' if is_open => None,
        '#' if count <= 6 && (behind.is_empty() || behind.starts_with(' ')) => {
            before_content(Kind::Heading(count), text, behind, extent)
        }
        '`' | '~' if count >= 3 => match extent {
            Extent::Begun => None,
            Extent::Whole if first == '`' && behind.contains('`') => Some((Kind::Text, 0)),
            Extent::Whole => Some((Kind::Fence(Fence { mark: first, count, quotes }), text.len())),
        },
        '|' => (extent == Extent::Whole).then_some((Kind::Row, text.len())),
        '-' | '*' | '_' if count >= 3 && behind.trim_end().is_empty() => {
            (extent == Extent::Whole).then_some((Kind::Rule, text.len()))
        }
        '-' | '*' | '+' if count == 1 && (behind.is_empty() || behind.starts_with(' ')) => {
            before_content(Kind::Item("• ".to_owned()), text, behind, extent)
        }
        '0'..='9' => numbered(text, extent),
        _ => Some((Kind::Text, 0)),
    }
}

fn numbered(text: &str, extent: Extent) -> Option<(Kind, usize)> {
    const MOST_DIGITS: usize = 9;
    let behind = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let digits = text.len() - behind.len();
    if digits > MOST_DIGITS {
        return Some((Kind::Text, 0));
    }
    let Some(after) = behind.strip_prefix(['.', ')']) else {
        return (extent == Extent::Whole || !behind.is_empty()).then_some((Kind::Text, 0));
    };
    if after.is_empty() && extent == Extent::Begun {
        return None;
    }
    let mark = text.get(..=digits).unwrap_or(text);
    if after.is_empty() || after.starts_with(' ') {
        before_content(Kind::Item(format!("{mark} ")), text, after, extent)
    } else {
        Some((Kind::Text, 0))
    }
}

/// Returns a kind whose content follows after some spaces.
fn before_content(kind: Kind, text: &str, behind: &str, extent: Extent) -> Option<(Kind, usize)> {
    let content = behind.trim_start_matches(' ');
    match (content.is_empty(), extent) {
        (false, _) => Some((kind, text.len() - content.len())),
        (true, Extent::Begun) => None,
        // A mark alone is shown.
        (true, Extent::Whole) => Some((Kind::Text, 0)),
    }
}

/// Returns how often a text repeats this character at its beginning, and the rest.
pub(super) fn run(text: &str, char: char) -> (usize, &str) {
    let rest = text.trim_start_matches(char);
    ((text.len() - rest.len()) / char.len_utf8(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(line: &str) -> (usize, usize, Kind, &str) {
        let start = start(line, Extent::Whole).unwrap();
        (start.quotes, start.indent, start.kind, &line[start.length..])
    }

    fn item(mark: &str) -> Kind {
        Kind::Item(mark.into())
    }

    #[test]
    fn a_line_is_what_its_beginning_says() {
        for (line, quotes, indent, kind, rest) in [
            ("", 0, 0, Kind::Text, ""),
            ("  text", 0, 2, Kind::Text, "text"),
            ("# One", 0, 0, Kind::Heading(1), "One"),
            ("###### Six", 0, 0, Kind::Heading(6), "Six"),
            ("####### Seven", 0, 0, Kind::Text, "####### Seven"),
            ("#hashtag", 0, 0, Kind::Text, "#hashtag"),
            ("- a", 0, 0, item("• "), "a"),
            ("  *   a", 0, 2, item("• "), "a"),
            ("-a", 0, 0, Kind::Text, "-a"),
            ("**bold**", 0, 0, Kind::Text, "**bold**"),
            ("12. a", 0, 0, item("12. "), "a"),
            ("3) a", 0, 0, item("3) "), "a"),
            ("3.5 is", 0, 0, Kind::Text, "3.5 is"),
            ("1234567890. a", 0, 0, Kind::Text, "1234567890. a"),
            ("2024", 0, 0, Kind::Text, "2024"),
            ("- ", 0, 0, Kind::Text, "- "),
            ("##", 0, 0, Kind::Text, "##"),
            ("---", 0, 0, Kind::Rule, ""),
            ("*** ", 0, 0, Kind::Rule, ""),
            ("> > - a", 2, 0, item("• "), "a"),
            (">a", 1, 0, Kind::Text, "a"),
            ("| a | b |", 0, 0, Kind::Row, ""),
            ("```one```", 0, 0, Kind::Text, "```one```"),
        ] {
            assert_eq!(whole(line), (quotes, indent, kind, rest), "{line}");
        }
        let fence = Fence { mark: '~', count: 4, quotes: 1 };
        assert_eq!(whole("> ~~~~ rust"), (1, 0, Kind::Fence(fence), ""));
    }

    #[test]
    fn a_decision_waits_for_as_little_as_possible() {
        for (begun, decided) in [
            ("", false),
            (" ", false),
            ("W", true),
            ("#", false),
            ("# ", false),
            ("# a", true),
            ("#a", true),
            ("-", false),
            ("- ", false),
            ("- a", true),
            ("--", false),
            ("--a", true),
            ("---", false),
            ("1", false),
            ("1a", true),
            ("1.", false),
            ("1. a", true),
            ("*", false),
            ("**", false),
            ("**b", true),
            ("`", false),
            ("`a", true),
            ("```r", false),
            ("|", false),
            (">", false),
            ("> a", true),
        ] {
            assert_eq!(start(begun, Extent::Begun).is_some(), decided, "{begun:?}");
        }
    }

    #[test]
    fn no_beginning_contradicts_the_whole_line() {
        for line in ["# One", "- a", "12. a", "> > 3) b", "**a** b", "--a", "text", "_a_", "#a", "1a", "+ a"]
        {
            let decided = whole(line);
            for (at, _) in line.char_indices() {
                if let Some(begun) = start(&line[..at], Extent::Begun) {
                    assert_eq!((begun.quotes, begun.kind), (decided.0, decided.2.clone()), "{line} at {at}");
                }
            }
        }
    }

    #[test]
    fn law_r1_long_lines_are_text() {
        for first in ["|", "---", "```", "   ", "> |"] {
            let last = first.chars().next_back().unwrap();
            let long = first.to_owned() + &last.to_string().repeat(LONGEST_HELD);
            for extent in [Extent::Begun, Extent::Whole] {
                assert_eq!(start(&long, extent).map(|start| start.kind), Some(Kind::Text), "{first}");
            }
        }
        assert_eq!(whole(&">".repeat(100)).0, MOST_QUOTES);
    }

    #[test]
    fn code_ends_only_with_its_own_fence() {
        let fence = Fence { mark: '`', count: 3, quotes: 0 };
        for (line, extent, expected) in [
            ("```", Extent::Whole, Some(CodeLine::End)),
            ("  ````  ", Extent::Whole, Some(CodeLine::End)),
            ("```", Extent::Begun, None),
            ("``", Extent::Begun, None),
            ("``", Extent::Whole, Some(CodeLine::Code(0))),
            ("", Extent::Begun, None),
            ("", Extent::Whole, Some(CodeLine::Code(0))),
            ("a```", Extent::Begun, Some(CodeLine::Code(0))),
            ("~~~", Extent::Whole, Some(CodeLine::Code(0))),
            ("> ```", Extent::Whole, Some(CodeLine::Code(0))),
        ] {
            assert_eq!(code_line(line, &fence, extent), expected, "{line} {extent:?}");
        }
        let quoted = Fence { quotes: 1, ..fence };
        assert_eq!(code_line("> ```", &quoted, Extent::Whole), Some(CodeLine::End));
        assert_eq!(code_line("> a", &quoted, Extent::Begun), Some(CodeLine::Code(2)));
    }
}
