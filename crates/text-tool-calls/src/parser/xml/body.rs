/// The form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// Before the first element. It may also be the arguments as they are.
    Undecided,
    /// It has elements.
    Elements,
}

/// The form of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentForm {
    Element,
    /// The text of a short form; its closing tag ends the call.
    ShortForm,
}
