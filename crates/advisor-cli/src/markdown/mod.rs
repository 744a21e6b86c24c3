//! Markdown on a terminal, as it streams.

mod inline;
mod line;
mod table;
mod wrap;

use unicode_width::UnicodeWidthStr;

use self::inline::Shown;
use self::line::{CodeLine, Extent, Fence, Kind, Start};
pub(crate) use self::wrap::wrapped;
use self::wrap::{Prefix, Wrap};
use crate::look::{Attribute, Look};

/// The longest line between sections, and between the header and the rows of a table.
const RULE: usize = 40;

/// Renders one text of Markdown in pieces. Shown text never changes: a mark is held back until it is certain.
///
/// A CommonMark parser does not fit: a later line may turn a paragraph into a heading, or define a link in
/// it.
///
/// It holds back the beginning of a line while its kind is open, and a word near the edge. An emphasis, a link or a
/// code is held back until it ends. Fences and rows of tables are held back for their line. Any split of the text gives
/// the same output.
#[derive(Debug)]
pub(crate) struct Markdown {
    held: String,
    place: Place,
    wrap: Wrap,
    /// The widths of the columns of the current table; empty outside a table.
    columns: Vec<usize>,
}

/// The place of the next character.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// The beginning of a line.
    Start,
    /// Inside a line of this look, behind a character.
    Line(Look, Option<char>),
    /// The beginning of a line in a block of code.
    CodeStart(Fence),
    /// Inside such a line.
    Code(Fence),
}

impl Markdown {
    /// Creates the renderer of a text for lines of `width` columns.
    pub(crate) fn new(width: usize) -> Self {
        Self { held: String::new(), place: Place::Start, wrap: Wrap::new(width), columns: Vec::new() }
    }

