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

advisor_conformance::provider_conformance!(SERVER, without
    text_follows_call
    text_surrounds_call
    white_space_between_blocks_is_text
    tool_results_are_sent_back
    law_r3_traces_show_no_secret_and_no_content
    law_r2_complete_answer_leaves_no_connection_in_use
);
