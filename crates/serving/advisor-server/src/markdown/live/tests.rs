//! Tests of `markdown::live`.

use proptest::prelude::*;

use super::*;
use crate::markdown::Tag;
use crate::markdown::render;

/// Streams a text in these pieces, and returns the elements as the page has them before and after the end.
fn streamed<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (Vec<Node>, Vec<Node>) {
    let mut text = LiveMarkdown::default();
    let mut shown = Vec::new();
    for piece in pieces {
        if let Some(rendered) = text.push(piece) {
            shown.truncate(rendered.keep);
            shown.extend(rendered.nodes);
        }
    }
    let before = shown.clone();
    if let Some(rendered) = text.close() {
        shown.truncate(rendered.keep);
        shown.extend(rendered.nodes);
    }
    (before, shown)
}

#[test]
fn finished_paragraphs_are_rendered_while_text_streams() {
    let mut text = LiveMarkdown::default();
    assert_eq!(text.push("One *wo"), None);
    assert_eq!(text.push("rd*.\n\n"), None, "the paragraph may go on");
    assert_eq!(text.push("Tw"), None, "the line is not whole");
    let rendered = text.push("o\nlin").unwrap();
    assert_eq!((rendered.keep, rendered.nodes.len(), &*rendered.rest), (0, 1, "Two\nlin"));
    let rendered = text.close().unwrap();
    assert_eq!((rendered.keep, rendered.nodes.len(), &*rendered.rest), (1, 1, ""));
}

#[test]
fn definition_at_the_end_renders_the_text_again() {
    let (before, after) = streamed(["See [it].\n\nAnd\n", "more.\n\n[it]: https://example.org\n"]);
    assert!(!format!("{before:?}").contains("Link"), "{before:?}");
    assert!(format!("{after:?}").contains(r#"Link("https://example.org")"#), "{after:?}");
}

/// The parser looks for the end of a fence up to the line feed.
#[test]
fn fence_with_carriage_returns_streams_as_the_whole_text() {
    let text = "a\n```\r\r```\n";
    assert_eq!(streamed([text]).1, render(text, &mut Room::new(usize::MAX)));
}

#[test]
fn list_with_pauses_is_one_list() {
    let (_, nodes) = streamed(["1. a\n", "\n2", ". b\n\nEnd"]);
    let is_list = |node: &Node| matches!(node, Node::Element(element) if element.tag == Tag::NumberedList(1));
    assert_eq!((nodes.iter().filter(|node| is_list(node)).count(), nodes.len()), (1, 2), "{nodes:?}");
}

#[test]
fn long_text_stays_plain() {
    let line = "word\n\n".repeat(1 << 15);
    let (before, after) = streamed([line.as_str(), &line, "end"]);
    assert_eq!(before, after, "nothing is rendered beyond the bound");
}

/// Each piece that is not finished is looked at a bounded number of times: a long block of code costs no more.
#[test]
fn long_block_of_code_is_looked_at_a_few_times() {
    let mut text = LiveMarkdown::default();
    text.push("```\n");
    let mut looks = 0;
    for _ in 0..4_000 {
        let before = text.worthwhile;
        assert_eq!(text.push("let a = 1;\n"), None);
        looks += usize::from(text.worthwhile != before);
    }
    assert!(looks < 100, "{looks}");
}

fn text() -> impl Strategy<Value = Vec<String>> {
    let pieces = [
        "a", "b c", " ", "\n", "\n\n", "\r", "    ", "- ", "1. ", "> ", "# ", "```", "`", "*", "**", "_",
        "<b>", "<!--", "|", "---", "| a |\n|---|\n", "===\n", "~~", "[a](https://b.c)", "![a](https://b.c)",
        "\\", "&amp;", "- [ ] ", "\t", "ä",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()).prop_map(str::to_owned), 0..40)
}

proptest! {
    /// A text that streams ends with the elements of the whole text, whatever its pieces are.
    #[test]
    fn streamed_text_ends_as_the_whole_text(pieces in text()) {
        let (_, nodes) = streamed(pieces.iter().map(String::as_str));
        let text = pieces.concat();
        prop_assert_eq!(nodes, render(&text, &mut Room::new(usize::MAX)));
    }
}

#[test]
fn law_r1_streamed_table_costs_a_multiple_of_its_text() {
    let table = format!("|{}\n|{}\n{}\n", "a|".repeat(300), "-|".repeat(300), "a\n".repeat(1_750));
    // A definition at the end renders the text again.
    let text = format!("{}\n[a]: https://example.org\n", table.repeat(3));
    let mut streamed = LiveMarkdown::default();
    let size = |rendered: Rendered| serde_json::to_vec(&rendered).unwrap().len();
    let mut sent: usize = text.split_inclusive('\n').filter_map(|piece| streamed.push(piece)).map(size).sum();
    sent += streamed.close().map_or(0, size);
    assert!(sent <= 20 * text.len(), "{sent} bytes of {}", text.len());
}