    /// Sets the width of further lines.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.wrap.set_width(width);
    }

    /// Returns the output for the next piece of the text, which has no control characters but line breaks and tabs.
    pub(crate) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        self.read(Extent::Begun)
    }

    /// Ends the text. Returns the text that was held back.
    pub(crate) fn end(&mut self) -> String {
        let mut out = self.read(Extent::Whole);
        self.wrap.interrupt(&mut out);
        self.place = Place::Start;
        self.columns.clear();
        out
    }

    /// Returns the word that is held back, before other output. The line continues on a new line.
    pub(crate) fn interrupt(&mut self) -> String {
        let mut out = String::new();
        self.wrap.interrupt(&mut out);
        out
    }

    fn read(&mut self, extent: Extent) -> String {
        let held = std::mem::take(&mut self.held);
        let (mut rest, mut out) = (&*held, String::new());
        let mut line_end = rest.find('\n');
        while !rest.is_empty()
            && let Some(length) = self.step(rest, line_end, extent, &mut out)
        {
            rest = rest.get(length..).unwrap_or_default();
            // A line of many parts is searched once.
            line_end = match line_end {
                Some(end) if length > end => rest.find('\n'),
                end => end.map(|end| end - length),
            };
        }
        rest.clone_into(&mut self.held);
        out
    }

    /// Reads the next part of the text, whose line ends there. Returns its length; `None` if more is needed.
    fn step(
        &mut self,
        rest: &str,
        line_end: Option<usize>,
        extent: Extent,
        out: &mut String,
    ) -> Option<usize> {
        let (line, extent) = match line_end.and_then(|end| rest.get(..end)) {
            Some(line) => (line, Extent::Whole),
            None => (rest, extent),
        };
        match self.place.clone() {
            Place::Start => {
                let start = line::start(line, extent)?;
                self.begin(&start, line, out);
                Some(start.length)
            }
            Place::CodeStart(fence) => self.begin_code(fence, line, extent, out),
            place if line.is_empty() => {
                self.wrap.end_line(out);
                self.place = match place {
                    Place::Code(fence) => Place::CodeStart(fence),
                    _ => Place::Start,
                };
                Some(1)
            }
            Place::Code(_) => {
                out.push_str(&Look::new(Attribute::Cyan).paint(line));
                Some(line.len())
            }
            Place::Line(look, before) => {
                let part = inline::next(line, extent, before)?;
                self.show(&look, part.shown, out);
                let last = line.get(..part.length).and_then(|source| source.chars().next_back());
                self.place = Place::Line(look, last);
                Some(part.length)
            }
        }
    }

    /// Begins a line in a block of code, or ends the block.
    fn begin_code(&mut self, fence: Fence, line: &str, extent: Extent, out: &mut String) -> Option<usize> {
        let bars = quoted(fence.quotes);
        match line::code_line(line, &fence, extent)? {
            CodeLine::End => {
                self.write_whole(&bars, &Look::new(Attribute::Dim), without_prefix(line), out);
                Some(line.len())
            }
            CodeLine::Code(skipped) => {
                self.wrap.begin_line(&bars, Prefix::default(), out);
                self.place = Place::Code(fence);
                Some(skipped)
            }
        }
    }

    fn begin(&mut self, start: &Start, line: &str, out: &mut String) {
        let bars = quoted(start.quotes);
        let indented =
            bars.clone().with(&Look::default(), &" ".repeat(start.indent.min(self.wrap.width() / 2)));
        if !matches!(start.kind, Kind::Row) {
            self.columns.clear();
        }
        let dim = Look::new(Attribute::Dim);
        match &start.kind {
            Kind::Text => self.begin_line(&indented, Look::default(), &bars, out),
            Kind::Heading(level) => {
                let bold = Look::new(Attribute::Bold);
                let look = if *level < 3 { bold.with(Attribute::Underlined) } else { bold };
                self.begin_line(&bars, look, &bars, out);
            }
            Kind::Item(mark) => {
                let marked = indented.with(&Look::default(), mark);
                self.begin_line(&marked, Look::default(), &bars, out);
            }
            Kind::Rule => self.write_whole(&bars, &dim, &self.rule(RULE), out),
            Kind::Row => self.row(&bars, line, out),
            Kind::Fence(fence) => {
                self.write_whole(&indented, &dim, without_prefix(line), out);
                self.place = Place::Code(fence.clone());
            }
        }
    }

    fn begin_line(&mut self, first: &Prefix, look: Look, bars: &Prefix, out: &mut String) {
        self.wrap.begin_line(first, first.blank_after(bars), out);
        self.place = Place::Line(look, None);
    }

    /// Writes a whole line that is never broken.
    fn write_whole(&mut self, prefix: &Prefix, look: &Look, text: &str, out: &mut String) {
        self.wrap.begin_line(prefix, Prefix::default(), out);
        out.push_str(&look.paint(text));
        self.place = Place::Line(Look::default(), None);
    }

    fn rule(&self, length: usize) -> String {
        "─".repeat(length.min(self.wrap.width()))
    }

    fn row(&mut self, bars: &Prefix, line: &str, out: &mut String) {
        const BETWEEN: &str = " │ ";
        let cells = table::cells(without_prefix(line));
        let dim = Look::new(Attribute::Dim);
        if table::is_separator(&cells) {
            let length = self.columns.iter().map(|column| column + BETWEEN.width()).sum::<usize>();
            let rule = self.rule(length.saturating_sub(BETWEEN.width()).max(1));
            return self.write_whole(bars, &dim, &rule, out);
        }
        let is_header = self.columns.is_empty();
        let look = if is_header { Look::new(Attribute::Bold) } else { Look::default() };
        self.begin_line(bars, look.clone(), bars, out);
        // A row that does not fit on a line is not aligned, and would be mostly spaces.
        let mut room = self.wrap.width();
        for (number, cell) in cells.iter().enumerate() {
            if number > 0 {
                self.wrap.push(&dim, BETWEEN, out);
            }
            let width = shown_width(cell);
            if is_header {
                self.columns.push(width.min(self.wrap.width()));
            }
            self.inline(&look, cell, out);
            let missing = self.columns.get(number).map_or(0, |column| column.saturating_sub(width)).min(room);
            room -= missing;
            if number + 1 < cells.len() {
                self.wrap.push(&Look::default(), &" ".repeat(missing), out);
            }
        }
    }

    /// Shows a whole text with the marks inside it.
    fn inline(&mut self, look: &Look, text: &str, out: &mut String) {
        each_part(text, |shown| self.show(look, shown, out));
    }

    fn show(&mut self, look: &Look, shown: Shown<'_>, out: &mut String) {
        match shown {
            Shown::Text(text) => self.wrap.push(look, text, out),
            Shown::Code(code) => self.wrap.push(&look.with(Attribute::Cyan), code, out),
            Shown::Emphasis(attributes, text) => {
                let look = attributes.iter().fold(look.clone(), |look, attribute| look.with(*attribute));
                self.inline(&look, text, out);
            }
            Shown::Link { text, url } => {
                self.inline(&look.with(Attribute::Underlined), text, out);
                if text != url {
                    self.wrap.push(&look.with(Attribute::Dim), &format!(" ({url})"), out);
                }
            }
        }
    }
}

/// Returns a line without quote marks and indentation, and without the spaces behind it.
fn without_prefix(line: &str) -> &str {
    line.trim_start_matches([' ', '\t', '>']).trim_end()
}

/// Returns the bars in front of a quoted line.
fn quoted(quotes: usize) -> Prefix {
    let bars = "│ ".repeat(quotes);
    if bars.is_empty() {
        Prefix::default()
    } else {
        Prefix::default().with(&Look::new(Attribute::Dim), &bars)
    }
}

fn each_part(text: &str, mut with: impl FnMut(Shown<'_>)) {
    let (mut rest, mut before) = (text, None);
    while let Some(part) = inline::next(rest, Extent::Whole, before)
        && let Some((source, behind)) = rest.split_at_checked(part.length)
    {
        with(part.shown);
        (before, rest) = (source.chars().next_back(), behind);
    }
}

/// Returns the columns of a text without its marks.
fn shown_width(text: &str) -> usize {
    let mut width = 0;
    each_part(text, |shown| {
        width += match shown {
            Shown::Text(text) | Shown::Code(text) => text.width(),
            Shown::Emphasis(_, text) => shown_width(text),
            Shown::Link { text, url } if text == url => text.width(),
            Shown::Link { text, url } => shown_width(text) + url.width() + " ()".len(),
        }
    });
    width
}

#[cfg(test)]
mod tests;
