//! The clauses of the conformance suite that the client can keep.
//!
//! Left out are two:
//! - `law_r3_traces_show_no_secret_and_no_content`: the client logs failures with the server's words.
//! - `law_r2_complete_answer_leaves_no_connection_in_use`: the client does not read a body to its end, so the next
//!   request may need another connection. `chain.rs` checks that all end with the model.

mod model;

use adapter_tests::ChatCompletions;

const SERVER: ChatCompletions =
    ChatCompletions { ask: model::ask, reasoning: true, refusals: false, usage: |usage| usage };

advisor_conformance::provider_conformance!(SERVER, without
    law_r3_traces_show_no_secret_and_no_content
    law_r2_complete_answer_leaves_no_connection_in_use
);
