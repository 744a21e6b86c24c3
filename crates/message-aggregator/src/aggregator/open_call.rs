mod claims;

use crate::aggregator::answer_bytes::AnswerBytes;
use crate::{AggregatorLimits, Text, ToolCall, ToolCallDelta};
use claims::Claims;

/// A tool call while its fragments come in.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCall {
    pub(crate) index: Option<i64>,
    /// The provider's id, by which its fragments are known.
    pub(crate) id: Option<Text>,
    /// The id it is given here, because the provider gave it none or one that an earlier call has.
    pub(crate) made_id: Option<Text>,
    pub(crate) name: Option<Text>,
    pub(crate) doubt: Doubt,
    /// The calls that could take its arguments when they came: if it never gets a name, they may be theirs.
    pub(crate) rivals: Vec<usize>,
    claims: Claims,
    /// It takes nothing more.
    pub(crate) ended: bool,
    /// A finish reason came after all of it that came so far.
    pub(crate) vouched: bool,
    arguments: String,
    /// How much of the arguments was handed out as chunks.
    shown: usize,
    extent: JsonExtent,
}

/// Why a call may not run although all of it came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Doubt {
    #[default]
    None,
    /// The call began as another one does whose header is sent again. It runs only with arguments of its own.
    RepeatedHeader,
    /// A fragment that says something of this call may belong to another one, or the other way round.
    Disputed,
}

impl OpenCall {
    pub(crate) fn new(doubt: Doubt) -> Self {
        Self { doubt, ..Self::default() }
    }

    /// Notes it if `fragment`, which is taken for one of this call, has its name again: it may begin a further call. `calls`: how
    /// many there are.
    pub(crate) fn note_header(&mut self, fragment: &ToolCallDelta, calls: usize) {
        if fragment.name().is_some() && fragment.name() == self.name.as_ref() {
            self.claims.note_header(fragment, calls);
        }
    }

    /// Whether its header came again, and may have begun a further call.
    #[inline]
    pub(crate) fn has_repeated_header(&self) -> bool {
        self.claims.has_header()
    }

    /// Whether the arguments of `fragment`, taken for those of the call at `taken`, may be of a further call of this one's tool.
    pub(crate) fn may_go_on(&self, fragment: &ToolCallDelta, taken: usize) -> bool {
        self.claims.goes_on(fragment, taken)
            && fragment.name().is_none_or(|name| self.name.as_ref() == Some(name))
    }

    /// Whether it has arguments that may be of the call that `fragment` names.
    pub(crate) fn has_arguments_of(&self, fragment: &ToolCallDelta) -> bool {
        let is_other = || self.name.is_some() && self.name.as_ref() != fragment.name();
        let id = fragment.call_id();
        fragment.name().is_some()
            && self.claims.has_id(id)
            && (id.is_some() || (self.index == fragment.index && is_other()))
    }

    /// Takes over what `fragment` says. Numbers, ids and names are set once.
    ///
    /// Says whether `{}` had to give way to the real arguments, which some servers send after it.
    pub(crate) fn extend(&mut self, fragment: &ToolCallDelta) -> bool {
        let announces = fragment.name().is_some_and(|name| self.name.as_ref() != Some(name))
            || fragment.call_id().is_some_and(|id| self.id.as_ref() != Some(id));
        self.index = self.index.or(fragment.index);
        if self.id.is_none() {
            self.id = fragment.call_id().cloned();
        }
        if self.name.is_none() {
            self.name = fragment.name().cloned();
        }
        let Some(arguments) = fragment.arguments_delta() else {
            return false;
        };
        self.claims.note_id(self.claims.new_id(self.id.as_ref(), fragment));
        let dropped = !announces && self.only_empty_object() && arguments.trim_start().starts_with('{');
        if dropped {
            self.arguments.clear();
            self.extent = JsonExtent::default();
        }
        self.arguments.push_str(arguments);
        dropped
    }

    /// Takes arguments that are shown as they come, because those before them are shown. If they are not, or these are too many,
    /// nothing has happened.
    #[inline]
    pub(crate) fn extend_shown(
        &mut self,
        arguments: &str,
        limits: &AggregatorLimits,
        bytes: &mut AnswerBytes,
    ) -> bool {
        let is_shown = self.shown > 0 && self.shown == self.arguments.len() && !self.ended;
        let fits = self.arguments.len() + arguments.len() <= limits.block_bytes;
        if arguments.is_empty() || !is_shown || !fits || bytes.add(arguments.len()).is_err() {
            return false;
        }
        self.vouched = false;
        self.arguments.push_str(arguments);
        self.shown = self.arguments.len();
        true
    }

