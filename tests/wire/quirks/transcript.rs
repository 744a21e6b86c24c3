//! Transcripts: what a server sends, and the chunks that it has to become.

use std::fs;
use std::path::{Path, PathBuf};

use advisor_tests::prelude::*;

/// The folders of transcripts, one for each wire family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireFamily {
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Ollama,
}

impl WireFamily {
    pub(crate) const ALL: [Self; 5] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Returns the name of the folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    fn folder(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("wire/quirks/transcripts").join(self.name())
    }
}

/// A file of the folder `transcripts`, whose README describes the format.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) family: WireFamily,
    /// The name of the file, without its extension.
    pub(crate) name: String,
    settings: BTreeMap<String, String>,
    /// The bodies of the server's answers: one, or one for each attempt.
    pub(crate) bodies: Vec<Vec<u8>>,
    /// The chunks that the answer has to become, one in each line.
    chunks: String,
}

/// What happens after the last byte of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The body ends.
    End,
    /// The connection breaks.
    Break,
    /// Nothing, for ever.
    Silence,
}

const SETTINGS: [&str; 9] = [
    "after", "content-type", "last-line", "line-end", "profile", "status", "streaming", "text", "text-calls",
];

impl Transcript {
    /// Reads all transcripts of a family, in the order of their names.
    pub(crate) fn all(family: WireFamily) -> Vec<Self> {
        let files = fs::read_dir(family.folder()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            files.filter(|file| file.extension().is_some_and(|end| end == "txt")).collect();
        files.sort();
        assert!(!files.is_empty(), "{family:?} has no transcripts");
        files.iter().map(|file| Self::read(family, file)).collect()
    }

    /// A transcript without any answer, for requests to the server of this profile.
    pub(crate) fn unanswered(family: WireFamily, profile: Option<&str>) -> Self {
        let settings =
            profile.into_iter().map(|profile| ("profile".to_owned(), profile.to_owned())).collect();
        Self { family, name: String::new(), settings, bodies: Vec::new(), chunks: String::new() }
    }

    fn read(family: WireFamily, file: &Path) -> Self {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(file).unwrap();
        let mut sections = text.split("=== ");
        let head = sections.next().unwrap();
        let settings = head.lines().skip(1).take_while(|line| !line.is_empty());
        let settings: BTreeMap<_, _> = settings
            .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{name}: `{line}` is no setting")))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let unknown = settings.keys().find(|key| !SETTINGS.contains(&key.as_str()));
        assert_eq!(unknown, None, "{name}: an unknown setting");
        let mut transcript = Self { family, name, settings, bodies: Vec::new(), chunks: String::new() };
        for section in sections {
            match section.split_once('\n').unwrap() {
                ("body", body) => transcript.bodies.push(transcript.bytes_of(body)),
                ("chunks", chunks) => transcript.chunks = chunks.to_owned(),
                (other, _) => panic!("{}: an unknown section `{other}`", transcript.name),
            }
        }
        assert!(!transcript.bodies.is_empty() && !transcript.chunks.is_empty(), "{}", transcript.name);
        transcript
    }

    fn bytes_of(&self, body: &str) -> Vec<u8> {
        let body = match self.setting("last-line") {
            Some("unfinished") => body.trim_end_matches('\n'),
            _ => body,
        };
        match self.setting("line-end") {
            Some("crlf") => body.replace('\n', "\r\n").into_bytes(),
            Some("cr") => body.replace('\n', "\r").into_bytes(),
            _ => body.as_bytes().to_vec(),
        }
    }

    pub(crate) fn setting(&self, key: &str) -> Option<&str> {
        self.settings.get(key).map(String::as_str)
    }

    pub(crate) fn after(&self) -> After {
        match self.setting("after") {
            None => After::End,
            Some("break") => After::Break,
            Some("silence") => After::Silence,
            Some(other) => panic!("{}: after: {other}", self.name),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.setting("status").map_or(200, |status| status.parse().unwrap())
    }

    pub(crate) fn content_type(&self) -> &str {
        let usual = match self.family {
            WireFamily::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        self.setting("content-type").unwrap_or(usual)
    }

    /// Compares what was played with what is expected.
    pub(crate) fn difference(&self, played: &str, delivery: &str) -> Option<String> {
        let expected = &self.chunks;
        let differs = played != expected;
        differs.then(|| format!("\n{} ({delivery})\nexpected:\n{expected}\nplayed:\n{played}", self.name))
    }
}
