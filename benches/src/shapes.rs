//! `Shape`: the forms in which servers write events, and whole bodies of such events.

use bytes::Bytes;

/// The number of events per read.
pub(crate) const EVENTS_A_READ: usize = 16;
/// The texts of the answers. They are short, as tokens are; some need escapes, some are not ASCII.
pub(crate) const WORDS: [&str; 8] = [" the", " fjord", ",", " however", " is", " deep", ".\\n", " Grüße"];
/// Pieces of a call's arguments.
const ARGUMENTS: [&str; 6] = ["{\\\"", "city", "\\\":\\\"", "Oslo", "\\\"", "}"];

/// The form in which a server writes the events of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Whose events look so.
    pub name: &'static str,
    /// The form of an event. `WORD` stands for the next piece of the text, `PIECE` for that of a call's
    /// arguments. `PADDING` stands for some letters, `SPACES` for some spaces, `NUMBER` for a rising number.
    event: &'static str,
}

impl Shape {
    /// A form of events that are not those of Chat Completions.
    pub(crate) const fn new(name: &'static str, event: &'static str) -> Self {
        Self { name, event }
    }

    /// A plain one, by which the others are measured.
    pub const OPENAI: Self = Self {
        name: "OpenAI",
        event: r#"{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_fc9f1d7035","choices":[{"index":0,"delta":{"content":"WORD"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
    };

    /// Pieces of the arguments of one call.
    pub const ARGUMENTS: Self = Self {
        name: "OpenAI, arguments of a call",
        event: r#"{"id":"chatcmpl-DuLe5uYcQLe3hznEQpmI0pr8qyHJ8","object":"chat.completion.chunk","created":1782321945,"model":"gpt-5-2025-08-07","service_tier":"default","system_fingerprint":null,"usage":null,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"PIECE"}}]},"finish_reason":null}],"obfuscation":"PADDING"}"#,
    };

    /// Events of different forms: the name of a field differs each time.
    pub const STRANGE: Self = Self {
        name: "no two alike",
        event: r#"{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_fc9f1d7035","choices":[{"index":0,"delta":{"content":"WORD"},"logprobs":null,"finish_reason":null}],"usage":null,"xNUMBER":0}"#,
    };

