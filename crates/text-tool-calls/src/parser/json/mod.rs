//! `JsonCalls`: calls as an object or a list.

mod balance;
mod brackets;
mod call;
mod key;
mod scan;

use advisor_core::ToolCall;

pub(super) use self::balance::Balance;
pub(super) use self::brackets::{Brackets, Place};
use self::scan::{Found, Scan};
use super::event::{CallEnd, OpenedCall, Output};
use super::format::TextFormat;
use super::input::Input;
use super::opening::Opening;
use super::settings::{OnCut, OnUnknownTool, ParserSettings};
use crate::tools::TextTools;

/// Calls as a JSON object or a list of them.
#[derive(Debug)]
pub(super) struct JsonCalls {
    tools: TextTools,
    on_unknown: OnUnknownTool,
    scan: Scan,
    /// The number of bytes that were read and not consumed.
    seen: usize,
    stage: Stage,
    /// The result of the last character, if it was not processed yet.
    pending: Found,
    /// Whether text other than a call follows in the list.
    is_broken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the start of a call, or in one whose name is not known yet.
    Before,
    /// The name of the call is known, and its start was not emitted yet.
    Named,
    /// In a call whose start was emitted.
    Within,
}

impl JsonCalls {
    pub(super) fn new(tools: &TextTools, settings: &ParserSettings) -> Self {
        Self {
            tools: tools.clone(),
            on_unknown: settings.on_unknown_tool.unwrap_or(OnUnknownTool::Text),
            scan: Scan::default(),
            seen: 0,
            stage: Stage::Before,
            pending: Found::Nothing,
            is_broken: false,
        }
    }

    pub(super) fn open(&mut self, text: &str) -> Opening {
        for letter in text.get(self.seen..).unwrap_or_default().chars() {
            let found = self.scan.take(self.seen, letter);
            self.seen += letter.len_utf8();
            if self.is_call() {
                self.stage = Stage::Named;
                self.pending = found;
                return Opening::Yes;
            }
            if found != Found::Nothing || self.is_of_unknown_tool() {
                return self.no_call();
            }
        }
        Opening::Undecided
    }

    /// Checks whether the object is certainly a call: it names a known tool, and has arguments or a key that only
    /// calls have.
    fn is_call(&self) -> bool {
        let call = self.scan.call.as_ref().filter(|call| call.is_explicit || call.has_arguments);
        call.is_some_and(|call| call.name.is_some()) && !self.is_of_unknown_tool()
    }

    fn is_of_unknown_tool(&self) -> bool {
        let name = self.scan.call.as_ref().and_then(|call| call.name.as_ref());
        name.is_some_and(|name| self.on_unknown == OnUnknownTool::Text && !self.tools.contains(name))
    }

    /// Returns the part of the text that is no call.
    pub(super) fn no_call(&self) -> Opening {
        match self.scan.has_key {
            _ if self.scan.has_ended() => Opening::No(self.seen),
            true => Opening::Data(self.seen),
            false => Opening::No(1),
        }
    }

    /// Returns the finder of the end of JSON that is no call.
    pub(super) fn balance(&self) -> Balance {
        Balance::new(self.scan.brackets())
    }

    /// Reads on. Returns whether the calls have ended.
    pub(super) fn read(&mut self, input: &mut Input, out: &mut Output<'_>) -> bool {
        loop {
            if self.stage == Stage::Named {
                self.emit_start(input, out);
            }
            match std::mem::replace(&mut self.pending, Found::Nothing) {
                Found::CallEnd => self.emit_end(input, out),
                Found::End => out.markup(input.take(self.seen)),
                Found::Nothing | Found::NotInCall => {}
            }
            if self.is_broken || self.scan.has_ended() {
                return true;
            }
            if !self.advance(input.rest()) {
                self.emit_so_far(input, out);
                return false;
            }
        }
    }

    /// Reads the rest of the text. Returns whether something can be emitted.
    fn advance(&mut self, text: &str) -> bool {
        for letter in text.get(self.seen..).unwrap_or_default().chars() {
            let was_outside = self.scan.place() == Place::OutsideStrings;
            let found = self.scan.take(self.seen, letter);
            // A list of calls ends at any other text, so that this text is not lost.
            let is_foreign = found == Found::NotInCall && self.stage == Stage::Before && was_outside;
            if is_foreign && self.scan.is_out_of_place() {
                self.pending = Found::End;
                self.is_broken = true;
                return true;
            }
            self.seen += letter.len_utf8();
            if self.stage == Stage::Before
                && let Some(call) = &mut self.scan.call
                && (call.name.is_some() || found == Found::CallEnd)
            {
                call.name.get_or_insert_with(|| ToolCall::UNNAMED.to_owned());
                self.stage = Stage::Named;
                self.pending = found;
                return true;
            }
            if matches!(found, Found::CallEnd | Found::End) {
                self.pending = found;
                return true;
            }
        }
        false
    }

    fn emit_start(&mut self, input: &mut Input, out: &mut Output<'_>) {
        self.stage = Stage::Within;
        let Some(call) = &mut self.scan.call else { return };
        out.markup(input.take(call.start));
        let opened = OpenedCall::new(TextFormat::Json, call.name.as_deref().unwrap_or(ToolCall::UNNAMED));
        out.opened(opened.with_id(call.id.take().unwrap_or_default()));
        self.seen -= call.start;
        call.start = 0;
        self.emit_so_far(input, out);
    }

    fn emit_end(&mut self, input: &mut Input, out: &mut Output<'_>) {
        self.emit_so_far(input, out);
        self.scan.call = None;
        self.stage = Stage::Before;
        out.closed(CallEnd::Complete);
    }

    /// Emits the part of the call that was read, or the text before the next call.
    fn emit_so_far(&mut self, input: &mut Input, out: &mut Output<'_>) {
        match (&mut self.scan.call, self.stage) {
            (Some(call), Stage::Before | Stage::Named) => {
                out.markup(input.take(call.start));
                self.seen -= call.start;
                call.start = 0;
            }
            (Some(call), Stage::Within) => {
                out.body(input.take(self.seen));
                out.arguments(&std::mem::take(&mut call.arguments));
                self.seen = 0;
            }
            (None, _) => {
                out.markup(input.take(self.seen));
                self.seen = 0;
            }
        }
    }

    pub(super) fn cut(self, on_cut: OnCut, out: &mut Output<'_>) {
        if self.stage == Stage::Within {
            out.closed(on_cut.end());
        }
    }
}
