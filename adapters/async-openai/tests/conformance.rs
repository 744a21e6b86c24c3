//! The clauses of the conformance suite that the client can keep.
//!
//! Left out are two:
//! - `status_has_its_kind`: the client does not pass on the delay that a server asks for. `failures.rs` has the rest.
//! - `law_r3_traces_show_no_secret_and_no_content`: the client logs bodies that it cannot read, and refusals.

mod model;

use adapter_tests::ChatCompletions;

const SERVER: ChatCompletions = ChatCompletions {
    ask: model::ask,
    reasoning: cfg!(feature = "byot"),
    refusals: true,
    usage: |usage| usage,
};

advisor_conformance::provider_conformance!(SERVER, without
    status_has_its_kind
    law_r3_traces_show_no_secret_and_no_content
);
