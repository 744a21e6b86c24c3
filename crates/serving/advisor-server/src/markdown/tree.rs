//! Builds the elements from the events of the parser, within a depth and a room.

use pulldown_cmark::{self as md, CodeBlockKind, Event, HeadingLevel};

use crate::markdown::Room;
use crate::markdown::{Alignment, Element, Node, Tag};

/// The greatest depth of elements. Deeper ones are left out, and their content is kept.
const DEPTH: usize = 24;

/// The schemes of links. Other addresses, also relative ones, are no links.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// Builds the elements of a text, if there is room for them.
pub(super) fn build<'a>(events: impl Iterator<Item = Event<'a>>, room: &mut Room) -> Option<Vec<Node>> {
    let mut tree = Tree {
        finished: Vec::new(),
        open: Vec::new(),
        begun: Vec::new(),
        columns: Columns::default(),
        room,
        is_full: false,
    };
    for event in events {
        tree.take(event);
        if tree.is_full {
            return None;
        }
    }
    Some(tree.finished)
}

struct Tree<'r> {
    finished: Vec<Node>,
    /// The elements that have begun, outermost first.
    open: Vec<Element>,
    /// The pieces of Markdown that have begun, outermost first.
    begun: Vec<Begun>,
    columns: Columns,
    room: &'r mut Room,
    is_full: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Element,
    /// Only its content is shown.
    Transparent,
}

/// The alignments of a table's columns, and the cell that comes next.
#[derive(Default)]
struct Columns {
    alignments: Vec<md::Alignment>,
    next: usize,
    row: Row,
    /// The cells without content that the row ends with so far.
    empty: Vec<Element>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Row {
    #[default]
    Header,
    Body,
}

impl Tree<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.begin(tag),
            Event::End(_) => self.end(),
            // Markup is shown as it was written.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => {
                self.begin_element(Tag::Code);
                self.text(&code);
                self.end();
            }
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => self.add(Node::leaf(Tag::Break)),
            Event::Rule => self.add(Node::leaf(Tag::Rule)),
            Event::TaskListMarker(true) => self.text("☑ "),
            Event::TaskListMarker(false) => self.text("☐ "),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text);
            }
        }
    }

    fn begin(&mut self, tag: md::Tag<'_>) {
        match self.tag(tag).filter(|_| self.open.len() < DEPTH) {
            Some(tag) => self.begin_element(tag),
            None => self.begun.push(Begun::Transparent),
        }
    }

    fn begin_element(&mut self, tag: Tag) {
        self.open.push(Element { tag, children: Vec::new() });
        self.begun.push(Begun::Element);
    }

    fn end(&mut self) {
        if self.begun.pop() != Some(Begun::Element) {
            return;
        }
        let Some(mut element) = self.open.pop() else { return };
        element.children.shrink_to_fit();
        match element.tag {
            // The parser completes a row with cells that the text does not have.
            Tag::Cell(_) if element.children.is_empty() => return self.columns.empty.push(element),
            Tag::Cell(_) => {
                for empty in std::mem::take(&mut self.columns.empty) {
                    self.add(Node::Element(empty));
                }
            }
            Tag::Row => self.columns.empty.clear(),
            _ => {}
        }
        self.add(Node::Element(element));
    }

    fn text(&mut self, text: &str) {
        if !self.room.spend_for_text(text) {
            self.is_full = true;
            return;
        }
        match self.siblings().last_mut() {
            Some(Node::Text(before)) => before.push_str(text),
            _ => self.siblings().push(Node::Text(text.to_owned())),
        }
    }

    fn add(&mut self, node: Node) {
        if let Node::Element(element) = &node
            && !self.room.spend_for_element(&element.tag)
        {
            self.is_full = true;
            return;
        }
        self.siblings().push(node);
    }

    fn siblings(&mut self) -> &mut Vec<Node> {
        match self.open.last_mut() {
            Some(parent) => &mut parent.children,
            None => &mut self.finished,
        }
    }

    /// Returns the element of a piece of Markdown, if it has one.
    fn tag(&mut self, tag: md::Tag<'_>) -> Option<Tag> {
        Some(match tag {
            md::Tag::Paragraph => Tag::Paragraph,
            md::Tag::Heading { level, .. } => Tag::Heading(level_of(level)),
            md::Tag::BlockQuote(_) => Tag::Quote,
            md::Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
                Tag::CodeBlock(info.split_whitespace().next().unwrap_or_default().to_owned())
            }
            md::Tag::CodeBlock(CodeBlockKind::Indented) | md::Tag::HtmlBlock => Tag::CodeBlock(String::new()),
            md::Tag::List(None) => Tag::BulletList,
            md::Tag::List(Some(first)) => Tag::NumberedList(first),
            md::Tag::Item => Tag::Item,
            md::Tag::Table(alignments) => {
                self.columns.alignments = alignments;
                Tag::Table
            }
            md::Tag::TableHead => self.columns.begin_row(Row::Header),
            md::Tag::TableRow => self.columns.begin_row(Row::Body),
            md::Tag::TableCell => self.columns.next_cell(),
            md::Tag::Emphasis => Tag::Emphasis,
            md::Tag::Strong => Tag::Strong,
            md::Tag::Strikethrough => Tag::Strikethrough,
            md::Tag::Link { dest_url, .. } => Tag::Link(address(&dest_url)?),
            md::Tag::Image { dest_url, .. } => Tag::Picture(address(&dest_url)?),
            _ => return None,
        })
    }
}

impl Columns {
    fn begin_row(&mut self, row: Row) -> Tag {
        (self.row, self.next) = (row, 0);
        Tag::Row
    }

    fn next_cell(&mut self) -> Tag {
        let alignment = match self.alignments.get(self.next) {
            Some(md::Alignment::Center) => Alignment::Center,
            Some(md::Alignment::Right) => Alignment::End,
            _ => Alignment::Start,
        };
        self.next += 1;
        match self.row {
            Row::Header => Tag::HeaderCell(alignment),
            Row::Body => Tag::Cell(alignment),
        }
    }
}

/// Returns an address that a link may have.
fn address(address: &str) -> Option<String> {
    let has =
        |scheme: &&str| address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    SCHEMES.iter().any(has).then(|| address.to_owned())
}

fn level_of(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

#[cfg(test)]
mod tests;
