//! Markdown of a model as a tree of a few elements, for the page.

pub(crate) mod live;
pub(crate) mod node;
mod tree;

use pulldown_cmark::{Options, Parser};

use self::node::Node;

/// The bytes of a text that is rendered. A longer one stays plain.
const MOST: usize = 256 << 10;

/// Returns the elements of a whole text; none for a text that stays plain.
pub(crate) fn render(text: &str) -> Vec<Node> {
    if text.len() > MOST { Vec::new() } else { tree::build(parser(text)) }
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS)
}
