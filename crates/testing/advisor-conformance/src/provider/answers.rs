//! Clauses about complete answers.

use advisor_core::{FinishReason, Usage};

use super::family::AnswerPart::{self, Call, End, Finish, Reasoning, Refusal, Text, Unknown};
use super::family::WireFamily;
use super::play::{play, play_if_any};

const STOP: AnswerPart = Finish(FinishReason::Stop);
const CALLS: AnswerPart = Finish(FinishReason::ToolCalls);
const OSLO: AnswerPart =
    Call { id: "call_oslo_1", name: "weather", arguments: &["{\"city\":", "\"Oslo\"", "}"] };
const ROME: AnswerPart = Call { id: "call_rome_1", name: "weather", arguments: &["{\"city\":\"", "Rome\"}"] };
const CLOCK: AnswerPart = Call { id: "call_clock_1", name: "clock", arguments: &["{\"zone\":\"UTC\"}"] };

/// Text arrives in its pieces, as one block.
pub async fn text_streams_in_order(family: &dyn WireFamily) {
    play(family, &[Text("Good"), Text(" morning"), Text(", Vietnam"), Text("!"), STOP, End]).await;
}

/// Any text survives: escapes, line ends, text beyond ASCII, text that looks like a format.
pub async fn text_of_all_sorts_survives(family: &dyn WireFamily) {
    let texts = [
        Text("\"quoted\" \\ / back"),
        Text("\n\r\n\t\u{8}\u{c}"),
        Text("naïve Grüße — 日本語"),
        Text("😀"),
        Text("e\u{301}\u{200d}\u{feff}"),
        Text("data: [DONE]\n\n"),
        Text("{\"done\":true}\n"),
        Text(" "),
        Text("<think>&amp;</think>"),
        Text("\u{0}\u{7f}\u{2028}"),
    ];
    let parts: Vec<_> = texts.into_iter().chain([STOP, End]).collect();
    play(family, &parts).await;
}

/// Reasoning is a separate block before the text.
pub async fn reasoning_precedes_text(family: &dyn WireFamily) {
    let parts = [Reasoning("The sum"), Reasoning(" is 4."), Text("It is"), Text(" 4."), STOP, End];
    play_if_any(family, &parts).await;
}

/// A tool call arrives with its name and its arguments.
pub async fn call_arrives_whole(family: &dyn WireFamily) {
    play(family, &[OSLO, CALLS, End]).await;
}

/// A call without arguments is complete.
pub async fn call_may_have_no_arguments(family: &dyn WireFamily) {
    play(family, &[Call { id: "call_now_1", name: "now", arguments: &["{}"] }, CALLS, End]).await;
}

/// Calls of different tools keep their names and arguments.
pub async fn parallel_calls_stay_apart(family: &dyn WireFamily) {
    play(family, &[OSLO, CLOCK, CALLS, End]).await;
}

/// Calls of one tool keep their arguments.
pub async fn parallel_calls_of_one_tool_stay_apart(family: &dyn WireFamily) {
    play(family, &[OSLO, ROME, CALLS, End]).await;
}

/// Text before calls stays before them.
pub async fn call_follows_text(family: &dyn WireFamily) {
    play(family, &[Text("Let me"), Text(" look."), OSLO, CLOCK, CALLS, End]).await;
}

/// Text after a call is a separate block.
pub async fn text_follows_call(family: &dyn WireFamily) {
    play(family, &[OSLO, Text("I have"), Text(" asked."), CALLS, End]).await;
}

/// Text before and after a call are two blocks.
pub async fn text_surrounds_call(family: &dyn WireFamily) {
    play(family, &[Text("First"), OSLO, Text("then"), CLOCK, Text("done"), CALLS, End]).await;
}

/// White space between blocks is text: it is shown and kept, although nothing is to be seen.
pub async fn white_space_between_blocks_is_text(family: &dyn WireFamily) {
    play(family, &[OSLO, Text("\n"), CLOCK, Text(" "), CALLS, End]).await;
    play_if_any(family, &[Reasoning("Hm."), Text("\n\n"), OSLO, CALLS, End]).await;
}

/// A refusal that the format marks is a refusal block.
pub async fn refusal_is_no_text(family: &dyn WireFamily) {
    play_if_any(family, &[Refusal("I cannot"), Refusal(" help."), STOP, End]).await;
}

/// The counts that the format has are reported, those of the cache and of reasoning among them.
pub async fn usage_is_counted(family: &dyn WireFamily) {
    let mut usage = Usage::new(120, 34);
    usage.cached_input_tokens = Some(100);
    usage.reasoning_tokens = Some(12);
    play(family, &[Text("Hi"), AnswerPart::Usage(usage), STOP, End]).await;
}

/// Usage may follow the finish reason.
pub async fn usage_may_come_late(family: &dyn WireFamily) {
    play_if_any(family, &[Text("Hi"), STOP, AnswerPart::Usage(Usage::new(12, 3)), End]).await;
}

/// An event of a kind that the format does not have is ignored.
pub async fn unknown_event_is_skipped(family: &dyn WireFamily) {
    play_if_any(family, &[Text("Good"), Unknown, Text(" morning"), Unknown, STOP, End]).await;
}

/// An answer without content ends as empty, also if the server says `stop`.
pub async fn empty_answer_is_marked(family: &dyn WireFamily) {
    play(family, &[STOP, End]).await;
}

/// The token limit is a finish reason.
pub async fn length_is_reported(family: &dyn WireFamily) {
    play(family, &[Text("Once upon"), Text(" a"), Finish(FinishReason::Length), End]).await;
}
