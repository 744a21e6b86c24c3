//! Calls between sentinels: a header with a body, short forms and cut calls; other markers stay text.

use text_tool_calls::TextFormat;

use crate::parsers::common::check;

const SENTINEL: TextFormat = TextFormat::Sentinel;

#[test]
fn law_s5_header_and_body_make_a_call() {
    check(
        SENTINEL,
        &[
            (
                "A [[SEG_START {\"type\": \"tool\", \"tool_name\": \"weather\"}]]\n{\"city\": \"Oslo\"}[[SEG_END]] B",
                "A ⟦weather \n{\"city\": \"Oslo\"}⟧ B",
            ),
            (
                "[[SEG_START{\"type\":\"tool_call\",\"name\":\"weather\",\"arguments\":{\"days\":2}}]][[SEG_END]]",
                "⟦weather {\"days\":2}⟧",
            ),
            (
                "[[SEG_START {\"type\": \"tool\", \"name\": \"weather\", \"arguments\": \"{}\"} ]]unused[[SEG_END]]",
                "⟦weather {}⟧",
            ),
            ("[[SEG_START {\"type\": \"tool\", \"name\": \"time\"}]] [[SEG_END]]", "⟦time  ⟧"),
            (
                "[[SEG_START {\"type\": \"tool\", \"name\": \"plan\", \"arguments\": {\"names\": [[\"]]\"]]}}]][[SEG_END]]",
                "⟦plan {\"names\":[[\"]]\"]]}⟧",
            ),
            ("[[SEG_START {\"type\": \"text\"}]]a [[b]] c[[SEG_END]] d", "a [[b]] c d"),
        ],
    );
}

#[test]
fn law_s5_short_forms_have_their_text_in_the_body() {
    check(
        SENTINEL,
        &[
            (
                "[[SEG_START {\"type\": \"write_file\", \"path\": \"a\"}]]\n<b>&amp;\n[[SEG_END]]",
                "⟦write_file {\"path\":\"a\",\"content\":\"<b>&amp;\\n\"}⟧",
            ),
            (
                "[[SEG_START {\"type\": \"edit_file\", \"path\": \"a\"}]]-x[[SEG_END]]",
                "⟦edit_file {\"path\":\"a\",\"patch\":\"-x\"}⟧",
            ),
            (
                "[[SEG_START {\"type\": \"run_bash\", \"timeout_seconds\": 5}]]a && b &amp; c[[SEG_END]]",
                "⟦run_bash {\"timeout_seconds\":5,\"command\":\"a && b &amp; c\"}⟧",
            ),
            (
                "[[SEG_START {\"type\": \"run_bash\", \"command\": \"ls\"}]][[SEG_END]]",
                "⟦run_bash {\"command\":\"ls\"}⟧",
            ),
        ],
    );
}

#[test]
fn law_s5_other_markers_are_text() {
    for text in [
        "[[SEG_START {broken}]]x[[SEG_END]]",
        "[[SEG_START {\"type\": \"other\"}]]x[[SEG_END]]",
        "[[SEG_START {\"type\": \"tool\"}]]x[[SEG_END]]",
        "[[SEG_START {\"type\": \"write_file\"}]]x[[SEG_END]]",
        "[[SEG_START]]",
        "[[SEG_START {\"type\": \"tool\"} ]",
        "[[SEG_STAR",
        "[[1], [2]]",
        "[[SEG_END]]",
    ] {
        check(SENTINEL, &[(text, text)]);
    }
}

#[test]
fn law_s5_cut_call_is_incomplete() {
    check(
        SENTINEL,
        &[
            (
                "[[SEG_START {\"type\": \"write_file\", \"path\": \"a\"}]]x[[SEG_EN",
                "⟦write_file {\"path\":\"a\",\"content\":\"x[[SEG_EN…",
            ),
            ("[[SEG_START {\"type\": \"text\"}]]x", "x"),
        ],
    );
}
