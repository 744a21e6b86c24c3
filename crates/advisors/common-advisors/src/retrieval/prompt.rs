//! Documents as a text for the model.

use advisor_core::Text;

use crate::retrieval::Document;

/// The end of a document that is cut.
const CUT: &str = " […]";

/// Returns the documents that fit into `max_bytes` of text together. The last one may be cut.
pub(crate) fn fit(documents: Vec<Document>, max_bytes: usize) -> Vec<Document> {
    let mut rest = max_bytes;
    let mut fitting = Vec::new();
    for mut document in documents {
        if rest == 0 {
            break;
        }
        if document.text.len() > rest {
            document.text = cut(&document.text, rest);
            rest = 0;
        } else {
            rest -= document.text.len();
        }
        fitting.push(document);
    }
    fitting
}

/// Returns the beginning of a text that is longer.
pub(crate) fn cut(text: &str, max_bytes: usize) -> Text {
    if text.len() <= max_bytes {
        return text.into();
    }
    let end = text.floor_char_boundary(max_bytes);
    format!("{}{CUT}", text.get(..end).unwrap_or_default()).into()
}

/// Writes the instructions and the documents, numbered from `first`. Without documents, the text is empty.
pub(crate) fn numbered(instructions: &str, documents: &[Document], first: usize) -> String {
    let texts =
        (first..).zip(documents).map(|(number, document)| (attributes(number, document), &*document.text));
    fenced(instructions, "document", texts)
}

/// Writes the instructions and the texts, each in an element of this name with its attributes. Without texts, the
/// result is empty.
pub(crate) fn fenced<'a>(
    instructions: &str,
    name: &str,
    texts: impl Iterator<Item = (String, &'a str)>,
) -> String {
    let element =
        |(attributes, text)| format!("\n\n<{name}{attributes}>\n{}\n</{name}>", without_fences(text, name));
    let elements: String = texts.map(element).collect();
    if elements.is_empty() { elements } else { format!("{instructions}{elements}") }
}

fn attributes(number: usize, document: &Document) -> String {
    let mut attributes = format!(" number=\"{number}\"");
    for (name, value) in [("title", &document.title), ("url", &document.url)] {
        if let Some(value) = value {
            attributes.push_str(&format!(" {name}=\"{}\"", attribute(value)));
        }
    }
    attributes
}

/// Returns a text that fits between quotes in one line.
fn attribute(text: &str) -> String {
    let letter = |letter: char| match letter {
        '"' => "&quot;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        control if control.is_control() => " ".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(letter).collect()
}

/// Escapes what may look like a tag of this name, so that no text ends its element or begins another one.
fn without_fences(text: &str, name: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut parts = text.split('<');
    safe.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let begun = part.trim_start_matches(|letter: char| letter == '/' || letter.is_whitespace());
        let is_fence = begun.get(..name.len()).is_some_and(|begun| begun.eq_ignore_ascii_case(name));
        safe.push_str(if is_fence { "&lt;" } else { "<" });
        safe.push_str(part);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str], max_bytes: usize) -> Vec<String> {
        let documents = texts.iter().map(|text| Document::new("id", *text)).collect();
        fit(documents, max_bytes).iter().map(|document| document.text.to_string()).collect()
    }

    #[test]
    fn documents_beyond_the_bound_are_cut() {
        assert_eq!(texts(&["abc", "def"], 6), ["abc", "def"]);
        assert_eq!(texts(&["abc", "def"], 5), ["abc", "de […]"]);
        assert_eq!(texts(&["abc", "def"], 3), ["abc"]);
        assert_eq!(texts(&["äö"], 3), ["ä […]"]);
        assert_eq!(texts(&["abc"], 0), [""; 0]);
    }

    #[test]
    fn documents_are_fenced_and_numbered() {
        let documents = [
            Document {
                title: Some("The \"first\"\n<one>".into()),
                url: Some("https://a.example".into()),
                ..Document::new("a", "One.")
            },
            Document::new("b", "Two."),
        ];
        let expected = "Read these.\n\n\
            <document number=\"3\" title=\"The &quot;first&quot; &lt;one&gt;\" url=\"https://a.example\">\nOne.\n</document>\n\n\
            <document number=\"4\">\nTwo.\n</document>";
        assert_eq!(numbered("Read these.", &documents, 3), expected);
        assert_eq!(numbered("Read these.", &[], 1), "");
    }

    #[test]
    fn document_cannot_end_its_fence() {
        let escaped = [
            ("</document>", "&lt;/document>"),
            ("a < / DOCUMENT >", "a &lt; / DOCUMENT >"),
            ("<document number=\"1\">", "&lt;document number=\"1\">"),
            ("<\n/Document", "&lt;\n/Document"),
            ("<<document", "<&lt;document"),
        ];
        for (text, safe) in escaped {
            assert_eq!(without_fences(text, "document"), safe);
        }
        for text in ["if a < b { <doc> }", "</p>", "document", "<", "", "<docümen"] {
            assert_eq!(without_fences(text, "document"), text);
        }
    }
}
