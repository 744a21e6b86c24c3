//! `Scan`: reads JSON by characters and finds the calls in it.

use super::brackets::{Brackets, Place};
use super::call::Call;
use super::key::Key;
use crate::json_string::{JsonStringDecoder, decoded};
use crate::parser::steps;

/// The most bytes of a name, an id or a key that are kept. A longer one is cut off, and is never a known one.
const MAX_NAME: usize = 256;

/// Reads JSON character by character and finds the calls in it.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The open brackets, outermost first.
    open: Vec<Role>,
    /// The last key, while its value is expected.
    key: Option<Key>,
    expects: Expects,
    string: Option<InString>,
    /// A number or a literal that is the arguments.
    scalar: String,
    /// The call that the current object is part of.
    pub(super) call: Option<Call>,
    /// Whether the calls are in a list under a key for calls.
    is_listed: bool,
    /// Whether a key was begun.
    pub(super) has_key: bool,
}

/// The role of an open bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    List,
    /// The object around a list of calls.
    Container,
    Call,
    /// An object within a call that has its name or its arguments.
    Part,
    Arguments,
    Other,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Expects {
    Key,
    #[default]
    Value,
    /// A comma, a colon or the end.
    Separator,
}

#[derive(Debug)]
struct InString {
    is_escaped: bool,
    purpose: Purpose,
}

#[derive(Debug)]
enum Purpose {
    Key(String),
    Name(String),
    Id(String),
    /// Arguments as JSON in a string.
    Arguments(JsonStringDecoder),
    /// A string within the arguments.
    Raw,
    Other,
}

/// The result of reading a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// The character cannot be part of a call.
    NotInCall,
    /// The object of a call has ended.
    CallEnd,
    /// The outermost bracket, which is no call, has closed.
    End,
}

impl Scan {
    pub(super) fn brackets(&self) -> Brackets {
        Brackets::new(self.open.len(), self.place())
    }

    /// Returns the place of the next character.
    pub(super) fn place(&self) -> Place {
        match &self.string {
            None => Place::OutsideStrings,
            Some(string) if string.is_escaped => Place::Escaped,
            Some(_) => Place::InString,
        }
    }

