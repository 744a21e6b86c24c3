//! Examples, one topic a file; run one with `cargo run -p advisor-examples --example NAME`.
//!
//! | example | topic |
//! | --- | --- |
//! | `logging` | an advisor that watches requests, chunks and answers |
//! | `guard` | an advisor that answers by itself, without the model |
//! | `memory_placement` | memory inside and outside the tool loop, and the order of writes |
//! | `typed_tools` | tools whose arguments are a type, and the data of their turn |
//! | `return_direct` | tools whose results go straight to the user |
//! | `at_most_once` | a tool that must not run twice, and the result of an interrupted call |
//! | `approval` | a call that a person approves, and that runs at most once in all processes |
//! | `tool_events` | the progress of running tools |
//! | `sub_agent` | a tool that is another chain, within the limits of the outer turn, with a separate conversation |
//! | `redaction_policy` | a judge that refuses a call, and words that are replaced while they stream, with memory around |
//! | `guarded` | guards on input and on output: words, a pattern and a closure, with memory between them |
//! | `documents` | documents found by their meaning, sent once per turn and cited, with memory around |
//! | `telemetry` | the spans of a turn by OpenTelemetry's conventions |
//! | `budget` | budgets of tokens for each turn and of money for each tenant |
//! | `response_cache` | answers to equal requests without the model, for each tenant |
//! | `retry_and_rate_limit` | a retry around a rate limit, with a virtual clock |
//! | `routing` | the cheapest of several models that takes a request, and another one when it fails |
//! | `tools_on_demand` | a search over many tools, the tools of a tenant, a turn that may use few, a system text with values |
//! | `text_tool_calls` | tools for a model that writes its calls into its text |
//! | `live_file` | the content of a file, shown while the model generates it |
//! | `provider_switch` | one chain, four providers: a conversation begins with one and continues with the others |
//! | `support_bot` | the advisors of [`advisors`] in one chain: redaction, stopping, fallback, retrieval, a cache, typed values |
//! | `http_service` | a chat over HTTP: server-sent events, statuses, users, repeated requests, an end in good order |
//! | `approval_service` | calls that a user approves, behind a server: the AI SDK's stream, a policy as data, SQLite |
//! | `client_tool_service` | a tool that runs at the client, behind a server |
//! | `policy_service` | policies behind a server: clients of OpenAI and Anthropic read a denial as text |
//! | `chat_page` | the chat page mounted in an application, under a path |
//! | `third_party_advisor` | an advisor that changes chunks, tested with the testkit |
//!
//! The programs in `readme/` are README's start and a tool with arguments. They ask the model of `OPENAI_BASE_URL`.
//!
//! A scripted model, or a scripted server on this machine, stands in for a real one everywhere. So no example needs a
//! key or a network.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its reader")]

pub mod advisors;
pub mod chat_service;
