//! `TextCallParser`: the state machine around all formats: text, white space and fences, undecided text, calls.
//!
//! It knows no other syntax. A format decides only about its own markup.

mod call;
pub(crate) mod event;
mod input;
mod json;
mod lead;
mod scan;
mod steps;
pub(crate) mod syntax;
#[cfg(test)]
mod tests;
mod value;

use std::fmt;

use self::call::Call;
use self::event::{Output, ParserError, ParserEvent, ParserLimits};
use self::input::Input;
use self::lead::{After, Lead, Next};
use self::scan::{Scan, Tail};
use self::syntax::{Candidate, Opened, Opening, Syntax};
use crate::format::TextFormat;
use crate::tools::TextTools;

/// Finds the tool calls in a text that arrives in pieces.
///
/// Any split of the text gives the same calls, with the same text around and in them. Only this is held back: text
/// that may begin or end a call, white space between calls, an XML argument unless it is read unchanged, and a call in
/// JSON.
///
/// A text that only looks like a call is text. Bounds are in [`ParserLimits`](crate::ParserLimits).
///
/// # Errors
/// [`push`](Self::push) and [`finish`](Self::finish) fail at a call beyond a bound, and after an error or the end.
///
/// # Example
/// ```
/// use advisor_core::ToolDefinition;
/// use serde_json::json;
/// use text_tool_calls::{ParserEvent, ParserLimits, TextCallParser, TextFormat, TextTools};
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// let weather = ToolDefinition::new("weather", "Tells the weather.", schema);
/// let mut parser = TextCallParser::new([TextFormat::Xml], &TextTools::new([&weather]), ParserLimits::default());
/// let mut events = Vec::new();
/// for piece in ["Let me see. <to", "ol name=\"weather\"><arg name=\"city\">Os", "lo</arg></tool>"] {
///     parser.push(piece, &mut events)?;
/// }
/// parser.finish(&mut events)?;
/// let arguments: String = events
///     .iter()
///     .filter_map(|event| match event {
///         ParserEvent::Arguments(piece) => Some(piece.as_str()),
///         _ => None,
///     })
///     .collect();
/// assert_eq!(events[0], ParserEvent::Text("Let me see. ".into()));
/// assert_eq!(arguments, r#"{"city":"Oslo"}"#);
/// assert_eq!(events.last(), Some(&ParserEvent::Closed { complete: true }));
/// # Ok::<(), text_tool_calls::ParserError>(())
/// ```
pub struct TextCallParser {
    formats: Vec<TextFormat>,
    tools: TextTools,
    limits: ParserLimits,
    input: Input,
    state: State,
    lead: Lead,
    /// The number of calls that the text may still have. Several texts of an answer share it.
    calls_left: usize,
}

enum State {
    Text,
    /// In white space and fences after this.
    Lead(After),
    /// In text that may begin a call, with a candidate for each syntax that is still possible.
    Undecided(Vec<Candidate>),
    /// In a call, of which this number of bytes was read.
    Call(Box<Call>, usize),
    /// In JSON that is no call.
    Data(Data),
    Ended,
}

impl TextCallParser {
    /// Creates a parser of calls of these tools, in any of these formats.
    pub fn new(
        formats: impl IntoIterator<Item = TextFormat>,
        tools: &TextTools,
        limits: ParserLimits,
    ) -> Self {
        Self {
            formats: formats.into_iter().collect(),
            tools: tools.clone(),
            limits,
            input: Input::default(),
            state: State::Lead(After::Text),
            lead: Lead::default(),
            calls_left: limits.calls,
        }
    }

    /// Reads a piece of the text, and appends its events as far as they are decided.
    ///
    /// # Errors
    /// [`ParserError::CallTooLong`], [`ParserError::TooManyCalls`]; [`ParserError::Ended`] after an error or the end.
    pub fn push(&mut self, text: &str, events: &mut Vec<ParserEvent>) -> Result<(), ParserError> {
        self.input.push(text);
        self.run(Tail::Open, events)
    }

