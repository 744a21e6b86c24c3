//! Tests of `markdown::tree`.

use proptest::prelude::*;

use super::*;
use crate::markdown::{parser, render};

fn json(text: &str) -> String {
    serde_json::to_string(&render(text, &mut Room::new(usize::MAX))).unwrap()
}

#[test]
fn elements_have_names_and_texts() {
    for (text, expected) in [
        (
            "a *b* **c** ~~d~~ `e<f`",
            r#"[{"tag":"paragraph","children":["a ",{"tag":"emphasis","children":["b"]}," ",{"tag":"strong","children":["c"]}," ",{"tag":"strikethrough","children":["d"]}," ",{"tag":"code","children":["e<f"]}]}]"#,
        ),
        ("## Two", r#"[{"tag":{"heading":2},"children":["Two"]}]"#),
        ("```rust ignore\nfn a() {}\n```", r#"[{"tag":{"code_block":"rust"},"children":["fn a() {}\n"]}]"#),
        (
            "3. a\n4. b",
            r#"[{"tag":{"numbered_list":3},"children":[{"tag":"item","children":["a"]},{"tag":"item","children":["b"]}]}]"#,
        ),
        ("- [x] a", r#"[{"tag":"bullet_list","children":[{"tag":"item","children":["☑ a"]}]}]"#),
        ("a  \nb\nc", r#"[{"tag":"paragraph","children":["a",{"tag":"break"},"b\nc"]}]"#),
        (
            "|a|b|\n|-|-:|\n|c|d|",
            r#"[{"tag":"table","children":[{"tag":"row","children":[{"tag":{"header_cell":"start"},"children":["a"]},{"tag":{"header_cell":"end"},"children":["b"]}]},{"tag":"row","children":[{"tag":{"cell":"start"},"children":["c"]},{"tag":{"cell":"end"},"children":["d"]}]}]}]"#,
        ),
        (
            "[a](https://b.c)",
            r#"[{"tag":"paragraph","children":[{"tag":{"link":"https://b.c"},"children":["a"]}]}]"#,
        ),
        (
            "![a](https://b.c/d.png)",
            r#"[{"tag":"paragraph","children":[{"tag":{"picture":"https://b.c/d.png"},"children":["a"]}]}]"#,
        ),
    ] {
        assert_eq!(json(text), expected, "{text}");
    }
}

#[test]
fn markup_is_text() {
    for text in [
        "<script>x</script>", "<img src=x onerror=x>", "a <b onclick=x>c</b>", "<svg/onload=x>", "<!-- a -->",
    ] {
        let rendered = json(text);
        assert!(rendered.contains(&text[..4]), "{rendered}");
        assert!(!rendered.contains("link") && !rendered.contains("picture"), "{rendered}");
    }
}

#[test]
fn only_addresses_of_the_web_and_of_mailboxes_are_links() {
    for address in ["HTTPS://a.b", "http://a.b", "mailto:a@b.c"] {
        assert!(json(&format!("[a]({address})")).contains("link"), "{address}");
    }
    for address in [
        "javascript:x", "JaVaScRiPt:x", "java&#10;script:x", "%20javascript:x", "data:text/html,x",
        "vbscript:x", "/a", "a", "//a.b", "https:a", "file:///a", "blob:https://a.b", "&#x1;https://a.b",
    ] {
        let rendered = json(&format!("[a](<{address}>) ![a](<{address}>)"));
        assert!(!rendered.contains("link") && !rendered.contains("picture"), "{address}: {rendered}");
    }
}

#[test]
fn depth_has_a_bound() {
    let quotes = format!("{}a", "> ".repeat(10_000));
    let lists: String = (0..300).map(|depth| format!("{}- a\n", " ".repeat(2 * depth))).collect();
    for text in [quotes, lists] {
        let rendered = json(&text);
        assert!(rendered.contains('a') && rendered.matches("[{").count() <= DEPTH + 1, "{}", rendered.len());
    }
}

/// A wide header, and rows of one cell: the parser completes each of them.
fn square_of_its_text() -> String {
    format!("|{}\n|{}\n{}", "a|".repeat(300), "-|".repeat(300), "a\n".repeat(1_750))
}

#[test]
fn law_r1_odd_texts_cost_a_multiple_of_their_length() {
    let square = square_of_its_text();
    let row = |cell: &str| format!("{}|\n", format!("|{cell}").repeat(300));
    let table = format!("{}\r{}\r{}\r", "|a".repeat(360), "|-".repeat(360), "a\r".repeat(720));
    for (what, text) in [
        // The parser completes each of many tables.
        ("many tables", format!("{square}\n").repeat(50)),
        ("one table", square),
        // The bound of a parser holds for one table alone, and it makes all tables at once.
        ("tables with carriage returns", table.repeat(4)),
        // No cell is completed: each has its mark, and nothing else.
        ("empty cells", row("a") + &row(":-:") + &format!("{}b|\n", "|".repeat(300)).repeat(100)),
        (
            "repeated addresses",
            format!("{}\n\n[a]: https://b.c/{}\n", "[a]".repeat(5_000), "d".repeat(5_000)),
        ),
    ] {
        let rendered = json(&text);
        assert!(rendered.len() <= 20 * text.len(), "{what}: {} bytes of {}", rendered.len(), text.len());
        let events = parser(&text).count();
        assert!(events <= 2 * text.len(), "{what}: {events} events of {} bytes", text.len());
    }
}

#[test]
fn completed_cells_are_left_out() {
    let row = r#"{"tag":"row","children":[{"tag":{"cell":"start"},"children":["c"]}]}"#;
    for text in ["|a|b|\n|-|-|\n|c|", "|a|b|\n|-|-|\n|c||"] {
        assert!(json(text).contains(row), "{}", json(text));
    }
    let gap =
        r#"{"tag":"row","children":[{"tag":{"cell":"start"}},{"tag":{"cell":"start"},"children":["c"]}]}"#;
    assert!(json("|a|b|\n|-|-|\n||c|").contains(gap), "an empty cell before another one is kept");
}

#[test]
fn usual_tables_have_elements() {
    let row = |cell: &str| format!("|{}\n", format!(" {cell} |").repeat(40));
    let text = format!("{}{}{}", row("a"), row("-"), row("1").repeat(500));
    assert!(json(&text).len() > 20_000 * 30, "{}", json(&text).len());
}

proptest! {
    /// Whatever a text is, its elements take at most a multiple of its bytes.
    #[test]
    fn law_r1_elements_take_a_multiple_of_any_text(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "|", "a|", "|-|-|-|\n", "-", "\n", "\r", "> ", "- ", "1. ", "# ", "*a*", "**a**", "`a`", "~~a~~", "---\n",
            "[a]", "[a](https://b.c)", "\n[a]: https://b.c/ddddddddddddddddddddd\n", "\\\n", "&quot;", "\u{1}", "\"",
        ]), 0..400),
    ) {
        let text = pieces.concat();
        prop_assert!(json(&text).len() <= 16 * text.len() + 1_100);
    }

    /// Each kind of line break ends a row.
    #[test]
    fn law_r1_table_with_any_line_breaks_costs_a_multiple_of_its_text(
        breaks in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n"]), 1..9),
    ) {
        let rows = square_of_its_text();
        let lines = rows.lines().zip(breaks.iter().cycle());
        let text: String = lines.flat_map(|(line, end)| [line, end]).collect();
        prop_assert!(json(&text).len() <= 20 * text.len());
        prop_assert!(parser(&text).count() <= 2 * text.len());
    }
}
