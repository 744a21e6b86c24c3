use super::*;
use crate::markdown::render;

fn json(text: &str) -> String {
    serde_json::to_string(&render(text)).unwrap()
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