    /// All forms of the servers.
    pub const ALL: [Self; 14] = [
        Self::OPENAI,
        Self {
            name: "OpenAI, obfuscation",
            event: r#"{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","service_tier":"default","system_fingerprint":"fp_fc9f1d7035","choices":[{"index":0,"delta":{"content":"WORD"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"PADDING"}"#,
        },
        Self {
            name: "OpenAI, usage on every event",
            event: r#"{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"WORD"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":11,"completion_tokens":NUMBER,"total_tokens":1NUMBER}}"#,
        },
        Self::ARGUMENTS,
        Self {
            name: "Azure OpenAI, filters",
            event: r#"{"choices":[{"content_filter_results":{"hate":{"filtered":false,"severity":"safe"},"self_harm":{"filtered":false,"severity":"safe"},"sexual":{"filtered":false,"severity":"safe"},"violence":{"filtered":false,"severity":"safe"}},"delta":{"content":"WORD"},"finish_reason":null,"index":0,"logprobs":null}],"created":1741570283,"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","model":"gpt-4o-2024-08-06","object":"chat.completion.chunk","obfuscation":"PADDING","system_fingerprint":"fp_fc9f1d7035","usage":null}"#,
        },
        Self {
            name: "OpenRouter",
            event: r#"{"id":"gen-1762105054-OfEdeIGmOt48qq3DcMZ7","provider":"AtlasCloud","model":"z-ai/glm-4.6","object":"chat.completion.chunk","created":1762105054,"choices":[{"index":0,"delta":{"role":"assistant","content":"WORD","reasoning":null,"reasoning_details":[]},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}"#,
        },
        Self {
            name: "DeepSeek, reasoning",
            event: r#"{"id":"e3a1c0f2-5f0c-4c1c-9d3f-3c8a5f1d2b7e","object":"chat.completion.chunk","created":1755252527,"model":"deepseek-reasoner","system_fingerprint":"fp_393bca965e","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"WORD"},"logprobs":null,"finish_reason":null}]}"#,
        },
        Self {
            name: "Groq",
            event: r#"{"id":"chatcmpl-b9b1c9c1-3b1a-4f0e-8a65-0a0b6f9c8f43","object":"chat.completion.chunk","created":1757000000,"model":"llama-3.3-70b-versatile","system_fingerprint":"fp_3f3b593e33","choices":[{"index":0,"delta":{"content":"WORD"},"logprobs":null,"finish_reason":null}]}"#,
        },
        Self {
            name: "Mistral",
            event: r#"{"id":"7bfa9194c90e44c5a0efa6c6efa474cd","object":"chat.completion.chunk","created":1787150315,"model":"mistral-small-latest","choices":[{"index":0,"delta":{"content":"WORD"},"finish_reason":null}],"p":"PADDING"}"#,
        },
        Self {
            name: "Mistral, thinking",
            event: r#"{"id":"7bfa9194c90e44c5a0efa6c6efa474cd","object":"chat.completion.chunk","created":1787150315,"model":"mistral-small-latest","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"WORD"}]}]},"finish_reason":null}],"p":"PADDING"}"#,
        },
        Self {
            name: "Together",
            event: r#"{"id":"oV1nHvx-28Eivz-9c4b16f37c27e605","object":"chat.completion.chunk","created":1769546683,"choices":[{"index":0,"text":"WORD","logprobs":null,"finish_reason":null,"seed":null,"delta":{"token_id":NUMBER,"role":"assistant","content":"WORD"}}],"model":"deepseek-ai/DeepSeek-R1","usage":null}"#,
        },
        Self {
            name: "xAI, reasoning",
            event: r#"{"id":"5a0e5ac3-7a0b-4f62-8b02-2c1e0dbb8b6e","object":"chat.completion.chunk","created":1757435512,"model":"grok-3-mini-high","choices":[{"index":0,"delta":{"reasoning_content":"WORD","role":"assistant"}}],"system_fingerprint":"fp_6c1c4a9ba5"}"#,
        },
        Self {
            name: "llama.cpp",
            event: r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"WORD"}}],"created":1755600000,"id":"chatcmpl-yK8Zb3QxXG7Ch2SLxWcH5yFbPz1DdRnf","model":"qwen3-1.7b","system_fingerprint":"b6209-fb22dd07","object":"chat.completion.chunk"}"#,
        },
        Self {
            name: "Gemini, compatible",
            event: r#"{"choices":[{"delta":{"content":"WORD","role":"assistant"},"index":0}],"created":1757000000,"id":"4fW4aLq3DrPhz7IP0d2x6Ag","model":"gemini-2.5-flash","object":"chat.completion.chunk","usage":{"completion_tokens":NUMBER,"prompt_tokens":9,"total_tokens":1NUMBER}}"#,
        },
    ];

    /// The forms of the Responses API, as OpenAI writes them.
    pub const RESPONSES: [Self; 3] = [
        Self {
            name: "Responses",
            event: r#"{"type":"response.output_text.delta","content_index":0,"delta":"WORD","item_id":"msg_0dd65ac660ad00e6016a3c1231c5f0819eb6adc3d7b061a6f2","logprobs":[],"obfuscation":"PADDING","output_index":0,"sequence_number":NUMBER}"#,
        },
        Self {
            name: "Responses, reasoning",
            event: r#"{"type":"response.reasoning_summary_text.delta","delta":"WORD","item_id":"rs_017e85da2ae23b69016a3c1251dcec819daf72930a854fd4d1","obfuscation":"PADDING","output_index":0,"sequence_number":NUMBER,"summary_index":0}"#,
        },
        Self {
            name: "Responses, arguments of a call",
            event: r#"{"type":"response.function_call_arguments.delta","delta":"PIECE","item_id":"fc_017e85da2ae23b69016a3c12560820819db3b6e8a38dddad65","obfuscation":"PADDING","output_index":0,"sequence_number":NUMBER}"#,
        },
    ];

    /// The forms of Ollama's own API.
    pub const OLLAMA: [Self; 2] = [
        Self {
            name: "Ollama",
            event: r#"{"model":"qwen3:4b","created_at":"2026-08-05T08:11:04.35NUMBERZ","message":{"role":"assistant","content":"WORD"},"done":false}"#,
        },
        Self {
            name: "Ollama, thinking",
            event: r#"{"model":"qwen3:4b","created_at":"2026-08-05T08:11:04.35NUMBERZ","message":{"role":"assistant","content":"","thinking":"WORD"},"done":false}"#,
        },
    ];

    /// Returns a whole body of Ollama's own API with `lines` of these events, in reads.
    #[must_use]
    pub fn ollama_body(&self, lines: usize) -> Vec<Bytes> {
        let said: Vec<String> = (0..lines).map(|number| self.event(number) + "\n").collect();
        let end = r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#;
        let reads = said.chunks(EVENTS_A_READ).map(|read| Bytes::from(read.concat()));
        reads.chain([Bytes::from_static(end.as_bytes())]).collect()
    }

    /// Returns a whole body of the Responses API with `events` of these events, in reads.
    #[must_use]
    pub fn responses_body(&self, events: usize) -> Vec<Bytes> {
        let named = |event: &str| {
            let name = event.split('"').nth(3).unwrap_or_default();
            format!("event: {name}\n{}", frame(event))
        };
        let said: Vec<String> = (0..events).map(|number| named(&self.event(number))).collect();
        let begin =
            r#"{"type":"response.created","response":{"id":"resp_1","model":"m","status":"in_progress"}}"#;
        let call = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":""}}"#;
        let calls = self.event.contains("PIECE").then_some(call);
        let end =
            r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[]}}"#;
        let reads = reads(&said);
        let head = [begin].into_iter().chain(calls).map(|event| Bytes::from(named(event)));
        head.chain(reads).chain([Bytes::from(named(end))]).collect()
    }

    /// Returns a whole body with `events` of these events, in reads.
    #[must_use]
    pub fn body(&self, events: usize) -> Vec<Bytes> {
        self.body_with(&(0..events).map(|number| frame(&self.event(number))).collect::<Vec<_>>())
    }

    /// Returns a whole body with an event for each of these texts, in reads.
    pub(crate) fn body_of(&self, texts: &[&str]) -> Vec<Bytes> {
        let event = |text: &&str| frame(&self.event.replace("WORD", &text.replace('"', "\\\"")));
        self.body_with(&texts.iter().map(event).collect::<Vec<_>>())
    }

    fn body_with(&self, said: &[String]) -> Vec<Bytes> {
        let begin =
            r#"{"id":"r","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
        let call = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]}}]}"#;
        let calls = self.event.contains("PIECE").then_some(call);
        let reads = reads(said);
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let head = [begin].into_iter().chain(calls).map(|event| Bytes::from(frame(event)));
        head.chain(reads).chain([end, "[DONE]"].map(|event| Bytes::from(frame(event)))).collect()
    }

    /// The event of this number, as JSON.
    pub(crate) fn event(&self, number: usize) -> String {
        let word = |words: &[&'static str]| words.get(number % words.len()).copied().unwrap_or_default();
        let padding = "kGq0aXz41BmR7";
        self.event
            .replace("WORD", word(&WORDS))
            .replace("PIECE", word(&ARGUMENTS))
            .replace("PADDING", padding.get(..number % padding.len()).unwrap_or_default())
            .replace("SPACES", &" ".repeat(number % padding.len()))
            .replace("NUMBER", &(1000 + number).to_string())
    }
}

/// Joins events to reads.
pub(crate) fn reads(events: &[String]) -> impl Iterator<Item = Bytes> {
    events.chunks(EVENTS_A_READ).map(|read| Bytes::from(read.concat()))
}

fn frame(event: &str) -> String {
    format!("data: {event}\n\n")
}
