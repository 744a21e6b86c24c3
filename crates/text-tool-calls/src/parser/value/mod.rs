//! `ValueReader`: reads the text of one argument up to its closing marker.

pub(super) mod arguments;
pub(super) mod nested;
pub(super) mod trimmed;

use advisor_core::Text;

use self::arguments::ArgumentsWriter;
use self::nested::Nested;
use self::trimmed::{Entities, Trimmed, TrimmedText};
use crate::parser::event::Output;
use crate::parser::input::{Input, Tail};
use crate::parser::marker::{Close, Marker, find_close, marker_at, space_within};
use crate::parser::steps;
use crate::tools::coercion::ArgumentSchema;
use crate::tools::{BodyMarkers, BodyText, ToolForm};

/// The white space that is held back between a marker and the closing tag, in bytes.
const MAX_SPACE: usize = 128;

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
    /// Text that these markers may surround.
    Verbatim(BodyMarkers),
    /// Right before verbatim text: one line break is left out.
    LineBreak(TextEnd),
    /// Verbatim text.
    Text(TextEnd),
    /// Text with elements in it.
    Nested { text: Nested, schema: ArgumentSchema },
}

/// The end of verbatim text.
#[derive(Debug, Clone)]
enum TextEnd {
    /// The closing marker.
    Close,
    /// This marker, if the closing marker follows it.
    Marker(Text),
}

/// The beginning of a text that a marker may open.
enum Beginning {
    /// The marker, with the white space before it in bytes.
    Marker(usize),
    Other,
    /// Depends on what follows.
    Undecided,
}

impl ValueReader {
    /// Creates a reader of a string without the white space around it.
    pub(in crate::parser) fn trimmed(name: &str, close: String, entities: Entities) -> Self {
        let state = State::Trimmed(TrimmedText::new(entities));
        Self { name: name.to_owned(), close, state }
    }

    /// Creates a reader of a value that is no string; it may have elements of the same name.
    pub(in crate::parser) fn nested(
        name: &str,
        close: String,
        element: &str,
        schema: ArgumentSchema,
    ) -> Self {
        let text = Nested::new(element, close.clone());
        Self { name: name.to_owned(), close, state: State::Nested { text, schema } }
    }

    /// Creates the reader of the argument that is the text of a short form.
    pub(in crate::parser) fn for_form(form: &ToolForm, close: String, entities: Entities) -> Self {
        let state = match &form.body_text {
            BodyText::Value => return Self::trimmed(&form.body, close, entities),
            BodyText::Verbatim(Some(markers)) => State::Verbatim(markers.clone()),
            BodyText::Verbatim(None) => State::LineBreak(TextEnd::Close),
        };
        Self { name: form.body.to_string(), close, state }
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
                    Trimmed::Section(end) => State::Text(TextEnd::Marker(end.into())),
                },
                State::Verbatim(markers) => match beginning(input.rest(), markers.start(), tail) {
                    Beginning::Marker(length) => {
                        out.body(input.take(length));
                        State::LineBreak(TextEnd::Marker(markers.end().into()))
                    }
                    Beginning::Other => State::LineBreak(TextEnd::Close),
                    Beginning::Undecided => return false,
                },
                State::LineBreak(end) => {
                    let Some(length) = line_break(input.rest(), tail) else { return false };
                    out.body(input.take(length));
                    State::Text(end.clone())
                }
                State::Text(TextEnd::Close) => return read_plain(&self.close, input, tail, arguments, out),
                State::Text(TextEnd::Marker(end)) => {
                    return read_marked(end, &self.close, input, tail, arguments, out);
                }
                State::Nested { text, .. } => return text.read(input, tail, out),
            };
            self.state = next;
        }
        false
    }

    /// Writes the end of the value.
    pub(in crate::parser) fn end(self, arguments: &mut ArgumentsWriter, out: &mut Output<'_>) {
        match self.state {
            State::Nested { text, schema } => arguments.member(&self.name, &text.value(schema.schema()), out),
            _ => arguments.close_string(out),
        }
    }
}

/// Looks for `marker` at the start of a text, behind white space.
fn beginning(text: &str, marker: &str, tail: Tail) -> Beginning {
    let space = space_within(text, MAX_SPACE);
    match marker_at(text.get(space..).unwrap_or_default(), marker) {
        Marker::Whole => Beginning::Marker(space + marker.len()),
        Marker::Maybe if tail == Tail::Open => Beginning::Undecided,
        Marker::Maybe | Marker::None => Beginning::Other,
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
    // An empty marker is none.
    let Some(first) = end.chars().next() else { return read_plain(close, input, tail, arguments, out) };
    let rest = input.rest();
    steps::count(rest.len());
    let mut content_length = rest.len();
    for (at, _) in rest.match_indices(first) {
        let from = rest.get(at..).unwrap_or_default();
        if let Some(after) = from.strip_prefix(end) {
            let space = space_within(after, MAX_SPACE);
            match marker_at(after.get(space..).unwrap_or_default(), close) {
                Marker::Whole => {
                    content(input.take(at), arguments, out);
                    out.body(input.take(end.len() + space));
                    return true;
                }
                Marker::Maybe if tail == Tail::Open => {}
                Marker::Maybe | Marker::None => continue,
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
