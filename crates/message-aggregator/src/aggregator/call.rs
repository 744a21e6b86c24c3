//! `OpenCall`: one tool call while its fragments arrive.

use crate::aggregator::Answer;
use crate::{CallHead, Text, ToolCall, ToolCallDelta};

/// A tool call while its fragments arrive.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCall {
    /// The position of its block.
    pub(crate) block: usize,
    pub(crate) opened: bool,
    pub(crate) index: Option<i64>,
    /// The provider's id, which identifies its fragments.
    pub(crate) id: Option<Text>,
    /// The id generated here, because the provider sent none before the block opened, or that of an earlier call.
    pub(crate) made_id: Option<Text>,
    pub(crate) name: Option<Text>,
    pub(crate) doubt: Doubt,
    /// Other ids than the call's, under which arguments of it came: they may be those of a call that is named later.
    foreign_ids: Vec<Text>,
    /// The number of calls when its name came again, if others had begun since: that may have begun a further call of its
    /// tool, which takes the arguments that follow.
    pub(crate) named_again: usize,
    /// Whether it could have taken arguments that came for a call without a name. If that one never gets a name, they
    /// may belong here.
    pub(crate) beside_nameless: bool,
    /// Whether it takes no more fragments.
    pub(crate) ended: bool,
    /// Whether a finish reason has arrived after all of its fragments.
    pub(crate) vouched: bool,
    arguments: String,
    /// Whether the arguments have more than white space. Looked at in each piece once.
    has_arguments: bool,
    /// The length of the arguments emitted as chunks.
    shown: usize,
    extent: JsonExtent,
}

/// Reason why a call may not run although it has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Doubt {
    #[default]
    None,
    /// Another call has its name, so it may be that one's header, sent again. It runs only with its own arguments.
    RepeatedName,
    /// A fragment of this call may belong to another one, or vice versa.
    Disputed,
}

/// The most noted ids: a server that gives every piece another id means nothing by it.
const MOST_FOREIGN_IDS: usize = 64;

impl OpenCall {
    pub(crate) fn new(block: usize, doubt: Doubt) -> Self {
        Self { block, doubt, ..Self::default() }
    }

    /// Checks whether the fragment has no other name.
    pub(crate) fn may_have_name_of(&self, fragment: &ToolCallDelta) -> bool {
        self.name.is_none() || fragment.name().is_none_or(|name| self.name.as_ref() == Some(name))
    }

    /// Checks whether the fragment has no other id or index.
    pub(crate) fn may_have_key_of(&self, fragment: &ToolCallDelta) -> bool {
        fragment.call_id().is_none_or(|id| self.id.as_ref() == Some(id))
            && fragment.index.is_none_or(|index| self.index == Some(index))
    }

    /// Checks whether it has arguments that may belong to the call that `fragment` names.
    pub(crate) fn has_arguments_of(&self, fragment: &ToolCallDelta) -> bool {
        let is_other_tool = || self.name.is_some() && self.name.as_ref() != fragment.name();
        fragment.name().is_some()
            && match fragment.call_id() {
                Some(id) => self.foreign_ids.contains(id),
                None => !self.foreign_ids.is_empty() && self.index == fragment.index && is_other_tool(),
            }
    }

