//! The clauses of the conformance suite that rig can keep.
//!
//! Left out are six:
//! - `text_follows_call`, `text_surrounds_call` and `white_space_between_blocks_is_text`: rig tells the id of a call at
//!   its end, which is after all text.
//! - `tool_results_are_sent_back`: without tools in a request, rig writes calls and results into texts. `chain.rs` sends
//!   results with their tools.
//! - `law_r2_complete_answer_leaves_no_connection_in_use`: rig shares its connections in the process.
//! - `law_r3_traces_show_no_secret_and_no_content`: rig traces requests.

mod model;

use adapter_tests::ChatCompletions;

const SERVER: ChatCompletions =
    ChatCompletions { ask: model::ask, reasoning: true, refusals: false, usage: |usage| usage };

advisor_conformance::provider_conformance!(SERVER, only
    text_streams_in_order
    text_of_all_sorts_survives
    reasoning_precedes_text
    call_arrives_whole
    call_may_have_no_arguments
    parallel_calls_stay_apart
    parallel_calls_of_one_tool_stay_apart
    call_follows_text
    usage_is_counted
    usage_may_come_late
    unknown_event_is_skipped
    empty_answer_is_marked
    length_is_reported
    end_of_body_needs_a_finish
    cut_call_never_runs
    broken_connection_is_an_error
    failure_follows_text
    failure_follows_call
    failure_may_come_first
    malformed_event_is_an_error
    status_has_its_kind
    tool_names_come_back
    schema_of_a_tool_is_sent_as_it_is
    law_s2_pieces_are_shown_as_they_arrive
    law_s7_two_answers_at_once_do_not_mix
    law_r2_dropped_answer_closes_its_connection
);
