//! The look of a text on a terminal.

/// One attribute, by its number in a control sequence of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribute {
    Bold = 1,
    Dim = 2,
    Italic = 3,
    Underlined = 4,
    Struck = 9,
    Red = 31,
    Yellow = 33,
    Cyan = 36,
}

/// The attributes of a text. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Look(String);

impl Look {
    pub(crate) fn new(attribute: Attribute) -> Self {
        Self::default().with(attribute)
    }

    #[must_use]
    pub(crate) fn with(&self, attribute: Attribute) -> Self {
        let number = attribute as u8;
        Self(if self.0.is_empty() { number.to_string() } else { format!("{};{number}", self.0) })
    }

    /// Returns the text with this look. Each piece ends its look, so that an interrupted output leaves no trace.
    pub(crate) fn paint(&self, text: &str) -> String {
        match text.is_empty() || self.0.is_empty() {
            true => text.to_owned(),
            false => format!("\x1b[{}m{text}\x1b[0m", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_add_up_and_end_with_the_text() {
        let look = Look::new(Attribute::Bold).with(Attribute::Cyan);
        assert_eq!(look.paint("a"), "\x1b[1;36ma\x1b[0m");
        assert_eq!((look.paint(""), Look::default().paint("a")), (String::new(), "a".to_owned()));
    }
}
