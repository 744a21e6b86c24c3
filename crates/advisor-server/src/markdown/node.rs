//! `Node` and `Tag`: a text, or an element of a fixed list.

use serde::Serialize;

/// A text, or an element of a fixed list.
///
/// It has no markup: the page makes each element by its name, and each text as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Node {
    Text(String),
    Element(Element),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Element {
    pub(crate) tag: Tag,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Node>,
}

/// The kind of an element, with its attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tag {
    Paragraph,
    /// With its level, from 1 to 6.
    Heading(u8),
    Quote,
    /// A block of code in this language, which may be empty.
    CodeBlock(String),
    BulletList,
    /// With the number of its first item.
    NumberedList(u64),
    Item,
    Table,
    Row,
    HeaderCell(Alignment),
    Cell(Alignment),
    Emphasis,
    Strong,
    Strikethrough,
    Code,
    /// With its address, which is on the web or of a mailbox.
    Link(String),
    /// A picture with its address. It is shown as a link, so that nothing is loaded.
    Picture(String),
    Break,
    Rule,
}

/// The alignment of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Alignment {
    Start,
    Center,
    End,
}

impl Node {
    pub(crate) fn leaf(tag: Tag) -> Self {
        Self::Element(Element { tag, children: Vec::new() })
    }
}
