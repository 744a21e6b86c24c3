//! Markdown of a model as a tree of a few elements, for the page.

pub(crate) mod live;
pub(crate) mod node;
pub(crate) mod room;
mod tree;

use pulldown_cmark::{Options, Parser};

use self::node::Node;
use self::room::Room;

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