    /// The arguments that are to be shown now, once the call has a name.
    ///
    /// A lone `{}` is held back until it is certain that nothing else follows.
    pub(crate) fn take_unshown(&mut self) -> Option<Text> {
        if self.name.is_none() || self.only_empty_object() {
            return None;
        }
        self.take_rest()
    }

    /// All arguments not yet shown, at the end of the call.
    pub(crate) fn take_rest(&mut self) -> Option<Text> {
        let rest = self.arguments.get(self.shown..).filter(|rest| !rest.is_empty())?;
        let rest = Text::from(rest);
        self.shown = self.arguments.len();
        Some(rest)
    }

    /// Whether the arguments so far are one whole JSON object, and none of them are in dispute. Looks at each byte once.
    pub(crate) fn arguments_complete(&mut self) -> bool {
        self.extent.scan(self.arguments.as_bytes()) && self.doubt != Doubt::Disputed
    }

    /// Whether it has its name and all of its arguments.
    pub(crate) fn is_settled(&mut self) -> bool {
        self.ended || (self.name.is_some() && self.arguments_complete())
    }

    /// Whether it can take more arguments, in place of a lone `{}` too, or a name.
    pub(crate) fn can_take_more(&mut self) -> bool {
        !self.is_settled() || (!self.ended && self.only_empty_object())
    }

    /// Whether nothing that may still come makes it doubtful, once it takes nothing more.
    pub(crate) fn is_certain(&self) -> bool {
        let has_claims = self.doubt != Doubt::None || self.claims.has_id(None);
        !has_claims && self.name.is_some() && self.has_arguments()
    }

    pub(crate) fn has_arguments(&self) -> bool {
        !self.arguments.trim_start().is_empty()
    }

    /// Whether what came of it may belong to another call, or be no call of its own.
    pub(crate) fn is_doubtful(&self) -> bool {
        match self.doubt {
            Doubt::None => false,
            Doubt::RepeatedHeader => !self.has_arguments(),
            Doubt::Disputed => true,
        }
    }

    /// Whether it has arguments that are those of another call: it has no name, or they go on behind their end.
    pub(crate) fn has_stray_arguments(&mut self) -> bool {
        self.has_arguments() && (self.name.is_none() || self.extent.overruns(self.arguments.as_bytes()))
    }

    /// How long the arguments are with those of `fragment`.
    pub(crate) fn bytes_with(&self, fragment: &ToolCallDelta) -> usize {
        self.arguments.len() + fragment.arguments_delta().map_or(0, |arguments| arguments.len())
    }

    /// How many bytes of `fragment` are kept: its arguments, its name if it is the first, and its id if it is new.
    pub(crate) fn grows_by(&self, fragment: &ToolCallDelta) -> usize {
        let first = |known: &Option<Text>, text: Option<&Text>| match known {
            None => text.map_or(0, |text| text.len()),
            Some(_) => 0,
        };
        first(&self.id, fragment.call_id())
            + first(&self.name, fragment.name())
            + first(&None, fragment.arguments_delta())
            + first(&None, self.claims.new_id(self.id.as_ref(), fragment))
    }

    /// The id that those outside know it by, unless it is still to be made.
    pub(crate) fn shown_id(&self) -> Option<&Text> {
        self.made_id.as_ref().or(self.id.as_ref())
    }

    /// The call as it is now.
    pub(crate) fn to_call(&self, made_id: impl FnOnce() -> Text, complete: bool) -> ToolCall {
        ToolCall {
            id: self.shown_id().cloned().unwrap_or_else(made_id),
            name: self.name.clone().unwrap_or_else(|| ToolCall::UNNAMED.into()),
            arguments: self.arguments.clone(),
            complete,
        }
    }

    fn only_empty_object(&self) -> bool {
        self.shown == 0 && self.arguments == "{}"
    }
}

/// Finds the end of a JSON object without parsing it, and without looking at a byte twice.
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

    /// Whether an object ends and something else follows it.
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
    fn a_lone_empty_object_is_held_back_and_gives_way() {
        let mut call = OpenCall { name: Some("f".into()), ..OpenCall::default() };
        assert!(!call.extend(&ToolCallDelta::arguments(0, "{}")));
        assert_eq!(call.take_unshown(), None);
        assert!(call.extend(&ToolCallDelta::arguments(0, "{\"a\":1}")));
        assert_eq!(call.take_unshown().as_deref(), Some("{\"a\":1}"));
        assert_eq!(call.arguments, "{\"a\":1}");
    }
}
