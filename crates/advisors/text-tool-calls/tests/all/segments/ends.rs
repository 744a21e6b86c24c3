//! Ends of segments: finalized, interrupted, failed and restarted answers, and exceeded bounds. Also
//! the JSON form of events.

use advisor_core::{Chunk, Delta};
use text_tool_calls::segments::{BrokenEnd, SegmentEventType, SegmentHandler};
use text_tool_calls::{ParserError, ParserLimits, TextFormat, TextTools, ToolCallFormat};

use crate::segments::common::{answer, arguments, call, chunks, run, short, texts, tools};

const CUT: [&str; 2] = ["a <tool name=\"weather\">", "<arg name=\"city\">O"];

/// The chunks up to the last piece of the text: the block stays open.
fn open(pieces: &[&str]) -> Vec<Chunk> {
    let chunks = texts(pieces.iter().copied());
    chunks.into_iter().take(pieces.len() + 1).collect()
}

fn parsing() -> SegmentHandler {
    SegmentHandler::new(ToolCallFormat::Text(TextFormat::Xml), &tools())
}

/// So does the end of a file whose start waits for a path that never comes whole.
#[test]
fn broken_end_names_its_tool_and_follows_a_start() {
    let native = |tool: &str, json: &str| {
        let answer = chunks([call(0, "call_1", tool), arguments(0, json)]);
        (SegmentHandler::new(ToolCallFormat::Api, &tools()), answer[..2].to_vec())
    };
    let text = |text: &str| (parsing(), open(&[text]));
    let city = "<tool name=\"weather\"><arg name=\"city\">O";
    let path_last = "<tool name=\"write_file\"><arg name=\"content\">x</arg><arg name=\"path\">src";
    let weather = "call_1 start \"tool_call\" {\"tool_name\":\"weather\"}";
    let file = "call_1 start \"write_file\" {\"path\":\"src/a\",\"tool_name\":\"write_file\"}";
    let no_path = "call_1 start \"write_file\" {\"tool_name\":\"write_file\"}";
    for ((mut handler, answer), tool, events) in [
        (native("weather", "{\"city\""), "weather", vec![weather, "call_1: {\"city\""]),
        (native("write_file", "{\"pa"), "write_file", vec![no_path]),
        (
            native("write_file", "{\"path\": \"src/a\", \"content\": \"x"),
            "write_file",
            vec![file, "call_1: x"],
        ),
        (
            native("write_file", "{\"content\": \"x\", \"path\": \"src"),
            "write_file",
            vec![no_path, "call_1: x"],
        ),
        (text(city), "weather", vec![weather, "call_1: <arg name=\"city\">O"]),
        (text("<write_file path=\"src/a\">x"), "write_file", vec![file, "call_1: x"]),
        (text(path_last), "write_file", vec![no_path, "call_1: x"]),
    ] {
        for broken in [BrokenEnd::Interrupted("stopped".into()), BrokenEnd::Failed("broken".into())] {
            for chunk in &answer {
                handler.feed(chunk).unwrap();
            }
            match &broken {
                BrokenEnd::Interrupted(reason) => handler.finalize_interrupted(reason),
                BrokenEnd::Failed(error) => handler.finalize_failed(error),
                other => panic!("{other:?}"),
            };
            let (end, before) = handler.events().split_last().unwrap();
            assert_eq!(short(before), events);
            assert_eq!((end.event_type, end.segment_id.as_str()), (SegmentEventType::End, "call_1"));
            assert_eq!(
                (&end.payload.metadata["tool_name"], &end.payload.broken),
                (&tool.into(), &Some(broken))
            );
            assert_eq!(handler.invocations().count(), 0);
            handler.reset();
        }
    }
}

#[test]
fn undecided_call_of_a_broken_answer_is_no_invocation() {
    // The inner tag is the value of an attribute, unless the text ends before the quote.
    let text = "<tool name=\"<tool name='time'/>";
    let mut broken = parsing();
    open(&[text]).iter().for_each(|chunk| drop(broken.feed(chunk).unwrap()));
    broken.finalize_interrupted("stopped");
    assert_eq!(short(broken.events()).last().unwrap(), "call_1 interrupted: stopped");
    assert_eq!(broken.invocations().count(), 0);
    let mut whole = parsing();
    run(&mut whole, &texts([text]));
    assert_eq!(whole.invocations().count(), 1, "at the end of the answer, it is one");
}

#[test]
fn held_back_text_is_shown_at_a_broken_end() {
    let mut handler = parsing();
    let held = ["a <too"];
    open(&held).iter().for_each(|chunk| drop(handler.feed(chunk).unwrap()));
    let events = short(&handler.finalize_interrupted("stopped"));
    assert_eq!(events, ["text_1: <too", "text_1 interrupted: stopped"]);
    assert_eq!(handler.finalize_failed("again"), []);
    handler.reset();
    open(&held).iter().for_each(|chunk| drop(handler.feed(chunk).unwrap()));
    assert_eq!(short(&handler.finalize_failed("broken")), ["text_1: <too", "text_1 failed: broken"]);
}

