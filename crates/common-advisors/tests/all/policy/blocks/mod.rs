//! Policies over streams, without a tool loop. `tests/order/stream_policy.rs` of the workspace has whole chains.
//!
//! The scenarios of block policies that are known from LiteLLM-based gateways, and where each is tested. Names without a
//! file are tests of this program.
//!
//! | scenario | test |
//! | --- | --- |
//! | content only | `shapes::text_alone_passes_unjudged` |
//! | calls only; each is complete when the next one begins | `shapes::eager_calls_are_judged_when_the_next_begins` |
//! | content, then calls, with empty strings between | `shapes::empty_pieces_open_no_block` |
//! | the same tool twice; a late or missing id; repeated indexes | the aggregator decides: `crates/message-aggregator/tests/all/repeated_ids.rs`, `generated_ids.rs` |
//! | content after calls is a new block | `shapes::text_after_a_call_is_a_separate_block` |
//! | a call that is cut off is not handed on as complete | `judging::law_t2_judge_sees_that_a_call_is_cut` |
//! | a call is withheld, then emitted whole | `judging::law_s4_allowed_call_is_emitted_unchanged` |
//! | a denied call becomes text, without orphans | `judging::law_s3_s4_denied_call_is_a_text` |
//! | everything else passes while a call is held back | `judging::law_s2_only_judged_calls_wait` |
//! | an error, a timeout or a panic of a judge denies; configurable | `failures::law_t2_judge_without_verdict_denies`, `policy_may_fail_open`; the warning: `tests/order/traces.rs` |
//! | one, all or none denied; the same without streaming | `judging::law_s6_denials_are_the_same_without_streaming`, `failures::law_s6_failures_are_the_same_without_streaming` |
//! | the finish reason is corrected only if no call is left | `judging::finish_reason_follows_the_calls_left` |
//! | state of a request is dropped; concurrent requests do not mix | `judging::law_s7_answers_have_separate_states` |
//! | denial text: default, custom, empty explanation | `judging::denial_text_can_be_replaced` |
//! | long arguments are cut for the judging model only | `models::beginning_of_a_long_block_is_judged_by_choice` |
//! | calls trail text | a block keeps its place; requests to Anthropic: `crates/provider-anthropic/src/request/tests/order.rs` |
//! | indices rewritten | no meaning here: blocks have ids. Encoders for clients number blocks |
//! | warnings before calls | no meaning here: a warning is in the log |
//! | the id, the model and the token counts of the answer stay | `judging::law_s6_policies_keep_id_model_and_usage` |
//! | fallback text if nothing is left; empty text is dropped | `judging::denial_text_can_be_replaced` |
//! | the marker lists every blocked name | `judging::law_s6_denials_are_the_same_without_streaming`, by `Denials` |
//! | finalize twice | no meaning here: the stream ends by construction (law S1) |
//! | raw blocks keep their place; unknown blocks pass | `judging::law_s2_only_judged_calls_wait` |
//! | replacing: pass, block, text by text, call by text, text by call | `replacing::blocks_are_replaced_by_other_kinds` |
//! | one block replaced by several; two such replacements | `replacing::law_s3_replacements_of_replacements_have_ids` |
//! | the first denial ends the answer, later judges are not called | `judging::law_r2_first_denial_ends_the_answer`, `waiting::law_r2_no_judge_is_called_after_the_last_verdict` |
//! | concurrent judging keeps the order | `judging::law_s4_judged_in_parallel_emitted_in_order` |
//! | the result accumulates with the vendor's client | `tests/clients/policy.mjs`; all protocols: `tests/wire/policy_clients.rs`, `tests/wire/recorded_clients.rs` |
//! | string replacement, all scenarios | `crate::policy::replace` |
//! | two transforms in order; completion runs through later members | `replacing::policies_act_from_the_model_outwards` |
//! | a member that does not fit is refused when built | `tests/order/stream_policy.rs::policy_outside_memory_is_refused` |
//! | the stream validator: valid and invalid streams | `crates/message-aggregator/src/chunk/stream_validator/tests.rs` |
//! | decreasing indices are invalid | no meaning here: ids are ordered in the response, and an added block may come late |
//! | the proxy: statuses, bytes, sizes, disconnects | no meaning here: providers and servers, `crates/provider-http`, `examples/http_service.rs` |
//! | a client that goes while a judge works | `tests/order/stream_policy.rs::law_k2_k4_turn_is_dropped_while_a_judge_works` |
//! | timeout of a stalled policy | `failures::law_t2_judge_without_verdict_denies` |

mod common;
mod failures;
mod judging;
mod models;
mod replacing;
mod shapes;
mod waiting;
