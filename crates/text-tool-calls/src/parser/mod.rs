//! `TextCallParser`: the state machine around all formats: text, white space and fences, undecided text, calls.
//!
//! It knows no other syntax. A format decides only about its own markup.

mod candidate;
pub(crate) mod event;
pub(crate) mod format;
mod input;
mod json;
mod lead;
pub(crate) mod limits;
mod marker;
pub(crate) mod markup;
mod opening;
mod sentinel;
pub(crate) mod settings;
pub(crate) mod steps;
#[cfg(test)]
mod tests;
mod undecided;
mod value;
mod vendor;
mod xml;

use self::candidate::Candidate;
use self::event::{Output, ParserEvent};
use self::format::TextFormat;
use self::input::{Input, Tail};
use self::json::Balance;
use self::lead::{After, InLine, Lead, Next};
use self::limits::ParserError;
use self::settings::{OnCut, ParserSettings};
use self::undecided::{Decision, Undecided};
use crate::tools::TextTools;

/// Finds the tool calls in a text that arrives in pieces.
///
/// Any split of the text gives the same calls, with the same text around and in them. Only two things are held
/// back: text that may begin or end a call, and white space between calls.
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
/// use text_tool_calls::{CallEnd, ParserEvent, TextCallParser, TextFormat, TextTools};
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
/// let weather = ToolDefinition::new("weather", "Tells the weather.", schema);
/// let mut parser = TextCallParser::new([TextFormat::Xml], &TextTools::new([&weather]));
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
/// assert_eq!(events.last(), Some(&ParserEvent::Closed(CallEnd::Complete)));
/// # Ok::<(), text_tool_calls::ParserError>(())
/// ```
#[derive(Debug)]
pub struct TextCallParser {
    formats: Vec<TextFormat>,
    tools: TextTools,
    settings: ParserSettings,
    input: Input,
    state: State,
    lead: Lead,
    /// The number of calls that the text may still have.
    calls_left: usize,
    /// The place of the next character.
    place: InLine,
}

#[derive(Debug)]
enum State {
    Text,
    /// In white space and fences after this.
    Lead(After),
    /// In text that may begin a call.
    Undecided(Undecided, After),
    /// In a call, of which this number of bytes was read.
    Call(Box<Candidate>, usize),
    /// In JSON that is no call.
    Data(Balance),
    Ended,
}

/// Whether more text is needed to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Made,
    Waits,
}

impl TextCallParser {
    /// Creates a parser of calls of these tools, in any of these formats.
    pub fn new(formats: impl IntoIterator<Item = TextFormat>, tools: &TextTools) -> Self {
        Self::with_settings(formats, tools, ParserSettings::default())
    }

    /// Creates a parser with other settings.
    pub fn with_settings(
        formats: impl IntoIterator<Item = TextFormat>,
        tools: &TextTools,
        settings: ParserSettings,
    ) -> Self {
        Self {
            formats: formats.into_iter().collect(),
            tools: tools.clone(),
            calls_left: settings.limits.calls,
            settings,
            input: Input::default(),
            state: State::Lead(After::Text),
            lead: Lead::default(),
            place: InLine::Start,
        }
    }

    /// Reads a piece of the text, and appends its events as far as they are decided.
    ///
    /// # Errors
    /// [`ParserError::CallTooLong`], [`ParserError::TooManyCalls`]; [`ParserError::Ended`] after an error or the end.
    pub fn push(&mut self, text: &str, events: &mut Vec<ParserEvent>) -> Result<(), ParserError> {
        if matches!(self.state, State::Ended) {
            return Err(ParserError::Ended);
        }
        self.input.push(text);
        self.run(Tail::Open, &mut Output::new(events, self.calls_left))
    }

