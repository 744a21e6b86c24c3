//! The parser of the lines that a user types.

use std::path::PathBuf;

use crate::printable::brief;
use crate::screen::Reasoning;

/// Each command with its parameters, and its effect.
pub(super) const COMMANDS: [(&str, &str); 15] = [
    ("/help", "shows the commands"),
    ("/new", "begins a new conversation"),
    ("/history", "shows this conversation"),
    ("/conversations", "lists the conversations"),
    ("/open ID", "continues another conversation"),
    ("/delete ID", "deletes a conversation"),
    ("/retry", "asks the last question again; the earlier answer is kept on its branch"),
    ("/edit [TEXT]", "edits the last question and asks it in place of the earlier one"),
    ("/approve", "asks about the calls that wait for a decision"),
    ("/tools", "lists the tools"),
    ("/usage", "shows the tokens of the last turn and of this chat"),
    ("/model [NAME]", "shows the model, or changes it"),
    ("/reasoning on|off", "shows or folds the reasoning of the model"),
    ("/save FILE", "exports this conversation to a new file, as `advisor export` does"),
    ("/quit", "ends the chat"),
];

/// A command that a user types in place of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat) enum Command {
    Help,
    New,
    History,
    Conversations,
    Open(String),
    Delete(String),
    Retry,
    /// The new text, if it is given.
    Edit(Option<String>),
    Approve,
    Tools,
    Usage,
    /// The new model, if one is given.
    Model(Option<String>),
    Reasoning(Reasoning),
    Save(PathBuf),
    Quit,
}

/// A line of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat) enum Line {
    Question(String),
    Command(Command),
    /// The note about an invalid command.
    Hint(String),
}

/// Reads a line. One that begins with a slash is a command.
pub(in crate::chat) fn read(line: &str) -> Line {
    if !line.starts_with('/') {
        return Line::Question(line.to_owned());
    }
    let (name, parameter) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let parameter = parameter.trim();
    let given = (!parameter.is_empty()).then(|| parameter.to_owned());
    let command = match (name, given) {
        ("/help", None) => Command::Help,
        ("/new", None) => Command::New,
        ("/history", None) => Command::History,
        ("/conversations", None) => Command::Conversations,
        ("/open", Some(id)) => Command::Open(id),
        ("/delete", Some(id)) => Command::Delete(id),
        ("/retry", None) => Command::Retry,
        ("/edit", text) => Command::Edit(text),
        ("/approve", None) => Command::Approve,
        ("/tools", None) => Command::Tools,
        ("/usage", None) => Command::Usage,
        ("/model", name) => Command::Model(name),
        ("/reasoning", Some(on)) if on == "on" => Command::Reasoning(Reasoning::Shown),
        ("/reasoning", Some(off)) if off == "off" => Command::Reasoning(Reasoning::Folded),
        ("/save", Some(file)) => Command::Save(file.into()),
        ("/quit" | "/exit", None) => Command::Quit,
        _ => return Line::Hint(hint(name)),
    };
    Line::Command(command)
}

fn hint(name: &str) -> String {
    let is_named = |usage: &str| usage.split(' ').next() == Some(name);
    match COMMANDS.iter().find(|(usage, _)| is_named(usage)) {
        Some((usage, does)) => format!("Usage: {usage} ({does})"),
        None => format!(
            "There is no command {}; /help lists the commands. A line that begins with a space is always a question.",
            brief(name, 40)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_begins_a_command() {
        for (line, expected) in [
            ("hello /help", Line::Question("hello /help".into())),
            (" /etc/passwd", Line::Question(" /etc/passwd".into())),
            ("/help ", Line::Command(Command::Help)),
            ("/open  a b ", Line::Command(Command::Open("a b".into()))),
            ("/edit", Line::Command(Command::Edit(None))),
            ("/edit Why?", Line::Command(Command::Edit(Some("Why?".into())))),
            ("/model qwen3", Line::Command(Command::Model(Some("qwen3".into())))),
            ("/reasoning off", Line::Command(Command::Reasoning(Reasoning::Folded))),
            ("/save a.jsonl", Line::Command(Command::Save("a.jsonl".into()))),
            ("/quit", Line::Command(Command::Quit)),
        ] {
            assert_eq!(read(line), expected);
        }
    }

    #[test]
    fn a_wrong_command_gets_a_hint() {
        for (line, part) in [
            ("/hlep\x1b", "There is no command /hlep\\u{1b}; /help"),
            ("/open", "Usage: /open ID"),
            ("/new one", "Usage: /new"),
            ("/reasoning maybe", "Usage: /reasoning on|off"),
            ("/", "There is no command /;"),
        ] {
            assert!(matches!(read(line), Line::Hint(hint) if hint.starts_with(part)), "{line}");
        }
    }

    #[test]
    fn every_listed_command_is_read() {
        for (usage, _) in COMMANDS {
            let line = usage.replace("on|off", "on").replace(['[', ']'], "");
            assert!(matches!(read(&line), Line::Command(_)), "{usage}");
        }
    }
}
