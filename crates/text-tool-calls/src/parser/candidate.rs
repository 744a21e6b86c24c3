//! `Candidate`: a call in one syntax, and its methods for all syntaxes.

use super::event::Output;
use super::format::TextFormat;
use super::input::{Input, Tail};
use super::json::{Balance, JsonCalls};
use super::opening::Opening;
use super::sentinel::SentinelCall;
use super::settings::{OnCut, ParserSettings};
use super::vendor::deepseek::DeepSeekCalls;
use super::vendor::tokens::{DEEPSEEK, KIMI, TokenCalls};
use super::xml::XmlCall;
use crate::tools::TextTools;

/// A text that may begin with a call, and then the call.
#[derive(Debug)]
pub(super) enum Candidate {
    Xml(XmlCall),
    Json(JsonCalls),
    Sentinel(SentinelCall),
    DeepSeek(DeepSeekCalls),
    Tokens(TokenCalls),
}

impl Candidate {
    /// Creates the candidates of a format: one for each of its syntaxes.
    pub(super) fn for_format(
        format: TextFormat,
        tools: &TextTools,
        settings: &ParserSettings,
    ) -> impl Iterator<Item = Self> {
        let (one, tokens): (_, &[_]) = match format {
            TextFormat::Xml => (Some(Self::Xml(XmlCall::new(tools, settings))), &[]),
            TextFormat::Json => (Some(Self::Json(JsonCalls::new(tools, settings))), &[]),
            TextFormat::Sentinel => (Some(Self::Sentinel(SentinelCall::new(tools, settings))), &[]),
            TextFormat::DeepSeek => (Some(Self::DeepSeek(DeepSeekCalls::new(tools, settings))), &DEEPSEEK),
            TextFormat::Kimi => (None, &KIMI),
        };
        one.into_iter()
            .chain(tokens.iter().map(|tokens| Self::Tokens(TokenCalls::new(tokens, tools, settings))))
    }

    /// Checks the text from its first character on, without consuming it.
    pub(super) fn open(&mut self, text: &str) -> Opening {
        match self {
            Self::Xml(call) => call.open(text),
            Self::Json(call) => call.open(text),
            Self::Sentinel(call) => call.open(text),
            Self::DeepSeek(call) => call.open(text),
            Self::Tokens(call) => call.open(text),
        }
    }

    /// Gives up on text that is still undecided.
    pub(super) fn give_up(&self) -> Opening {
        match self {
            Self::Json(call) => call.no_call(),
            _ => Opening::No(1),
        }
    }

    /// Returns the finder of the end of JSON that is no call, if the text is JSON.
    pub(super) fn balance(&self) -> Option<Balance> {
        match self {
            Self::Json(call) => Some(call.balance()),
            _ => None,
        }
    }

    /// Reads on after the opening. Returns whether the calls have ended.
    pub(super) fn read(&mut self, input: &mut Input, tail: Tail, out: &mut Output<'_>) -> bool {
        match self {
            Self::Xml(call) => call.read(input, tail, out),
            Self::Json(call) => call.read(input, out),
            Self::Sentinel(call) => call.read(input, tail, out),
            Self::DeepSeek(call) => call.read(input, tail, out),
            Self::Tokens(call) => call.read(input, tail, out),
        }
    }

    /// Ends the open call with the text.
    pub(super) fn cut(self, on_cut: OnCut, out: &mut Output<'_>) {
        match self {
            Self::Xml(call) => call.cut(on_cut, out),
            Self::Json(call) => call.cut(on_cut, out),
            Self::Sentinel(call) => call.cut(on_cut, out),
            Self::DeepSeek(call) => call.cut(on_cut, out),
            Self::Tokens(call) => call.cut(on_cut, out),
        }
    }
}