    /// Returns the id of `fragment`, if it comes with arguments, differs from the call's, and is not noted yet.
    fn foreign_id<'a>(&self, fragment: &'a ToolCallDelta) -> Option<&'a Text> {
        let id = fragment.call_id().filter(|_| fragment.arguments_delta().is_some())?;
        let is_other = self.id.as_ref().is_some_and(|own| own != id);
        let has_room = self.foreign_ids.len() < MOST_FOREIGN_IDS;
        (is_other && has_room && !self.foreign_ids.contains(id)).then_some(id)
    }

    /// Adds the data of `fragment`. Index, id and name are set once. A lone `{}` is replaced by the real arguments, which
    /// some servers send after it.
    pub(crate) fn extend(&mut self, fragment: &ToolCallDelta) {
        let announces = fragment.name().is_some_and(|name| self.name.as_ref() != Some(name))
            || fragment.call_id().is_some_and(|id| self.id.as_ref() != Some(id));
        self.index = self.index.or(fragment.index);
        if self.id.is_none() {
            self.id = fragment.call_id().cloned();
        }
        if self.name.is_none() {
            self.name = fragment.name().cloned();
        }
        let Some(arguments) = fragment.arguments_delta() else { return };
        let foreign_id = self.foreign_id(fragment).cloned();
        self.foreign_ids.extend(foreign_id);
        if !announces && self.only_empty_object() && arguments.trim_start().starts_with('{') {
            self.arguments.clear();
            self.extent = JsonExtent::default();
        }
        self.push(arguments);
    }

    /// Adds arguments that are emitted at once, because all earlier ones were. If they were not, or the arguments
    /// exceed a limit, nothing changes.
    #[inline]
    pub(crate) fn extend_shown(&mut self, arguments: &str, answer: &mut Answer) -> bool {
        let is_shown = self.shown > 0 && self.shown == self.arguments.len() && !self.ended;
        let fits = self.arguments.len() + arguments.len() <= answer.settings.limits.block_bytes;
        if arguments.is_empty() || !is_shown || !fits || answer.bytes.add(arguments.len()).is_err() {
            return false;
        }
        self.vouched = false;
        self.push(arguments);
        self.shown = self.arguments.len();
        true
    }

    #[inline]
    fn push(&mut self, arguments: &str) {
        self.has_arguments = self.has_arguments || !arguments.trim_start().is_empty();
        self.arguments.push_str(arguments);
    }

    /// Returns the arguments to emit now, once the call has a name.
    ///
    /// A lone `{}` is held back until it is certain that no other arguments follow.
    pub(crate) fn take_unshown(&mut self) -> Option<Text> {
        if self.name.is_none() || self.only_empty_object() {
            return None;
        }
        self.take_rest()
    }

    /// Returns all arguments not yet emitted, at the end of the call.
    pub(crate) fn take_rest(&mut self) -> Option<Text> {
        let rest = self.arguments.get(self.shown..).filter(|rest| !rest.is_empty())?;
        let rest = Text::from(rest);
        self.shown = self.arguments.len();
        Some(rest)
    }

    /// Checks whether the arguments so far are one complete JSON object and not disputed. Scans each byte once.
    pub(crate) fn arguments_complete(&mut self) -> bool {
        self.extent.scan(self.arguments.as_bytes()) && self.doubt != Doubt::Disputed
    }

    /// Checks whether it has its name and all of its arguments.
    pub(crate) fn is_settled(&mut self) -> bool {
        self.ended || (self.name.is_some() && self.arguments_complete())
    }

    /// Checks whether it can take a name or more arguments, including those that replace a lone `{}`.
    pub(crate) fn can_take_more(&mut self) -> bool {
        !self.is_settled() || (!self.ended && self.only_empty_object())
    }

    pub(crate) fn has_arguments(&self) -> bool {
        self.has_arguments
    }

    /// Checks whether no later fragment can make it doubtful, once it has ended.
    pub(crate) fn is_certain(&self) -> bool {
        let is_claimed = self.doubt != Doubt::None || !self.foreign_ids.is_empty();
        !is_claimed && self.name.is_some() && self.has_arguments()
    }

    /// Checks whether its fragments may belong to another call, or may not form a separate call.
    pub(crate) fn is_doubtful(&self) -> bool {
        match self.doubt {
            Doubt::None => false,
            Doubt::RepeatedName => !self.has_arguments(),
            Doubt::Disputed => true,
        }
    }

    /// Checks whether it has arguments of another call: it has no name, or its arguments continue after their end.
    pub(crate) fn has_stray_arguments(&mut self) -> bool {
        self.has_arguments() && (self.name.is_none() || self.extent.overruns(self.arguments.as_bytes()))
    }

    /// Returns the length of the arguments together with those of `fragment`.
    pub(crate) fn bytes_with(&self, fragment: &ToolCallDelta) -> usize {
        self.arguments.len() + fragment.arguments_delta().map_or(0, |arguments| arguments.len())
    }

    /// Returns how many bytes of `fragment` will be stored: its arguments, its name if it is the first, and its id
    /// if new.
    pub(crate) fn grows_by(&self, fragment: &ToolCallDelta) -> usize {
        let length = |text: Option<&Text>| text.map_or(0, |text| text.len());
        length(fragment.call_id().filter(|_| self.id.is_none()))
            + length(fragment.name().filter(|_| self.name.is_none()))
            + length(fragment.arguments_delta())
            + length(self.foreign_id(fragment))
    }

    /// Returns the id under which the call is emitted, if it has one yet. It is fixed once the block is open.
    pub(crate) fn shown_id(&self) -> Option<&Text> {
        self.made_id.as_ref().or(self.id.as_ref())
    }

    fn shown_name(&self) -> Text {
        self.name.clone().unwrap_or_else(|| ToolCall::UNNAMED.into())
    }

    /// Returns the head of its block, if it has an id.
    pub(crate) fn head(&self) -> Option<CallHead> {
        Some(CallHead { name: self.shown_name(), call_id: self.shown_id()?.clone() })
    }

    /// Checks whether its arguments parse as a JSON object, or are empty.
    pub(crate) fn has_object(&self) -> bool {
        self.to_call(Text::default).parsed_arguments().is_ok_and(|arguments| arguments.is_object())
    }

    /// Returns the current call, as a complete one.
    pub(crate) fn to_call(&self, made_id: impl FnOnce() -> Text) -> ToolCall {
        let id = self.shown_id().cloned().unwrap_or_else(made_id);
        ToolCall::new(id, self.shown_name(), self.arguments.clone())
    }

    fn only_empty_object(&self) -> bool {
        self.shown == 0 && self.arguments == "{}"
    }
}

