pub(super) mod arguments;
pub(super) mod nested;
pub(super) mod trimmed;

use self::arguments::ArgumentsWriter;
use self::nested::Nested;
use self::trimmed::{Entities, Trimmed, TrimmedText};
use crate::parser::event::Output;
use crate::parser::input::{Input, Tail};
use crate::parser::marker::{Close, Marker, find_close, marker_at};
use crate::tools::coercion::Schema;
use crate::tools::{BodyText, ToolForm};

/// The white space that is held back between a marker and the closing tag, in bytes.
const MAX_SPACE: usize = 1024;

/// Reads the text of one argument up to the marker that closes it, and writes its value.
#[derive(Debug)]
pub(in crate::parser) struct ValueReader {
    name: String,
    /// The marker; it begins with an ASCII character, and upper and lower case are equal.
    close: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Text without the white space around it.
    Trimmed(TrimmedText),
    /// Text whose markers may follow.
    Verbatim { start: String, end: String },
    /// Right before verbatim text: one line break is left out.
    LineBreak { end: Option<String> },
    /// Verbatim text up to the closing marker.
    Plain,
    /// Verbatim text up to this marker, if the closing marker follows it.
    Marked { end: String },
    /// Text with elements in it.
    Nested { text: Nested, schema: Schema },
}

impl ValueReader {
    /// Creates a reader of a string without the white space around it.
    pub(in crate::parser) fn trimmed(name: &str, close: String, entities: Entities) -> Self {
        let state = State::Trimmed(TrimmedText::new(entities));
        Self { name: name.to_owned(), close, state }
    }

    /// Creates a reader of unchanged text, which may be between two markers.
    pub(in crate::parser) fn verbatim(name: &str, close: String, start: &str, end: &str) -> Self {
        let state = State::Verbatim { start: start.to_owned(), end: end.to_owned() };
        Self { name: name.to_owned(), close, state }
    }

    /// Creates a reader of a value that is no string; it may have elements of the same name.
    pub(in crate::parser) fn nested(name: &str, close: String, element: &str, schema: Schema) -> Self {
        let text = Nested::new(element, close.clone());
        Self { name: name.to_owned(), close, state: State::Nested { text, schema } }
    }

    /// Creates the reader of the argument that is the text of a short form.
    pub(in crate::parser) fn for_form(form: &ToolForm, close: String, entities: Entities) -> Self {
        match &form.body_text {
            BodyText::Value => Self::trimmed(&form.body, close, entities),
            BodyText::Verbatim { start, end } => Self::verbatim(&form.body, close, start, end),
        }
    }

    pub(in crate::parser) fn close(&self) -> &str {
        &self.close
    }

    /// Writes the beginning of the value.
    pub(in crate::parser) fn begin(&self, arguments: &mut ArgumentsWriter, out: &mut Output<'_>) {
        if !matches!(self.state, State::Nested { .. }) {
            arguments.open_string(&self.name, out);
        }
    }

    /// Reads on. Returns whether the closing marker is next.
    pub(in crate::parser) fn read(
        &mut self,
        input: &mut Input,
        tail: Tail,
        arguments: &mut ArgumentsWriter,
        out: &mut Output<'_>,
    ) -> bool {
        while !input.is_empty() {
            let next = match &mut self.state {
                State::Trimmed(text) => match text.read(&self.close, input, tail, arguments, out) {
                    Trimmed::Waits => return false,
                    Trimmed::Ends => return true,
                    Trimmed::Section(end) => State::Marked { end: end.to_owned() },
                },
                State::Verbatim { start, end } => match begins_with(input.rest(), start, tail) {
                    Some(Some(length)) => {
                        out.body(input.take(length));
                        State::LineBreak { end: Some(std::mem::take(end)) }
                    }
                    Some(None) => State::LineBreak { end: None },
                    None => return false,
                },
                State::LineBreak { end } => {
                    let Some(length) = line_break(input.rest(), tail) else { return false };
                    out.body(input.take(length));
                    end.take().map_or(State::Plain, |end| State::Marked { end })
                }
                State::Plain => return read_plain(&self.close, input, tail, arguments, out),
                State::Marked { end } => return read_marked(end, &self.close, input, tail, arguments, out),
                State::Nested { text, .. } => return text.read(input, tail, out),
            };
            self.state = next;
        }
        false
    }

    /// Writes the end of the value.
    pub(in crate::parser) fn end(self, arguments: &mut ArgumentsWriter, out: &mut Output<'_>) {
        match self.state {
            State::Nested { text, schema } => arguments.member(&self.name, &text.value(&schema), out),
            _ => arguments.close_string(out),
        }
    }
}

/// Returns the length of `marker` and of white space before it, if the text begins with them.
///
/// `Some(None)`: it does not. `None`: more text is needed.
fn begins_with(text: &str, marker: &str, tail: Tail) -> Option<Option<usize>> {
    let rest = text.trim_start();
    let space = text.len() - rest.len();
    match marker_at(rest, marker) {
        Marker::Whole if space <= MAX_SPACE => Some(Some(space + marker.len())),
        Marker::Maybe if space <= MAX_SPACE && tail == Tail::Open => None,
        _ => Some(None),
    }
}

/// Returns the length of a line break at the start of a text, and `None` if more text is needed.
fn line_break(text: &str, tail: Tail) -> Option<usize> {
    match text {
        "\r" if tail == Tail::Open => None,
        text if text.starts_with('\n') => Some(1),
        text if text.starts_with("\r\n") => Some(2),
        _ => Some(0),
    }
}

fn read_plain(
    close: &str,
    input: &mut Input,
    tail: Tail,
    arguments: &mut ArgumentsWriter,
    out: &mut Output<'_>,
) -> bool {
    let close = find_close(input.rest(), close, tail);
    let (Close::At(length) | Close::Beyond(length)) = close;
    content(input.take(length), arguments, out);
    matches!(close, Close::At(_))
}

fn read_marked(
    end: &str,
    close: &str,
    input: &mut Input,
    tail: Tail,
    arguments: &mut ArgumentsWriter,
    out: &mut Output<'_>,
) -> bool {
    let rest = input.rest();
    let first = end.chars().next().unwrap_or_default();
    let mut content_length = rest.len();
    for (at, _) in rest.match_indices(first) {
        let from = rest.get(at..).unwrap_or_default();
        if let Some(after) = from.strip_prefix(end) {
            let next = after.trim_start();
            let space = after.len() - next.len();
            match marker_at(next, close) {
                Marker::Whole if space <= MAX_SPACE => {
                    content(input.take(at), arguments, out);
                    out.body(input.take(end.len() + space));
                    return true;
                }
                Marker::Maybe if tail == Tail::Open && space <= MAX_SPACE => {}
                _ => continue,
            }
        } else if tail == Tail::Ended || !end.starts_with(from) {
            continue;
        }
        content_length = at;
        break;
    }
    content(input.take(content_length), arguments, out);
    false
}

fn content(text: &str, arguments: &mut ArgumentsWriter, out: &mut Output<'_>) {
    out.body(text);
    arguments.piece(text, out);
}