    /// Ends the text. Text that is held back is emitted, and an open call is cut off.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self, events: &mut Vec<ParserEvent>) -> Result<(), ParserError> {
        self.run(Tail::Ended, events)?;
        let out = &mut self.output(events);
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Call(call, _) => call.cut(out),
            State::Lead(After::Call) if self.lead.is_white_space() => {
                out.markup(&self.lead.take_before_text());
            }
            _ => {}
        }
        out.text(&self.lead.take_before_text());
        out.text(self.input.take(usize::MAX));
        Ok(())
    }

    /// Reads a piece of the text, or its end, as one of several texts that share the number of calls that are left.
    pub(crate) fn read(
        &mut self,
        piece: Option<&str>,
        calls_left: &mut usize,
        events: &mut Vec<ParserEvent>,
    ) -> Result<(), ParserError> {
        self.calls_left = *calls_left;
        let result = match piece {
            Some(text) => self.push(text, events),
            None => self.finish(events),
        };
        *calls_left = self.calls_left;
        result
    }

    fn run(&mut self, tail: Tail, events: &mut Vec<ParserEvent>) -> Result<(), ParserError> {
        if matches!(self.state, State::Ended) {
            return Err(ParserError::Ended);
        }
        let mut out = self.output(events);
        let result = loop {
            if self.input.rest().is_empty() {
                break Ok(());
            }
            match self.step(tail, &mut out) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => {
                    self.state = State::Ended;
                    break Err(error);
                }
            }
        };
        self.calls_left = out.calls_left;
        result
    }

    fn output<'a>(&self, events: &'a mut Vec<ParserEvent>) -> Output<'a> {
        Output { events, calls_left: self.calls_left, most_calls: self.limits.calls }
    }

    /// Reads on. Returns whether the rest can be read without more text.
    fn step(&mut self, tail: Tail, out: &mut Output<'_>) -> Result<bool, ParserError> {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Text => self.read_text(out),
            State::Lead(after) => return Ok(self.read_lead(after, tail, out)),
            State::Undecided(candidates) => return self.decide(candidates, tail, out),
            State::Call(call, bytes) => return self.read_call(call, bytes, tail, out),
            State::Data(mut data) => {
                let end = data.end(self.input.rest());
                out.text(self.input.take(end.unwrap_or(usize::MAX)));
                if end.is_none() {
                    self.state = State::Data(data);
                }
            }
            State::Ended => return Err(ParserError::Ended),
        }
        Ok(true)
    }

    /// Passes text on up to a character that may begin a call or a fence.
    fn read_text(&mut self, out: &mut Output<'_>) {
        let may_begin =
            |letter: char| letter == '`' || self.formats.iter().any(|format| format.begins_with(letter));
        let next = self.input.rest().find(may_begin);
        steps::count(next.unwrap_or(self.input.rest().len()) + 1);
        out.text(self.input.take(next.unwrap_or(usize::MAX)));
        if next.is_some() {
            self.state = State::Lead(After::Text);
        }
    }

    /// Collects white space and a fence, until the text after them decides their meaning.
    fn read_lead(&mut self, after: After, tail: Tail, out: &mut Output<'_>) -> bool {
        self.state = State::Lead(after);
        match self.lead.next(self.input.rest(), after, tail) {
            Next::Undecided => return false,
            Next::Lead(length) => self.lead.push(self.input.take(length)),
            Next::FenceEnd(length) => {
                out.markup(&self.lead.take_before_fence_end());
                out.markup(self.input.take(length));
            }
            Next::TextFence(length) => {
                out.text(&self.lead.take_before_text());
                out.text(self.input.take(length));
                self.lead.pass_text_fence();
                self.state = State::Text;
            }
            Next::Other(first) => {
                let formats = self.formats.iter().filter(|format| format.begins_with(first));
                let syntaxes = formats.flat_map(|format| format.syntaxes());
                let syntaxes =
                    syntaxes.filter(|syntax| after == After::Call || !matches!(syntax, Syntax::EndMarker(_)));
                self.state = State::Undecided(syntaxes.copied().map(Candidate::new).collect());
            }
        }
        true
    }

    /// Decides whether the text begins with a call.
    fn decide(
        &mut self,
        candidates: Vec<Candidate>,
        tail: Tail,
        out: &mut Output<'_>,
    ) -> Result<bool, ParserError> {
        let limit = self.limits.undecided;
        let tail = if self.input.rest().len() >= limit { Tail::Ended } else { tail };
        let text = self.input.window(limit);
        let first = text.chars().next().map_or(1, char::len_utf8);
        let (mut undecided, mut length, mut is_data) = (Vec::new(), first, false);
        for mut candidate in candidates {
            match candidate.open(text, tail, &self.tools) {
                Opening::Undecided => undecided.push(candidate),
                Opening::No(text) => length = length.max(text),
                Opening::Data => is_data = true,
                Opening::Marker(length) => {
                    out.markup(&self.lead.take_before_call());
                    out.markup(self.input.take(length));
                    self.state = State::Lead(After::Call);
                    return Ok(true);
                }
                Opening::Call(opened) => return self.begin_call(*opened, out),
            }
        }
        if !undecided.is_empty() {
            self.state = State::Undecided(undecided);
            return Ok(false);
        }
        out.text(&self.lead.take_before_text());
        if is_data {
            self.state = State::Data(Data::default());
        } else {
            out.text(self.input.take(length));
        }
        Ok(true)
    }

    fn begin_call(&mut self, opened: Opened, out: &mut Output<'_>) -> Result<bool, ParserError> {
        out.markup(&self.lead.take_before_call());
        let bytes = opened.length;
        let call = Call::begin(opened, &self.tools, self.limits, &mut self.input, out)?;
        self.state = State::Call(Box::new(call), bytes);
        Ok(true)
    }

    fn read_call(
        &mut self,
        mut call: Box<Call>,
        bytes: usize,
        tail: Tail,
        out: &mut Output<'_>,
    ) -> Result<bool, ParserError> {
        let before = self.input.rest().len();
        let ended = call.read(&mut self.input, tail, out)?;
        let left = self.input.rest().len();
        let (bytes, limit) = (bytes + before - left, self.limits.call);
        // Text that is held back may turn out not to be part of the call, so it does not count with the rest.
        if bytes > limit || (!ended && left > limit) {
            return Err(ParserError::CallTooLong { limit });
        }
        if ended {
            self.state = State::Lead(After::Call);
            return Ok(true);
        }
        self.state = State::Call(call, bytes);
        Ok(false)
    }
}

/// Its text is content, so it is left out.
impl fmt::Debug for TextCallParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextCallParser").field("formats", &self.formats).finish_non_exhaustive()
    }
}

/// Finds the end of JSON that is no call.
///
/// JSON ends where its brackets close. Since it may be invalid, it also ends at an empty line and at a fence.
#[derive(Default)]
struct Data {
    scan: Scan,
    /// Whether the line so far is white space.
    line_is_empty: bool,
}

impl Data {
    /// Returns the length of the text up to the end, or `None` if the end is not in the text.
    fn end(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'\n' if self.line_is_empty => return Some(at + 1),
                b'`' if self.line_is_empty => return Some(at),
                b'\n' => self.line_is_empty = true,
                b' ' | b'\t' | b'\r' => {}
                _ => self.line_is_empty = false,
            }
            if self.scan.closes_with(byte) {
                return Some(at + 1);
            }
        }
        None
    }
}