    /// Ends the text. Text that is held back is emitted, and an open call is cut off.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self, events: &mut Vec<ParserEvent>) -> Result<(), ParserError> {
        let out = &mut Output::new(events, self.calls_left);
        if matches!(self.state, State::Ended) {
            return Err(ParserError::Ended);
        }
        self.run(Tail::Ended, out)?;
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Call(call, _) => call.cut(self.settings.on_cut, out),
            State::Lead(After::Call) if self.lead.is_white_space() => {
                out.markup(&self.lead.take_before_text());
            }
            _ => {}
        }
        out.text(&self.lead.take_before_text());
        out.text(self.input.take_all());
        Ok(())
    }

    /// Ends the text, which was broken off: an open call is incomplete under any policy.
    pub(crate) fn break_off(&mut self, events: &mut Vec<ParserEvent>) -> Result<(), ParserError> {
        self.settings.on_cut = OnCut::Incomplete;
        self.finish(events)
    }

    /// Returns the bytes of the text that are held back.
    #[must_use]
    pub fn held_back(&self) -> usize {
        self.lead.len() + self.input.rest().len()
    }

    /// Returns the number of calls that the text may still have.
    pub(crate) fn calls_left(&self) -> usize {
        self.calls_left
    }

    /// Sets the number of calls that the text may still have, for one of several texts of an answer.
    pub(crate) fn set_calls_left(&mut self, calls: usize) {
        self.calls_left = calls;
    }

    fn run(&mut self, tail: Tail, out: &mut Output<'_>) -> Result<(), ParserError> {
        while !self.input.is_empty() && self.step(tail, out)? == Progress::Made {}
        Ok(())
    }

    fn step(&mut self, tail: Tail, out: &mut Output<'_>) -> Result<Progress, ParserError> {
        match &mut self.state {
            State::Text => Ok(self.read_text(out)),
            &mut State::Lead(after) => Ok(self.read_lead(after, tail, out)),
            State::Undecided(..) => Ok(self.decide(tail, out)),
            State::Call(..) => self.read_call(tail, out),
            State::Data(balance) => {
                let end = balance.pass(self.input.rest());
                self.emit_text(end.unwrap_or(usize::MAX), out);
                if end.is_some() {
                    self.state = State::Text;
                }
                Ok(Progress::Made)
            }
            State::Ended => Err(ParserError::Ended),
        }
    }

    /// Passes text on up to a character that may begin a call or a fence.
    fn read_text(&mut self, out: &mut Output<'_>) -> Progress {
        let may_begin =
            |letter: char| letter == '`' || self.formats.iter().any(|format| format.begins_with(letter));
        let next = self.input.rest().char_indices().find(|(_, letter)| may_begin(*letter)).map(|(at, _)| at);
        steps::count(next.unwrap_or(self.input.rest().len()) + 1);
        self.emit_text(next.unwrap_or(usize::MAX), out);
        if next.is_some() {
            self.state = State::Lead(After::Text);
        }
        Progress::Made
    }

    /// Collects white space and a fence, until the text after them decides their meaning.
    fn read_lead(&mut self, after: After, tail: Tail, out: &mut Output<'_>) -> Progress {
        match self.lead.next(self.input.rest(), after, self.place, tail) {
            Next::Undecided => return Progress::Waits,
            Next::Lead(length) => {
                let text = self.input.take(length);
                self.place = self.place.after(text);
                self.lead.push(text);
            }
            Next::FenceEnd(length) => {
                out.markup(&self.lead.take_before_fence_end());
                out.markup(self.input.take(length));
                self.place = InLine::Middle;
            }
            Next::Other(first) => match Undecided::new(first, &self.formats, &self.tools, &self.settings) {
                Some(undecided) => self.state = State::Undecided(undecided, after),
                None => {
                    out.text(&self.lead.take_before_text());
                    self.emit_text(first.len_utf8(), out);
                    self.state = State::Text;
                }
            },
        }
        Progress::Made
    }

    /// Decides whether the text begins with a call.
    fn decide(&mut self, tail: Tail, out: &mut Output<'_>) -> Progress {
        let State::Undecided(undecided, after) = std::mem::replace(&mut self.state, State::Text) else {
            return Progress::Made;
        };
        let limit = self.settings.limits.undecided;
        let tail = if self.input.rest().len() >= limit { Tail::Ended } else { tail };
        match undecided.decide(self.input.window(limit), tail) {
            Decision::Waits(undecided) => {
                self.state = State::Undecided(undecided, after);
                return Progress::Waits;
            }
            Decision::Call(call) => {
                out.markup(&self.lead.take_before_call());
                self.state = State::Call(call, 0);
            }
            Decision::Text(length, data) => {
                out.text(&self.lead.take_before_text());
                self.emit_text(length, out);
                self.state = data.map_or(State::Text, State::Data);
            }
        }
        Progress::Made
    }

    fn read_call(&mut self, tail: Tail, out: &mut Output<'_>) -> Result<Progress, ParserError> {
        let State::Call(call, bytes) = &mut self.state else { return Ok(Progress::Made) };
        let before = self.input.rest().len();
        let ended = call.read(&mut self.input, tail, out);
        self.calls_left = out.calls_left();
        if out.drop_excess() {
            self.state = State::Ended;
            return Err(ParserError::TooManyCalls { limit: self.settings.limits.calls });
        }
        let left = self.input.rest().len();
        *bytes += before - left;
        let limit = self.settings.limits.call;
        // Text that is held back may turn out not to be part of the call, so it does not count with the rest.
        if *bytes > limit || (!ended && left > limit) {
            self.state = State::Ended;
            return Err(ParserError::CallTooLong { limit });
        }
        if !ended {
            return Ok(Progress::Waits);
        }
        self.place = InLine::Middle;
        self.state = State::Lead(After::Call);
        Ok(Progress::Made)
    }

    /// Emits the first `bytes` of the input as text.
    fn emit_text(&mut self, bytes: usize, out: &mut Output<'_>) {
        let text = self.input.take(bytes);
        self.place = self.place.after(text);
        out.text(text);
    }
}
