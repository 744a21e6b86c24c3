//! Any text in any formats gives the same events at any split.

use proptest::prelude::*;
use text_tool_calls::{ParserLimits, TextFormat};

use crate::parsers::common::parse;

/// Pieces of all syntaxes, so that random sequences reach every state.
const TOKENS: [&str; 34] = [
    "<tool name=\"weather\">",
    "<tool name=\"plan\">",
    "<tool name='time'/>",
    "<arguments>",
    "</arguments>",
    "<arg name=\"city\">",
    "<arg name=\"names\">",
    "<arg name=\"content\">",
    "<arg name=city>",
    "<write_file path=\"a\">",
    "</write_file>",
    "<run_bash>",
    "</run_bash>",
    "__START_CONTENT__",
    "__END_CONTENT__",
    "<![CDATA[",
    "{\"tool\": ",
    "\"weather\"",
    "\"name\": ",
    "\"arguments\": ",
    "\"function\": ",
    "\"tool_calls\": [",
    "[[SEG_START ",
    "{\"type\": \"tool\", \"name\": \"weather\"}",
    "[[SEG_START {\"type\": \"write_file\", \"path\": \"a\"}]]",
    "[[SEG_END]]",
    "```json\n",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "functions.time:0",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<｜DSML｜invoke name=\"time\">",
    "<｜DSML｜parameter name=\"a\" string=\"false\">",
];

const SHORT_TOKENS: [&str; 30] = [
    "<tool", "</tool>", "</arg>", "<city x>", "<item>", "</item>", "<city>", "</city>", "]]>", "<!--", "-->",
    "&amp;", "&am", "{", "}", "[", "]", "\"time\"", ",", ":", "\"", "\\", "\\u00e9", "null", "]]", "```",
    "\n", " ", "x", "é",
];

fn text() -> impl Strategy<Value = String> {
    // White space beyond the bound of what is held back before a call.
    let space = (prop::sample::select(vec![" ", "\n", "\u{2003}"]), 340..1100_usize);
    let token = prop_oneof![
        60 => prop::sample::select([&TOKENS[..], &SHORT_TOKENS].concat()).prop_map(str::to_owned),
        1 => space.prop_map(|(letter, times)| letter.repeat(times)),
    ];
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

fn limits() -> impl Strategy<Value = ParserLimits> {
    prop::sample::select(vec![16, 64, 8192]).prop_map(|undecided| {
        let mut limits = ParserLimits::default();
        limits.undecided = undecided;
        limits
    })
}

/// White space before a call, around the bound of what is held back.
#[test]
fn law_s5_long_space_gives_the_same_events() {
    for letter in [" ", "\n", "\u{2003}", "```\n"] {
        for bytes in (1020..1030).chain([3000]) {
            let text = format!("{}<tool name=\"time\"/>", letter.repeat(bytes / letter.len()));
            for text in [format!("Now.{text}"), format!("<tool name=\"time\"/>{text}"), text] {
                let (formats, limits) = ([TextFormat::Xml], ParserLimits::default());
                let letters: Vec<String> = text.chars().map(String::from).collect();
                let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
                let whole = parse(&formats, limits, &[&text]);
                assert_eq!(parse(&formats, limits, &letters), whole, "{bytes} bytes of {letter:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn law_s5_any_split_gives_the_same_events(
        text in text(),
        limits in limits(),
        formats in prop::sample::subsequence(TextFormat::ALL.to_vec(), 0..=5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = parse(&formats, limits, &[&text]);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        prop_assert_eq!(&parse(&formats, limits, &pieces), &whole, "{:?}", pieces);
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        prop_assert_eq!(&parse(&formats, limits, &letters), &whole, "letters of {:?}", text);
    }
}