/// Finds the end of a JSON object without parsing it; scans each byte once.
#[derive(Debug, Clone, Copy, Default)]
struct JsonExtent {
    scanned: usize,
    depth: u32,
    in_string: bool,
    escaped: bool,
    ended: bool,
    broken: bool,
}

impl JsonExtent {
    fn scan(&mut self, text: &[u8]) -> bool {
        for &byte in text.get(self.scanned..).unwrap_or_default() {
            self.step(byte);
        }
        self.scanned = text.len();
        self.ended && !self.broken
    }

    /// Checks whether an object ends and other text follows it.
    fn overruns(&mut self, text: &[u8]) -> bool {
        self.scan(text);
        self.ended && self.broken
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ if self.ended => self.broken = true,
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            _ if self.depth == 0 => self.broken = true,
            b'}' | b']' => {
                self.depth -= 1;
                self.ended = self.depth == 0;
            }
            b'"' => self.in_string = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(pieces: &[&str]) -> OpenCall {
        let mut call = OpenCall::default();
        for piece in pieces {
            call.extend(&ToolCallDelta::arguments(0, *piece));
            call.arguments_complete();
        }
        call
    }

    #[test]
    fn arguments_are_complete_when_their_object_ends() {
        for (pieces, complete) in [
            (&["{\"a\":", "1}"][..], true),
            (&["{\"a\":\"}", "\\\"", "\"}", " \n"], true),
            (&["{\"a\":[1,{\"b\":2}", "]"], false),
            (&["{}", "x"], false),
            (&["null"], false),
            (&[""], false),
        ] {
            assert_eq!(call(pieces).arguments_complete(), complete, "{pieces:?}");
        }
    }

    #[test]
    fn lone_empty_object_is_held_back_and_replaced() {
        let mut call = OpenCall { name: Some("f".into()), ..OpenCall::default() };
        call.extend(&ToolCallDelta::arguments(0, "{}"));
        assert_eq!(call.take_unshown(), None);
        call.extend(&ToolCallDelta::arguments(0, "{\"a\":1}"));
        assert_eq!(call.take_unshown().as_deref(), Some("{\"a\":1}"));
        assert_eq!(call.arguments, "{\"a\":1}");
    }
}
