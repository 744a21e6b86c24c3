//! `Tokens` and `Header`: the tokens of each, and the text from the beginning of a call to its arguments.

use advisor_core::ToolCall;

use crate::parser::event::OpenedCall;
use crate::parser::format::TextFormat;
use crate::parser::marker::{Marker, marker_at};
use crate::parser::steps;

const FENCE: &str = "\n```json\n";

/// The tokens of a model around its calls, and the form of the text between them.
#[derive(Debug)]
pub(in crate::parser) struct Tokens {
    format: TextFormat,
    pub(super) section: &'static str,
    pub(super) section_end: &'static str,
    pub(super) call: &'static str,
    arguments: &'static str,
    call_end: &'static str,
    form: HeaderForm,
}

/// The text from the beginning of a call to its arguments.
#[derive(Debug)]
enum HeaderForm {
    /// An id such as `functions.weather:0`.
    Id,
    /// The name of the tool.
    Name {
        /// The end of a call whose header is `function`; the name and a fence around the arguments follow.
        fenced_end: &'static str,
    },
}

/// The tokens of Kimi's models.
pub(in crate::parser) const KIMI: [Tokens; 1] = [Tokens {
    format: TextFormat::Kimi,
    section: "<|tool_calls_section_begin|>",
    section_end: "<|tool_calls_section_end|>",
    call: "<|tool_call_begin|>",
    arguments: "<|tool_call_argument_begin|>",
    call_end: "<|tool_call_end|>",
    form: HeaderForm::Id,
}];

/// The tokens of DeepSeek's models before their markup: V3.1 writes the name and the arguments, V3 and R1 write
/// `function`, the name, and the arguments in a fence. Some texts have ASCII bars in place of the model's own.
pub(in crate::parser) const DEEPSEEK: [Tokens; 2] = [
    Tokens {
        format: TextFormat::DeepSeek,
        section: "<｜tool▁calls▁begin｜>",
        section_end: "<｜tool▁calls▁end｜>",
        call: "<｜tool▁call▁begin｜>",
        arguments: "<｜tool▁sep｜>",
        call_end: "<｜tool▁call▁end｜>",
        form: HeaderForm::Name { fenced_end: "\n```<｜tool▁call▁end｜>" },
    },
    Tokens {
        format: TextFormat::DeepSeek,
        section: "<|tool▁calls▁begin|>",
        section_end: "<|tool▁calls▁end|>",
        call: "<|tool▁call▁begin|>",
        arguments: "<|tool▁sep|>",
        call_end: "<|tool▁call▁end|>",
        form: HeaderForm::Name { fenced_end: "\n```<|tool▁call▁end|>" },
    },
];

/// The result of a look at the beginning of a call.
pub(super) enum Header {
    /// Depends on what follows.
    Undecided,
    /// It is no call.
    None,
    /// The call, the bytes of its header, and the marker that ends its arguments.
    Whole(OpenedCall, usize, &'static str),
}

impl Tokens {
    /// Looks at a text that begins with the token of a call. Names and ids have no `<`, so scans of many tokens do not
    /// overlap.
    pub(super) fn header(&self, text: &str) -> Header {
        let after = text.get(self.call.len()..).unwrap_or_default();
        let end = after.find('<');
        steps::count(end.unwrap_or(after.len()));
        let Some((id, token)) = end.and_then(|end| after.split_at_checked(end)) else {
            return Header::Undecided;
        };
        match marker_at(token, self.arguments) {
            Marker::Whole => {}
            Marker::Maybe => return Header::Undecided,
            Marker::None => return Header::None,
        }
        let length = self.call.len() + id.len() + self.arguments.len();
        let (id, rest) = (id.trim(), token.get(self.arguments.len()..).unwrap_or_default());
        match self.form {
            HeaderForm::Id => {
                let call = OpenedCall::new(self.format, or_unnamed(name_in(id)));
                Header::Whole(call.with_id(id.to_owned()), length, self.call_end)
            }
            HeaderForm::Name { fenced_end } if id == "function" => match fenced_name(rest) {
                (Marker::Whole, name) => {
                    let call = OpenedCall::new(self.format, or_unnamed(name));
                    Header::Whole(call, length + name.len() + FENCE.len(), fenced_end)
                }
                (Marker::Maybe, _) => Header::Undecided,
                (Marker::None, _) => Header::Whole(OpenedCall::new(self.format, id), length, self.call_end),
            },
            HeaderForm::Name { .. } => {
                Header::Whole(OpenedCall::new(self.format, or_unnamed(id)), length, self.call_end)
            }
        }
    }
}

/// Looks for a name and the beginning of a fence. Returns the text before the fence.
fn fenced_name(text: &str) -> (Marker, &str) {
    let end = text.find(['\n', '{', '<']);
    steps::count(end.unwrap_or(text.len()));
    match end.and_then(|end| text.split_at_checked(end)) {
        Some((name, fence)) => (marker_at(fence, FENCE), name),
        None => (Marker::Maybe, text),
    }
}

/// Returns the name of the tool in an id such as `functions.weather:0`.
fn name_in(id: &str) -> &str {
    let name = id.strip_prefix("functions.").unwrap_or(id);
    match name.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => name,
    }
}

fn or_unnamed(name: &str) -> &str {
    if name.trim().is_empty() { ToolCall::UNNAMED } else { name.trim() }
}
