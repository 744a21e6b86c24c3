//! Tests of `markdown`.

use super::*;
use crate::printable::printable;

/// Returns the output for these pieces, with readable looks.
fn shown(width: usize, pieces: &[&str]) -> String {
    let mut markdown = Markdown::new(width);
    let mut out: String = pieces.iter().map(|piece| markdown.push(piece)).collect();
    out += &markdown.end();
    let mut parts = out.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let looks = parts.map(|part| match part.strip_prefix("0m") {
        Some(rest) => format!("</>{rest}"),
        None => format!("<{}", part.replacen('m', ">", 1)),
    });
    first + &looks.collect::<String>()
}

#[test]
fn law_r1_table_takes_a_multiple_of_its_text() {
    let row = |cell: &str| format!("|{}\n", format!("{cell}|").repeat(50));
    let table = row(&"a".repeat(80)) + &row("-") + &row("").repeat(1_000);
    let out = text(80, &table);
    assert!(out.len() <= 20 * table.len(), "{} bytes of {}", out.len(), table.len());
}

/// Returns the output for a whole text.
fn text(width: usize, source: &str) -> String {
    let mut markdown = Markdown::new(width);
    markdown.push(source) + &markdown.end()
}

#[test]
fn inline_marks_become_looks() {
    for (source, expected) in [
        ("a **b** `c`", "a <1>b</> <36>c</>"),
        ("_a_ ~~b~~", "<3>a</> <9>b</>"),
        ("[a](https://b)", "<4>a</> <2>(https://b)</>"),
        ("**a `b`**", "<1>a</> <1;36>b</>"),
    ] {
        assert_eq!(shown(80, &[source]), expected);
    }
}

#[test]
fn blocks_are_shown_line_by_line() {
    for (source, expected) in [
        ("# One\n### Three\n", "<1;4>One</>\n<1>Three</>\n"),
        ("- a\n  - b\n1. c\n", "• a\n  • b\n1. c\n"),
        ("> a\n> > b", "<2>│ </>a\n<2>│ │ </>b"),
        ("---\na", "<2>────────</>\na"),
        ("```rs\nlet a = *b;\n\n```\nc", "<2>```rs</>\n<36>let a = *b;</>\n\n<2>```</>\nc"),
        ("> ```\n> a\n> ```\n", "<2>│ </><2>```</>\n<2>│ </><36>a</>\n<2>│ </><2>```</>\n"),
    ] {
        assert_eq!(shown(8, &[source]), expected, "{source}");
    }
}

#[test]
fn lines_wrap_inside_their_block() {
    assert_eq!(text(14, "- one two three\n"), "• one two\n  three\n");
    assert_eq!(text(14, "10. one two three"), "10. one two\n    three");
    assert_eq!(shown(12, &["> one two six"]), "<2>│ </>one two\n<2>│ </>six");
    assert_eq!(text(12, "```\nlonger than the terminal\n```").lines().count(), 3, "code is not broken");
}

#[test]
fn a_table_has_the_columns_of_its_header() {
    let table = "| Town | Sky |\n|---|---|\n| Lima | `grey` |\n| Os | |\nafter";
    let expected =
        "<1>Town</> <2>│</> <1>Sky</>\n<2>──────────</>\nLima <2>│</> <36>grey</>\nOs   <2>│</>\nafter";
    assert_eq!(shown(60, &[table]), expected);
}

#[test]
fn text_appears_as_it_streams() {
    let mut markdown = Markdown::new(80);
    let pieces = ["Hel", "lo", " **wor", "ld** and", "\n", "-", " ", "item", "\n``", "`\nco", "de"];
    let out: Vec<_> = pieces.map(|piece| markdown.push(piece)).into();
    let expected = [
        "Hel",
        "lo",
        "",
        " \x1b[1mworld\x1b[0m and",
        "\n",
        "",
        "",
        "• item",
        "\n",
        "\x1b[2m```\x1b[0m\n\x1b[36mco\x1b[0m",
        "\x1b[36mde\x1b[0m",
    ];
    assert_eq!(out, expected);
    assert_eq!(markdown.end(), "");
}

#[test]
fn unfinished_marks_are_shown_as_written() {
    for source in ["*args", "**open\nnext", "`code", "[link", "![", "~~a", "#", "2 * 3", "1.", "\\"] {
        assert_eq!(text(80, source), source);
    }
}

/// Removes the looks, so that the remaining text can be compared.
fn without_looks(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain += before;
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

const SAMPLE: &str = "# Title *one*\n\nSome **bold, `code` and _it_** text — with 漢字 and a long line that wraps, \
     [a link](https://example.org/x) and *unfinished.\n\n- one\n  1. two **x**\n> quoted\n> - list\n\n```rust\nfn \
     main() {}\n~~~\n```\n| a | **b** |\n|---|---|\n| c \\| d | e |\n***\nEnd_of_it 2*3*4 `` ` `` !\n";

#[test]
fn any_split_gives_the_same_text() {
    for width in [20, 40, 80] {
        let whole = text(width, SAMPLE);
        for size in [1, 2, 3, 7, 20] {
            let chars: Vec<char> = SAMPLE.chars().collect();
            let mut markdown = Markdown::new(width);
            let pieces = chars.chunks(size).map(|piece| markdown.push(&piece.iter().collect::<String>()));
            let out = pieces.collect::<String>() + &markdown.end();
            assert_eq!(without_looks(&out), without_looks(&whole), "pieces of {size} at {width}");
        }
    }
}

#[test]
fn only_looks_are_added_as_control_characters() {
    let hostile = printable("\x1b[31mred\x1b[0m \u{9b}2J \x1b]0;title\x07 **\u{202e}bold** `\x1b[2J`\n");
    let out = text(40, &hostile);
    let plain = without_looks(&out);
    assert!(!plain.contains(['\x1b', '\u{9b}', '\x07', '\u{202e}']), "{plain:?}");
    let looks = out.matches("\x1b[").count();
    assert_eq!(out.matches('\x1b').count(), looks);
    assert_eq!(looks, 4, "one look begins and ends the bold text, and one the code: {out:?}");
}
