//! Markdown of a model as a tree of a few elements, for the page.

pub(crate) mod live;
mod tree;

use pulldown_cmark::{Options, Parser};
use serde::Serialize;

/// The bytes of a text that is rendered. A longer one stays plain.
const MOST: usize = 256 << 10;

/// The cells of tables that a parser may add to those of a text, beside one for each byte.
const ADDED_CELLS: usize = 4 << 10;

/// Returns the elements of a whole text; none for a text that stays plain, since it is too long or its elements have no
/// room.
pub(crate) fn render(text: &str, room: &mut Room) -> Vec<Node> {
    if text.len() > MOST {
        return Vec::new();
    }
    let mut own = Room::of_text(text.len()).at_most(*room);
    let before = own;
    let Some(nodes) = elements(text, &mut own) else { return Vec::new() };
    room.spend(before.since(own));
    nodes
}

/// Returns the elements of a text, if there is room for them. Otherwise the room stays.
fn elements(text: &str, room: &mut Room) -> Option<Vec<Node>> {
    let mut left = *room;
    let nodes = tree::build(parser(text), &mut left)?;
    *room = left;
    Some(nodes)
}

fn parser(text: &str) -> Parser<'_> {
    let mut options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    options.set(Options::ENABLE_TABLES, may_have_tables(text));
    Parser::new_ext(text, options)
}

/// Checks whether the tables of a text stay small. The parser completes each row to the columns of its table, so that a
/// wide header and many short rows are a square of the text. In a table whose cells are written, there are fewer cells than
/// bytes.
fn may_have_tables(text: &str) -> bool {
    let (mut cells, mut rows, mut columns) = (0_usize, 0_usize, 0_usize);
    for line in lines(text) {
        // An empty line, perhaps in a quote, ends a table.
        if line.bytes().all(|byte| byte == b'>' || byte.is_ascii_whitespace()) {
            cells = cells.saturating_add(rows.saturating_mul(columns));
            (rows, columns) = (0, 0);
        } else {
            rows += 1;
            columns = columns.max(line.bytes().filter(|byte| *byte == b'|').count());
        }
    }
    cells.saturating_add(rows.saturating_mul(columns)) <= text.len().saturating_add(ADDED_CELLS)
}

/// Returns the lines of a text, as a parser of Markdown ends them: also at a carriage return alone.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

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

/// The bytes of elements for each byte of a text, and for a short one. Markdown that people and models write takes less: a
/// table of digits ten for each byte.
const FACTOR: usize = 16;
const SLACK: usize = 1 << 10;

/// The bytes of an element in JSON, beside its tag.
const ELEMENT: usize = r#"{"tag":,"children":[]},"#.len();

/// The bytes that elements may still take in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room(usize);

impl Room {
    /// Creates the room of this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Returns the room of the elements of a text.
    pub(super) fn of_text(bytes: usize) -> Self {
        let mut room = Self(SLACK);
        room.add_text(bytes);
        room
    }

    /// Adds the room of a further piece of a text.
    pub(super) fn add_text(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes.saturating_mul(FACTOR));
    }

    pub(super) fn at_most(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Returns the bytes that were spent until `later`.
    pub(super) fn since(self, later: Self) -> usize {
        self.0.saturating_sub(later.0)
    }

    /// Spends bytes, if there are so many.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    pub(super) fn spend_for_element(&mut self, tag: &Tag) -> bool {
        serde_json::to_vec(tag).is_ok_and(|tag| self.spend(tag.len() + ELEMENT))
    }

    pub(super) fn spend_for_text(&mut self, text: &str) -> bool {
        serde_json::to_vec(text).is_ok_and(|text| self.spend(text.len() + 1))
    }
}
