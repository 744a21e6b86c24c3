//! `LiveMarkdown`: renders the finished pieces of a text that streams.

use pulldown_cmark::Event;
use serde::Serialize;

use super::{MOST, elements, parser};
use crate::markdown::Node;
use crate::markdown::Room;

/// A text that streams. Its pieces of Markdown are rendered when they are finished: when another one begins.
#[derive(Debug)]
pub(crate) struct LiveMarkdown {
    text: String,
    /// The bytes that are rendered, and the number of their elements.
    rendered: usize,
    elements: usize,
    /// The bytes behind them from which it is worth looking for a finished piece again.
    worthwhile: usize,
    /// The room of all further elements, also of those that replace earlier ones.
    room: Room,
}

impl Default for LiveMarkdown {
    fn default() -> Self {
        Self { text: String::new(), rendered: 0, elements: 0, worthwhile: 0, room: Room::of_text(0) }
    }
}

/// The elements of a further part of a text.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Rendered {
    /// The number of elements that stay. Those behind them are replaced.
    keep: usize,
    nodes: Vec<Node>,
    /// The text behind the elements, which is not rendered yet.
    rest: String,
}

impl Rendered {
    pub(crate) fn has_elements(&self) -> bool {
        !self.nodes.is_empty()
    }
}

impl LiveMarkdown {
    /// Appends a piece of text. Returns the elements that it finished, if any.
    pub(crate) fn push(&mut self, piece: &str) -> Option<Rendered> {
        self.text.push_str(piece);
        self.room.add_text(piece.len());
        if !piece.contains('\n') || self.text.len() > MOST {
            return None;
        }
        let lines = self.text.rfind('\n').map_or(0, |end| end + 1);
        let unfinished = self.text.get(self.rendered..lines).unwrap_or_default();
        if unfinished.len() <= self.worthwhile {
            return None;
        }
        let finished = last_piece(unfinished).and_then(|last| {
            Some((last, elements(unfinished.get(..last).unwrap_or_default(), &mut self.room)?))
        });
        let Some((last, nodes)) = finished else {
            // Looking again after an eighth more keeps the cost of a long piece linear.
            self.worthwhile = unfinished.len() + unfinished.len() / 8;
            return None;
        };
        let keep = self.elements;
        (self.rendered, self.elements, self.worthwhile) = (self.rendered + last, keep + nodes.len(), 0);
        Some(Rendered { keep, nodes, rest: self.rest().to_owned() })
    }

    /// Renders the rest of a text that has ended. Nothing, if it stays plain.
    pub(crate) fn close(mut self) -> Option<Rendered> {
        if self.text.len() > MOST {
            return None;
        }
        // A definition of a link counts for the whole text, also before it.
        let defines_links = parser(&self.text).reference_definitions().iter().next().is_some();
        let again = if defines_links { elements(&self.text, &mut self.room) } else { None };
        let (keep, nodes) = match again {
            Some(nodes) => (0, nodes),
            None => {
                let rest = self.text.get(self.rendered..).unwrap_or_default();
                (self.elements, elements(rest, &mut self.room)?)
            }
        };
        Some(Rendered { keep, nodes, rest: String::new() })
    }

    fn rest(&self) -> &str {
        self.text.get(self.rendered..).unwrap_or_default()
    }
}

/// Returns the position of the last piece of Markdown, if others precede it. `lines` ends with a line break.
fn last_piece(lines: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut pieces = 0_usize;
    let mut last = 0;
    for (event, range) in parser(lines).into_offset_iter() {
        if depth == 0 {
            pieces += 1;
            last = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    // A piece begins with its line. The parser leaves out indentation. At a carriage return alone it may have looked further,
    // up to a line feed.
    let begin = lines.get(..last)?.rfind(['\n', '\r']).map_or(0, |end| end + 1);
    (pieces > 1 && lines.get(..begin)?.ends_with('\n')).then_some(begin)
}

#[cfg(test)]
mod tests;