    /// Checks whether the next text, unless it can be part of a call, ends the list.
    pub(super) fn is_out_of_place(&self) -> bool {
        let in_list = self.open.last() == Some(&Role::List);
        self.call.is_none() && self.string.is_none() && (in_list || self.expects == Expects::Separator)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes the character at this byte.
    pub(super) fn take(&mut self, at: usize, letter: char) -> Found {
        steps::count(letter.len_utf8());
        if self.string.is_some() {
            return self.take_in_string(letter);
        }
        if self.open.last() == Some(&Role::Arguments) {
            self.take_in_arguments(letter);
            return Found::Nothing;
        }
        match letter {
            '{' | '[' => self.open(at, letter),
            '}' | ']' => self.close(),
            '"' => self.begin_string(),
            ':' => {
                self.expects = Expects::Value;
                Found::Nothing
            }
            ',' => {
                self.end_scalar();
                let is_item = self.open.last() == Some(&Role::List);
                self.expects = if is_item { Expects::Value } else { Expects::Key };
                Found::Nothing
            }
            letter if letter.is_ascii_whitespace() => Found::Nothing,
            letter => self.take_scalar(letter),
        }
    }

    fn take_in_string(&mut self, letter: char) -> Found {
        let Some(string) = &mut self.string else { return Found::Nothing };
        let ends = letter == '"' && !string.is_escaped;
        string.is_escaped = letter == '\\' && !string.is_escaped;
        match &mut string.purpose {
            Purpose::Key(text) | Purpose::Name(text) | Purpose::Id(text)
                if !ends && text.len() < MAX_NAME =>
            {
                text.push(letter);
            }
            Purpose::Arguments(decoder) => {
                if let Some(call) = &mut self.call {
                    if ends {
                        decoder.end(&mut call.arguments);
                    } else {
                        decoder.push(letter, &mut call.arguments);
                    }
                }
            }
            Purpose::Raw => self.push_argument(letter),
            _ => {}
        }
        if ends { self.end_string() } else { Found::Nothing }
    }

    fn end_string(&mut self) -> Found {
        let Some(string) = self.string.take() else { return Found::Nothing };
        if let Some(call) = &mut self.call {
            match &string.purpose {
                Purpose::Name(text) => {
                    call.is_explicit |= self.key == Some(Key::Call);
                    let name = Some(decoded(text)).filter(|name| !name.trim().is_empty());
                    call.name = call.name.take().or(name);
                }
                Purpose::Id(text) => {
                    call.id.get_or_insert_with(|| decoded(text));
                }
                _ => {}
            }
        }
        match string.purpose {
            Purpose::Key(text) => {
                let key = Key::from(decoded(&text).as_str());
                self.key = Some(key);
                self.expects = Expects::Separator;
                return if key == Key::Unknown { Found::NotInCall } else { Found::Nothing };
            }
            Purpose::Raw => {}
            _ => self.expects = Expects::Separator,
        }
        Found::Nothing
    }

    fn begin_string(&mut self) -> Found {
        let in_call = matches!(self.open.last(), Some(Role::Call | Role::Part));
        let has_arguments = self.call.as_ref().is_some_and(|call| call.has_arguments);
        let purpose = match (self.expects, self.key) {
            (Expects::Key, _) => {
                self.has_key = true;
                Purpose::Key(String::new())
            }
            (Expects::Value, Some(Key::Name | Key::Call)) if in_call => Purpose::Name(String::new()),
            (Expects::Value, Some(Key::Id)) if in_call => Purpose::Id(String::new()),
            (Expects::Value, Some(Key::Arguments)) if in_call && !has_arguments => {
                self.note_arguments();
                Purpose::Arguments(JsonStringDecoder::default())
            }
            _ => Purpose::Other,
        };
        let is_foreign = matches!(purpose, Purpose::Other)
            && (self.expects == Expects::Separator || self.key != Some(Key::Note));
        self.string = Some(InString { is_escaped: false, purpose });
        if is_foreign { Found::NotInCall } else { Found::Nothing }
    }

    fn take_in_arguments(&mut self, letter: char) {
        self.push_argument(letter);
        match letter {
            '"' => self.string = Some(InString { is_escaped: false, purpose: Purpose::Raw }),
            '{' | '[' => self.open.push(Role::Arguments),
            '}' | ']' => {
                self.open.pop();
                self.expects = Expects::Separator;
            }
            _ => {}
        }
    }

    fn take_scalar(&mut self, letter: char) -> Found {
        let in_call = matches!(self.open.last(), Some(Role::Call | Role::Part));
        match (self.expects, self.key) {
            (Expects::Value, Some(Key::Arguments)) if in_call => {
                self.scalar.push(letter);
                Found::Nothing
            }
            (Expects::Value, Some(Key::Id | Key::Note)) => Found::Nothing,
            _ => Found::NotInCall,
        }
    }

    /// Ends a scalar that is the arguments: `null` is none.
    fn end_scalar(&mut self) {
        let scalar = std::mem::take(&mut self.scalar);
        if !scalar.is_empty() {
            let had_arguments = self.call.as_ref().is_some_and(|call| call.has_arguments);
            self.note_arguments();
            if let Some(call) = self.call.as_mut().filter(|_| !had_arguments && scalar != "null") {
                call.arguments.push_str(&scalar);
            }
        }
    }

    fn open(&mut self, at: usize, letter: char) -> Found {
        if self.expects != Expects::Value {
            self.open.push(Role::Other);
            return Found::NotInCall;
        }
        let is_object = letter == '{';
        let has_arguments = self.call.as_ref().is_some_and(|call| call.has_arguments);
        let is_nameless = self.call.as_ref().is_some_and(|call| call.name.is_none());
        let role = match (self.open.last(), self.key) {
            (None | Some(Role::List), _) if is_object => {
                self.call = Some(Call { start: at, is_explicit: self.is_listed, ..Call::default() });
                Role::Call
            }
            (None, _) => Role::List,
            (Some(Role::Call | Role::Part), Some(Key::Call)) if is_object => {
                self.call.get_or_insert_default().is_explicit = true;
                Role::Part
            }
            (Some(Role::Call | Role::Part), Some(Key::Arguments)) if !has_arguments => {
                self.note_arguments();
                self.push_argument(letter);
                Role::Arguments
            }
            (Some(Role::Call), Some(Key::Calls)) if !is_object && is_nameless && self.open.len() == 1 => {
                self.open = vec![Role::Container];
                self.call = None;
                self.is_listed = true;
                Role::List
            }
            _ => Role::Other,
        };
        self.open.push(role);
        self.key = None;
        self.expects = if is_object { Expects::Key } else { Expects::Value };
        if role == Role::Other { Found::NotInCall } else { Found::Nothing }
    }

    fn close(&mut self) -> Found {
        self.end_scalar();
        self.expects = Expects::Separator;
        match self.open.pop() {
            Some(Role::Call) => Found::CallEnd,
            _ if self.open.is_empty() => Found::End,
            _ => Found::Nothing,
        }
    }

    fn note_arguments(&mut self) {
        self.call.iter_mut().for_each(|call| call.has_arguments = true);
    }

    fn push_argument(&mut self, letter: char) {
        self.call.iter_mut().for_each(|call| call.arguments.push(letter));
    }
}