#[test]
fn finalize_ends_open_segments_once() {
    let mut handler = parsing();
    for chunk in open(&CUT) {
        handler.feed(&chunk).unwrap();
    }
    assert_eq!(short(&handler.finalize().unwrap()), ["call_1 failed: the answer ended within the call"]);
    assert_eq!(handler.finalize().unwrap(), []);
    assert_eq!(handler.feed(&open(&["a"])[0]), Err(ParserError::Ended));
    handler.reset();
    assert_eq!((handler.events().len(), handler.invocations().count()), (0, 0));
    assert_eq!(run(&mut handler, &texts(["a"])).len(), 3);
}

/// Segments that have ended end once more, so that a consumer can take back what it has shown.
#[test]
fn restarted_attempt_makes_its_ended_segments_void() {
    let call = "<tool name=\"time\"/>";
    let again = "interrupted: the model is called again";
    let text = texts(["So: ", call, " Well"]);
    let mut handler = parsing();
    for chunk in answer(1, [Delta::text("Round one.")]).iter().chain(&answer(2, [Delta::text("a")])[..2]) {
        handler.feed(chunk).unwrap();
    }
    let restart = Chunk::AttemptRestarted { round: 2 };
    assert_eq!(short(&handler.feed(&restart).unwrap()), [format!("text_2 {again}")], "round 1 stays");
    handler.reset();
    for chunk in &text[..4] {
        handler.feed(chunk).unwrap();
    }
    let restart = Chunk::AttemptRestarted { round: 1 };
    let void = ["text_1", "call_1", "text_2"].map(|id| format!("{id} {again}"));
    assert_eq!(short(&handler.feed(&restart).unwrap()), void);
    assert_eq!(handler.feed(&restart), Ok(Vec::new()), "each is taken back once");
    assert_eq!(run_again(&mut handler, &text), ["text_3", "call_2", "text_4"]);
    assert_eq!(handler.invocations().count(), 1);
}

/// The ids of the segments that end by themselves in these chunks.
fn run_again(handler: &mut SegmentHandler, chunks: &[Chunk]) -> Vec<String> {
    let events = chunks.iter().flat_map(|chunk| handler.feed(chunk).unwrap());
    let ends =
        events.filter(|event| event.event_type == SegmentEventType::End && event.payload.broken.is_none());
    ends.map(|end| end.segment_id.to_string()).collect()
}

#[test]
fn law_r1_too_long_call_fails_its_segment() {
    let (mut handler, limit) = (parsing(), ParserLimits::default().call);
    let chunks = texts(["<write_file path=\"a\">", &"x".repeat(limit)]);
    let results: Vec<_> = chunks[..3].iter().map(|chunk| handler.feed(chunk).map(|_| ())).collect();
    assert_eq!(results, [Ok(()), Ok(()), Err(ParserError::CallTooLong { limit })]);
    let last = handler.events().last().unwrap();
    assert!(
        short(std::slice::from_ref(last))[0].starts_with("call_1 failed: a tool call in the text is longer")
    );
    assert_eq!(handler.feed(&chunks[0]), Err(ParserError::Ended));
}

/// The bound on calls holds for all texts of an answer together, and for each answer anew.
#[test]
fn law_r1_one_call_too_many_over_several_texts_fails() {
    let (mut handler, limit) = (parsing(), ParserLimits::default().calls);
    let two_thirds = "<tool name=\"time\"/>".repeat(limit * 2 / 3);
    let text = |block| Delta::text(two_thirds.as_str()).with_block(block);
    let [one, both] = [1, 2].map(|round| answer(round, [text(1), text(2)].into_iter().take(round as usize)));
    for chunk in one.iter().chain([&Chunk::AttemptRestarted { round: 1 }]).chain(&one) {
        handler.feed(chunk).unwrap();
    }
    assert_eq!(handler.invocations().count(), limit * 2 / 3);
    let error = both.iter().find_map(|chunk| handler.feed(chunk).err()).unwrap();
    assert_eq!(error, ParserError::TooManyCalls { limit });
    assert_eq!(handler.invocations().count(), limit * 2 / 3 + limit, "those within the bound were read");
    handler.reset();
    for chunk in &one {
        handler.feed(chunk).unwrap();
    }
}

#[test]
fn chunks_of_unknown_blocks_give_no_events() {
    let mut handler = SegmentHandler::new(ToolCallFormat::Api, &tools());
    let answer = chunks([call(0, "c1", "time"), arguments(0, "{}")]);
    for chunk in &answer[1..] {
        assert_eq!(handler.feed(chunk), Ok(Vec::new()), "its block did not open");
    }
    handler.feed(&answer[0]).unwrap();
    assert_eq!(handler.invocations().count(), 0, "the call is open");
    handler.reset();
    assert_eq!(handler.feed(answer.last().unwrap()), Ok(Vec::new()), "the open call is forgotten");
    assert_eq!(handler.finalize(), Ok(Vec::new()));
}

#[test]
fn without_tools_text_passes_through_and_calls_of_the_interface_are_read() {
    for format in [ToolCallFormat::Api, ToolCallFormat::Text(TextFormat::Xml)] {
        let mut handler = SegmentHandler::new(format, &TextTools::default());
        let mut answer = texts(["<tool name=\"time\"/>"]);
        answer.extend(chunks([call(0, "c1", "time")]));
        let events = run(&mut handler, &answer);
        assert_eq!(events[..3], ["text_1 start \"text\"", "text_1: <tool name=\"time\"/>", "text_1 end"]);
        assert_eq!(handler.invocations().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["time"]);
    }
}
