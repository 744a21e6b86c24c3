//! Tests of `request`.

use advisor_core::{
    Block, BlockContent, ChatOptions, Citation, ErrorKind, Media, MediaSource, Message, MessageContent,
    MessageList, Opaque, Part, ProviderData, ResponseFormat, ToolCall, ToolChoice, ToolDefinition,
    ToolResult,
};
use advisor_testkit::DescribedTool;
use provider_http::names::{IdRule, NameRule, WireNames};
use serde_json::{Value, json};

use super::*;
use crate::profile::ReasoningEcho;
use crate::wire::FORMAT;

fn streamed(profile: Profile) -> BodySettings {
    BodySettings { profile: Arc::new(profile), streaming: true }
}

fn written_by(profile: &Profile, request: &ChatRequest) -> Value {
    let (body, _) = body(request, "m", FORMAT.into(), &streamed(profile.clone())).expect("a body");
    serde_json::from_slice(&body).expect("JSON")
}

/// Returns these messages on the wire.
fn messages_by(profile: &Profile, messages: Vec<Message>) -> Value {
    written_by(profile, &ChatRequest::new(messages))["messages"].take()
}

fn message_by(profile: &Profile, message: Message) -> Value {
    messages_by(profile, vec![message])[0].take()
}

fn plain(message: Message) -> Value {
    message_by(&Profile::compatible(), message)
}

fn calling(arguments: &str) -> Message {
    Message::assistant_blocks(vec![ToolCall::new("c1", "f", arguments).into()])
}

#[test]
fn messages_go_out_one_for_one_in_order() {
    let (first, second) = (ToolCall::new("c1", "f", "{}"), ToolCall::new("c2", "g", r#"{"a":1}"#));
    let messages = vec![
        Message::system("Be brief."),
        Message::user("Hi"),
        Message::assistant_blocks(vec![
            Block::text("Let me look."),
            first.clone().into(),
            second.clone().into(),
        ]),
        Message::tool(ToolResult::new(&first, vec!["one".into()])),
        Message::tool(ToolResult::error(&second, "two")),
        Message::user("And?"),
        Message::user("Well?"),
    ];
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    assert_eq!(
        messages_by(&Profile::compatible(), messages),
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [call("c1", "f", "{}"), call("c2", "g", r#"{"a":1}"#)]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {"role": "user", "content": "And?"},
            {"role": "user", "content": "Well?"},
        ])
    );
}

#[test]
fn assistant_without_text_is_written_per_profile() {
    assert_eq!(message_by(&Profile::openai(), calling("{}")).get("content"), Some(&Value::Null));
    assert_eq!(plain(calling("{}"))["content"], "");
    // Without calls, the content is always a text.
    assert_eq!(
        message_by(&Profile::openai(), Message::assistant_blocks(vec![])),
        json!({"role": "assistant", "content": ""})
    );
}

#[test]
fn text_is_joined_as_it_came() {
    let call = || Block::from(ToolCall::new("c1", "f", "{}"));
    let citation = || Block::new(BlockContent::Citation(Citation::default()));
    let cases: Vec<(&str, Vec<Block>, &str)> = vec![
        ("around a source", vec![Block::text("a"), citation(), Block::text("b")], "ab"),
        ("around a call", vec![Block::text("a"), call(), Block::text("b")], "ab"),
        ("side by side", vec![Block::text("a"), Block::text("b")], "a\n\nb"),
        ("beside an empty one", vec![Block::text("a"), Block::text("")], "a"),
        ("a refusal", vec![Block::new(BlockContent::Refusal("No.".into()))], "No."),
        (
            "reasoning is no text",
            vec![Block::new(BlockContent::Reasoning("r".into())), Block::text("a")],
            "a",
        ),
        (
            "what others understand is left out",
            vec![
                Block::new(BlockContent::Opaque(Opaque::new("other", "audio", json!({"id": 1})))),
                Block::text("a"),
            ],
            "a",
        ),
    ];
    for (name, blocks, text) in cases {
        assert_eq!(plain(Message::assistant_blocks(blocks))["content"], text, "{name}");
    }
    let sound =
        Block::new(BlockContent::Opaque(Opaque::new(FORMAT, "audio", json!({"id": "a1", "data": "AA=="}))));
    assert_eq!(plain(Message::assistant_blocks(vec![sound]))["audio"], json!({"id": "a1"}));
}

#[test]
fn audio_goes_back_by_its_id_until_it_expires() {
    let sound = |format: &str, fields: Value| {
        let media = BlockContent::Media(Media::from_bytes("audio/wav", vec![1]));
        let data = ProviderData::new(format, json!({ "audio": fields }));
        plain(Message::assistant_blocks(vec![Block::text("Hi"), Block::with_data(media, vec![data])]))
    };
    let message = |audio: Value| json!({"role": "assistant", "content": "Hi", "audio": audio});
    assert_eq!(sound(FORMAT, json!({"id": "a1"})), message(json!({"id": "a1"})));
    let later = json!({"id": "a1", "expires_at": u64::MAX});
    assert_eq!(sound(FORMAT, later), message(json!({"id": "a1"})));
    for (format, fields) in [
        (FORMAT, json!({"id": "a1", "expires_at": 1})),
        (FORMAT, json!({"expires_at": u64::MAX})),
        ("gemini", json!({"id": "a1"})),
    ] {
        let words = json!({"role": "assistant", "content": "Hi"});
        assert_eq!(sound(format, fields.clone()), words, "the transcript alone: {fields}");
    }
}

#[test]
fn unsendable_answer_content_is_named() {
    let media = |mime: &str| Block::new(BlockContent::Media(Media::from_url(mime, "https://x/y")));
    let opaque = || Block::new(BlockContent::Opaque(Opaque::new(FORMAT, "executed_tools", json!([]))));
    let reasoning = || Block::new(BlockContent::Reasoning("so".into()));
    let unknown = "[content that cannot be shown here]";
    let cases: Vec<(Vec<Block>, &str)> = vec![
        (vec![media("image/png")], "[image]"),
        (
            vec![media("audio/wav"), media("video/mp4"), media("application/pdf")],
            "[audio]\n\n[video]\n\n[file]",
        ),
        (vec![media("image/png"), media("image/*")], "[image]\n\n[image]"),
        (vec![opaque()], unknown),
        (vec![opaque(), opaque()], unknown),
        (vec![reasoning(), opaque(), media("image/png")], "[image]"),
        (vec![Block::text("Here:"), media("image/png"), opaque()], "Here:\n\n[image]"),
        (vec![Block::text("Here"), media("image/png"), Block::text("it is.")], "Here\n\n[image]\n\nit is."),
        (vec![Block::text("Spoken."), media("audio/wav")], "Spoken."),
        // An empty answer needs no note.
        (vec![reasoning()], ""),
        (vec![], ""),
    ];
    for (blocks, content) in cases {
        assert_eq!(plain(Message::assistant_blocks(blocks.clone()))["content"], content, "{blocks:?}");
    }
    let calling = vec![media("image/png"), ToolCall::new("c1", "f", "{}").into()];
    assert_eq!(plain(Message::assistant_blocks(calling))["content"], "[image]", "also beside calls");
    let sound = Block::new(BlockContent::Opaque(Opaque::new(FORMAT, "audio", json!({"id": "a1"}))));
    assert_eq!(
        plain(Message::assistant_blocks(vec![sound])),
        json!({"role": "assistant", "content": "", "audio": {"id": "a1"}}),
        "it goes back by its id"
    );
}

/// Returns the wire form of a call's arguments.
fn arguments_of(written: &str) -> String {
    let message = plain(calling(written));
    message["tool_calls"][0]["function"]["arguments"].as_str().expect("a text").to_owned()
}

#[test]
fn arguments_that_strict_parsers_refuse_are_wrapped() {
    let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let lists = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    let refused = [
        r#"{"a":"\ud83d"}"#.to_owned(),
        r#"{"a":["x\udc00y"]}"#.to_owned(),
        r#"{"a":"\ud83d\ud83d"}"#.to_owned(),
        r#"{"\ud83d":1}"#.to_owned(),
        r#"{"a":{"\udc00":1}}"#.to_owned(),
        r#"{"a":1e400}"#.to_owned(),
        r#"{"a":[-1e999]}"#.to_owned(),
        format!("{{\"a\":{}}}", "9".repeat(400)),
        r#"{"a":NaN}"#.to_owned(),
        r#"{"a":-Infinity}"#.to_owned(),
        r#"{"a":01}"#.to_owned(),
        r#"{"a":1,}"#.to_owned(),
        r#"{'a':1}"#.to_owned(),
        "{\"a\":\"\n\"}".to_owned(),
        "\u{feff}{}".to_owned(),
        "\u{a0}{}".to_owned(),
        nested(65),
        nested(128),
        nested(129),
        nested(20_000),
        lists(65),
        lists(129),
    ];
    for written in refused {
        let shown: String = written.chars().take(60).collect();
        let wrapped: Value = serde_json::from_str(&arguments_of(&written)).expect("JSON");
        assert_eq!(wrapped, json!({ "unparsable_arguments": written }), "{shown}");
    }
    for written in [
        r#"{"a":"\ud83d\ude00","b":"\u0000","\u00e9":"é😀"}"#.to_owned(),
        r#"{"a":1180591620717411303424,"b":1e308,"c":1e-400,"d":-0,"e":0.1}"#.to_owned(),
        "\t{ \"a\" : [ ] }\r\n".to_owned(),
        r#"{"":{"":[]}}"#.to_owned(),
        nested(64),
        lists(64),
    ] {
        assert_eq!(arguments_of(&written), written, "byte for byte as they came");
    }
}

/// Of two equal keys some parsers take the first, some the last, and some neither.
#[test]
fn repeated_keys_send_value_tools_get() {
    for (written, expected) in [
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        (r#"{"a":[{"x":1,"x":2}]}"#, r#"{"a":[{"x":2}]}"#),
        (r#"{"a":1,"\u0061":{"b":null}}"#, r#"{"a":{"b":null}}"#),
    ] {
        let given = ToolCall::new("c1", "f", written).parsed_arguments().expect("the tool gets arguments");
        assert_eq!(arguments_of(written), expected);
        assert_eq!(serde_json::from_str::<Value>(expected).expect("JSON"), given);
    }
    // The same key in different objects is not repeated.
    let apart = r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#;
    assert_eq!(arguments_of(apart), apart);
}

#[test]
fn server_data_is_returned_within_strict_depth() {
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    let call = |value: Value| {
        let data = vec![ProviderData::new(FORMAT, json!({"x": value, "function": {"y": value}, "z": 1}))];
        let call = Block::with_data(BlockContent::ToolCall(ToolCall::new("c", "f", "{}")), data);
        plain(Message::assistant_blocks(vec![call]))["tool_calls"][0].take()
    };
    let (kept, dropped) = (call(nested(50)), call(nested(100)));
    assert_eq!((&kept["x"], &kept["function"]["y"]), (&nested(50), &nested(50)));
    assert_eq!((dropped.get("x"), dropped["function"].get("y"), &dropped["z"]), (None, None, &json!(1)));
    let detail = |value: Value| {
        let data = vec![ProviderData::new(
            FORMAT,
            json!({"reasoning_details": [{"type": "t", "text": "a", "x": value}]}),
        )];
        let block = Block::with_data(BlockContent::Reasoning("a".into()), data);
        message_by(&Profile::openrouter(), Message::assistant_blocks(vec![block]))["reasoning_details"].take()
    };
    assert_eq!(detail(nested(50)), json!([{"type": "t", "text": "a", "x": nested(50)}]));
    assert_eq!(detail(nested(100)), json!([{"type": "t", "text": "a"}]));
}

/// Returns the names in a body: of offered tools, of calls and results, and of the tool choice.
fn names_in(written: &Value) -> (Vec<String>, Vec<String>, Option<String>) {
    let text = |name: &Value| name.as_str().map(str::to_owned);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let offered = list(&written["tools"]).iter().filter_map(|tool| text(&tool["function"]["name"])).collect();
    let of_message = |message: &Value| {
        let calls =
            list(&message["tool_calls"]).into_iter().filter_map(|call| text(&call["function"]["name"]));
        calls.chain(text(&message["name"])).collect::<Vec<_>>()
    };
    let replayed = list(&written["messages"]).iter().flat_map(of_message).collect();
    (offered, replayed, text(&written["tool_choice"]["function"]["name"]))
}

/// Returns a round in which a tool of this name was called.
fn round(id: &str, name: &str) -> [Message; 2] {
    let call = ToolCall::new(id, name, "{}");
    [
        Message::assistant_blocks(vec![call.clone().into()]),
        Message::tool(ToolResult::new(&call, vec!["x".into()])),
    ]
}

#[test]
fn a_tool_has_one_name_in_a_request() {
    for profile in [Profile::compatible(), Profile::openai(), Profile::mistral()] {
        // Each name, alone and beside the tools `docs_search` and `read`.
        for name in ["docs.search", "docs_search", "read", "größe", "with space", "", &"x".repeat(70)] {
            for also in [&["docs_search", "read"][..], &[]] {
                let options = ChatOptions {
                    tool_choice: Some(ToolChoice::Tool(name.into())),
                    ..ChatOptions::default()
                };
                let mut request = ChatRequest {
                    options,
                    ..ChatRequest::new([round("call00001", name), round("call00002", name)].concat())
                };
                for other in also.iter().filter(|other| **other != name) {
                    request = request.with_tool(DescribedTool::named(other));
                }
                let request = request.with_tool(DescribedTool::named(name));
                let (body, names) =
                    body(&request, "m", FORMAT.into(), &streamed(profile.clone())).expect("a body");
                let (offered, replayed, chosen) = names_in(&serde_json::from_slice(&body).expect("JSON"));
                let wire = chosen.expect("a choice");
                assert_eq!(offered.last(), Some(&wire));
                assert_eq!(offered.iter().filter(|other| **other == wire).count(), 1, "{offered:?}");
                assert!(
                    !replayed.is_empty() && replayed.iter().all(|replayed| *replayed == wire),
                    "{replayed:?}"
                );
                let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
                assert!((1..=64).contains(&wire.len()) && wire.bytes().all(in_name), "{wire}");
                assert_eq!(names.meant_by(&wire).as_deref(), Some(name));
            }
        }
    }
}

#[test]
fn history_and_tool_names_stay_distinct() {
    let profile = Profile::compatible();
    let history =
        [round("c1", "docs_search"), round("c2", "docs/search"), round("c3", "docs.search")].concat();
    let request = ChatRequest::new(history.clone()).with_tool(DescribedTool::named("docs.search"));
    let (written, names) = body(&request, "m", FORMAT.into(), &streamed(profile.clone())).expect("a body");
    let (offered, replayed, _) = names_in(&serde_json::from_slice(&written).expect("JSON"));
    assert_eq!(replayed[0], "docs_search");
    assert_eq!(replayed[2], offered[0]);
    let all: std::collections::HashSet<_> = replayed.iter().collect();
    assert_eq!(all.len(), 3, "{replayed:?}");
    for (wire, name) in replayed.iter().zip(["docs_search", "docs/search", "docs.search"]) {
        assert_eq!(names.meant_by(wire).as_deref().unwrap_or(wire), name);
    }
    // Alone, each has its usual name again, even if the tools of the set were written before.
    let alone = ChatRequest { tools: request.tools.clone(), ..ChatRequest::new(history[4..].to_vec()) };
    let (offered, replayed, _) = names_in(&written_by(&profile, &alone));
    assert_eq!((offered, replayed), (vec!["docs_search".to_owned()], vec!["docs_search".to_owned()]));
    // Names in the history are mapped even if the request has no tools.
    let without = ChatRequest::new(history);
    let (written, names) = body(&without, "m", FORMAT.into(), &streamed(profile.clone())).expect("a body");
    let (_, replayed, _) = names_in(&serde_json::from_slice(&written).expect("JSON"));
    assert_eq!(replayed.iter().collect::<std::collections::HashSet<_>>().len(), 3);
    assert_eq!(names.meant_by(&replayed[1]).as_deref(), Some("docs/search"));
}

#[test]
fn only_tools_that_api_describes_are_sent() {
    let openai = Profile::openai();
    let mut alone = Profile::openai();
    alone.offers_named_tool_alone = true;
    let named = |name: &str| Some(ToolChoice::Tool(name.into()));
    for (profile, by_api, choice, expected, chosen) in [
        (&openai, &["look", "read"][..], named("look"), &["look", "read"][..], true),
        (&openai, &["read"], None, &["read"], false),
        (&openai, &["read"], Some(ToolChoice::Required), &["read"], true),
        (&openai, &["read"], named("read"), &["read"], true),
        (&openai, &["read"], named("look"), &["read"], false),
        (&alone, &["read"], named("look"), &["read"], false),
        (&alone, &["look", "read"], named("look"), &["look"], true),
        (&openai, &[], Some(ToolChoice::Auto), &[], false),
        (&openai, &[], named("look"), &[], false),
        (&alone, &[], named("look"), &[], false),
    ] {
        let mut options = ChatOptions { parallel_tool_calls: Some(true), ..ChatOptions::default() };
        options.tool_choice = choice;
        let request = ChatRequest { options, ..ChatRequest::new(vec![Message::user("?")]) };
        let request = request.with_tool(DescribedTool::named("look")).with_tool(DescribedTool::named("read"));
        let by_api = request.tools.filtered(|name| by_api.contains(&name));
        let written = written_by(profile, &ChatRequest { api_tools: Some(by_api), ..request });
        assert_eq!(names_in(&written).0, expected);
        assert_eq!(written.get("tool_choice").is_some(), chosen, "{expected:?}");
        assert_eq!(written.get("parallel_tool_calls").is_some(), !expected.is_empty());
    }
}

#[test]
fn tools_that_the_caller_wrote_keep_their_names() {
    let mut request = ChatRequest::new(round("c1", "docs.search").to_vec());
    let own = json!([{"type": "function", "function": {"name": "docs.search"}}]);
    request.options.extra.insert("tools".to_owned(), own);
    let (body, names) = body(&request, "m", FORMAT.into(), &streamed(Profile::compatible())).expect("a body");
    let (offered, replayed, _) = names_in(&serde_json::from_slice(&body).expect("JSON"));
    assert_eq!((offered, replayed), (vec!["docs.search".to_owned()], vec!["docs.search".to_owned()]));
    assert!(names.meant_by("docs_search").is_none());
}

#[test]
fn user_parts_have_their_forms() {
    let bytes = |mime: &str| Media::from_bytes(mime, vec![1, 2, 3]);
    let mut stored = Media::from_url("application/pdf", "");
    stored.source = MediaSource::ProviderFile("file-1".into());
    let cases: Vec<(Part, Value)> = vec![
        (
            Part::Image(bytes("image/png")),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}}),
        ),
        (
            Part::Image(Media::from_url("image/png", "https://x/y")),
            json!({"type": "image_url", "image_url": {"url": "https://x/y"}}),
        ),
        (Part::Image(stored.clone()), json!({"type": "file", "file": {"file_id": "file-1"}})),
        (
            Part::Audio(bytes("audio/mpeg")),
            json!({"type": "input_audio", "input_audio": {"data": "AQID", "format": "mp3"}}),
        ),
        (
            Part::Audio(bytes("audio/x-wav")),
            json!({"type": "input_audio", "input_audio": {"data": "AQID", "format": "wav"}}),
        ),
        (
            Part::Audio(bytes("audio/ogg")),
            json!({"type": "input_audio", "input_audio": {"data": "AQID", "format": "ogg"}}),
        ),
        (
            Part::Audio(Media::from_url("audio/wav", "u")),
            json!({"type": "audio_url", "audio_url": {"url": "u"}}),
        ),
        (
            Part::Video(Media::from_url("video/mp4", "u")),
            json!({"type": "video_url", "video_url": {"url": "u"}}),
        ),
        (Part::File(stored), json!({"type": "file", "file": {"file_id": "file-1"}})),
        (
            Part::File(bytes("application/pdf").with_name("a.pdf")),
            json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AQID"}}),
        ),
        (
            Part::Audio(Media::from_url("audio/*", "data:audio/wav;base64,AQID")),
            json!({"type": "input_audio", "input_audio": {"data": "AQID", "format": "wav"}}),
        ),
        (Part::Json(json!({"a": 1})), json!({"type": "text", "text": "{\"a\":1}"})),
        (
            Part::Image(Media::from_url("image/png", "")),
            json!({"type": "text", "text": "[image/png left out: it is empty]"}),
        ),
    ];
    let picture = || Part::Image(Media::from_url("image/png", "p"));
    for (part, expected) in cases {
        let content = plain(Message::user_parts(vec!["Look:".into(), part, picture()]))["content"].take();
        assert_eq!(content[0], json!({"type": "text", "text": "Look:"}));
        assert_eq!(content[1], expected);
    }
    // Content of text only is one text: not every server accepts parts.
    assert_eq!(
        plain(Message::user_parts(vec!["a".into(), json!({"b": 1}).into()]))["content"],
        "a\n{\"b\":1}"
    );
    assert_eq!(plain(Message::user_parts(vec![]))["content"], "");
    let nothing = Part::File(Media::from_bytes("text/plain", vec![]));
    assert_eq!(plain(Message::user_parts(vec![nothing]))["content"], "[text/plain left out: it is empty]");
}

#[test]
fn tool_results_hold_text_or_supported_media() {
    let call = ToolCall::new("c1", "f", "{}");
    let result = || {
        let picture = Part::Image(Media::from_bytes("image/png", vec![1, 2, 3]));
        Message::tool(ToolResult::new(&call, vec!["Seen:".into(), json!({"n": 1}).into(), picture]))
    };
    assert_eq!(
        plain(result())["content"],
        "Seen:\n{\"n\":1}\n[image/png left out: this server takes only text from tools]"
    );
    let with_media = message_by(&Profile::openrouter(), result());
    assert_eq!(with_media["content"][2]["type"], "image_url");
    assert!(with_media.get("name").is_none());
    assert_eq!(message_by(&Profile::mistral(), result())["name"], "f");
}

#[test]
fn failure_without_text_says_so() {
    let call = ToolCall::new("c1", "f", "{}");
    let note = "[the tool failed without a message]";
    assert_eq!(plain(Message::tool(ToolResult::error(&call, " ")))["content"], note);
    let mut pictured = ToolResult::new(&call, vec![Part::Image(Media::from_bytes("image/png", vec![1]))]);
    pictured.is_error = true;
    let told = format!("{note}\n[image/png left out: this server takes only text from tools]");
    assert_eq!(plain(Message::tool(pictured.clone()))["content"], told);
    let with_media = message_by(&Profile::openrouter(), Message::tool(pictured));
    assert_eq!(with_media["content"][0], json!({"type": "text", "text": note}));
    assert_eq!(with_media["content"][1]["type"], "image_url");
}

#[test]
fn ids_map_consistently_and_only_on_the_wire() {
    let call = ToolCall::new("functions.f:0", "f", "{}");
    let messages = vec![
        Message::assistant_blocks(vec![call.clone().into()]),
        Message::tool(ToolResult::new(&call, vec!["x".into()])),
    ];
    let written = messages_by(&Profile::mistral(), messages.clone());
    let id = written[0]["tool_calls"][0]["id"].as_str().expect("an id");
    assert_eq!(id.len(), 9);
    assert_eq!(written[1]["tool_call_id"], id);
    assert_eq!(messages[1].tool_result().expect("a result").call_id, *"functions.f:0");
    // The same messages keep their ids at another server.
    assert_eq!(messages_by(&Profile::openai(), messages)[1]["tool_call_id"], "functions.f:0");
}

#[test]
fn colliding_ids_stay_distinct_in_whole_request() {
    let profile = Profile::mistral();
    let answered = |id: &str| {
        let call = ToolCall::new(id, "f", "{}");
        [
            Message::assistant_blocks(vec![call.clone().into()]),
            Message::tool(ToolResult::new(&call, vec!["x".into()])),
        ]
    };
    let usual = messages_by(&profile, answered("call_1").to_vec())[1]["tool_call_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let both = [answered("call_1"), answered(&usual)].concat();
    let written = messages_by(&profile, both.clone());
    let ids: Vec<&Value> = vec![
        &written[0]["tool_calls"][0]["id"],
        &written[1]["tool_call_id"],
        &written[2]["tool_calls"][0]["id"],
        &written[3]["tool_call_id"],
    ];
    assert_eq!(ids[0], ids[1]);
    assert_eq!((ids[2], ids[3]), (&json!(usual), &json!(usual)));
    assert_ne!(ids[0], ids[2]);
    // Without the conflicting id, the kept form is the usual one again.
    assert_eq!(messages_by(&profile, both[..2].to_vec())[1]["tool_call_id"], usual.as_str());
}

#[test]
fn reasoning_goes_back_as_the_server_wants_it() {
    let reasoning = |text: &str| Block::new(BlockContent::Reasoning(text.into()));
    let thinking_call =
        || Message::assistant_blocks(vec![reasoning("so"), ToolCall::new("c", "f", "{}").into()]);
    let thinking_text = || Message::assistant_blocks(vec![reasoning("so"), Block::text("Hi")]);
    let silent_call = || calling("{}");
    use ReasoningEcho::{Details, Never, Reasoning, ReasoningContent, RequiredReasoningContent};
    let so = || Some(json!("so"));
    let none = || [None, None, None];
    let cases = [
        (Never, thinking_call(), none()),
        (ReasoningContent, thinking_call(), [so(), None, None]),
        (ReasoningContent, thinking_text(), none()),
        (ReasoningContent, silent_call(), none()),
        (Reasoning, thinking_call(), [None, so(), None]),
        (RequiredReasoningContent, silent_call(), [Some(json!("")), None, None]),
        (RequiredReasoningContent, thinking_text(), none()),
        (Details, thinking_text(), [None, so(), None]),
        (Details, silent_call(), none()),
    ];
    for (echo, message, expected) in cases {
        let mut profile = Profile::compatible();
        profile.reasoning = echo;
        let message = message_by(&profile, message);
        let written =
            ["reasoning_content", "reasoning", "reasoning_details"].map(|key| message.get(key).cloned());
        assert_eq!(written, expected, "{echo:?}");
    }
}

#[test]
fn reasoning_details_go_back_as_wholes() {
    let piece = |detail: Value| ProviderData::new(FORMAT, json!({"reasoning_details": [detail]}));
    let data = vec![
        piece(json!({"type": "reasoning.text", "text": "a", "format": "f", "index": 0, "signature": null})),
        piece(json!({"type": "reasoning.text", "text": "b", "format": null, "index": 0})),
        ProviderData::new("other", json!({"reasoning_details": [{"type": "x"}]})),
        piece(json!({"type": "reasoning.text", "text": "", "index": 0, "signature": "s"})),
        piece(json!({"type": "reasoning.text", "text": "", "index": 0, "signature": ""})),
        piece(json!({"type": "reasoning.text", "text": "c", "index": 1})),
        piece(json!({"type": "reasoning.encrypted", "data": "x", "index": 1, "id": "i"})),
        piece(json!({"type": "reasoning.encrypted", "data": "y", "index": 1, "id": "j"})),
        piece(json!({"type": "reasoning.summary", "summary": "d", "index": 2})),
        piece(json!({"type": "reasoning.text", "text": "c", "index": 1})),
        piece(json!({"type": "reasoning.summary", "summary": "e", "index": 2})),
    ];
    let block = Block::with_data(BlockContent::Reasoning("abc".into()), data);
    let written = message_by(&Profile::openrouter(), Message::assistant_blocks(vec![block]));
    assert_eq!(
        written["reasoning_details"],
        json!([
            {"type": "reasoning.text", "text": "ab", "format": "f", "index": 0, "signature": "s"},
            {"type": "reasoning.text", "text": "cc", "index": 1},
            {"type": "reasoning.encrypted", "data": "x", "index": 1, "id": "i"},
            {"type": "reasoning.encrypted", "data": "y", "index": 1, "id": "j"},
            {"type": "reasoning.summary", "summary": "de", "index": 2},
        ])
    );
    assert!(written.get("reasoning").is_none());
}

/// A detail with its signature is whole. Without a number, only the detail before goes on.
#[test]
fn signed_reasoning_details_stay_apart() {
    for index in [json!(null), json!(0)] {
        let piece = |detail: Value| ProviderData::new(FORMAT, json!({"reasoning_details": [detail]}));
        let details = [
            json!({"type": "reasoning.text", "text": "a", "signature": "s1", "index": index}),
            json!({"type": "reasoning.encrypted", "data": "x", "index": index}),
            json!({"type": "reasoning.text", "text": "b", "signature": "s2", "index": index}),
        ];
        let block = Block::with_data(BlockContent::Reasoning("ab".into()), details.clone().map(piece).into());
        let written = message_by(&Profile::openrouter(), Message::assistant_blocks(vec![block]));
        let texts =
            |list: &[Value]| list.iter().map(|detail| detail["signature"].clone()).collect::<Vec<_>>();
        assert_eq!(texts(written["reasoning_details"].as_array().expect("a list")), texts(&details));
    }
}

#[test]
fn server_call_data_is_returned_where_supported() {
    let data = vec![
        ProviderData::new(
            FORMAT,
            json!({"extra_content": {"google": {"thought_signature": "s"}}, "function": {"x": 1}}),
        ),
        ProviderData::new("other", json!({"id": "not mine"})),
    ];
    let call = Block::with_data(BlockContent::ToolCall(ToolCall::new("c", "f", "{}")), data);
    let message = || Message::assistant_blocks(vec![call.clone()]);
    assert_eq!(
        plain(message())["tool_calls"],
        json!([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "x": 1},
            "extra_content": {"google": {"thought_signature": "s"}}}])
    );
    let strict = message_by(&Profile::groq(), message());
    assert_eq!(
        strict["tool_calls"],
        json!([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}])
    );
}

#[test]
fn options_have_the_names_that_the_server_knows() {
    let options = |profile: &Profile, change: fn(&mut ChatOptions)| {
        let mut options = ChatOptions::default();
        change(&mut options);
        let request = ChatRequest { options, ..ChatRequest::new(Message::user("x")) }
            .with_tool(DescribedTool::named("f"))
            .with_tool(DescribedTool::named("g"));
        written_by(profile, &request)
    };
    let all: fn(&mut ChatOptions) = |options| {
        options.temperature = Some(0.5);
        options.top_p = Some(0.9);
        options.max_tokens = Some(7);
        options.seed = Some(-3);
        options.stop = vec!["a".into(), "b".into()];
        options.parallel_tool_calls = Some(false);
        options.tool_choice = Some(ToolChoice::Required);
        options.response_format = Some(ResponseFormat::JsonObject);
    };
    let mut written = options(&Profile::compatible(), all);
    let fields = written.as_object_mut().expect("an object");
    fields.remove("messages");
    let function = |name: &str| json!({"type": "function", "function": {"name": name, "description": "Does it.", "parameters": {"type": "object"}}});
    assert_eq!(
        written,
        json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0.5, "top_p": 0.9, "max_tokens": 7,
            "seed": -3, "stop": ["a", "b"], "parallel_tool_calls": false, "tool_choice": "required",
            "response_format": {"type": "json_object"}, "tools": [function("f"), function("g")],
        })
    );
    let openai = options(&Profile::openai(), all);
    assert_eq!((&openai["max_completion_tokens"], openai.get("max_tokens")), (&json!(7), None));
    let mistral = options(&Profile::mistral(), all);
    assert_eq!((&mistral["random_seed"], &mistral["tool_choice"]), (&json!(-3), &json!("any")));
    assert_eq!((mistral.get("seed"), mistral.get("stream_options")), (None, None));

    let choice =
        |profile: &Profile, choice: fn(&mut ChatOptions)| options(profile, choice)["tool_choice"].take();
    let compatible = Profile::compatible();
    assert_eq!(choice(&compatible, |options| options.tool_choice = Some(ToolChoice::Auto)), "auto");
    assert_eq!(choice(&compatible, |options| options.tool_choice = Some(ToolChoice::None)), "none");
    let named: fn(&mut ChatOptions) = |options| options.tool_choice = Some(ToolChoice::Tool("g".into()));
    assert_eq!(choice(&compatible, named), json!({"type": "function", "function": {"name": "g"}}));
    // llama.cpp treats the object as "auto".
    let alone = options(&Profile::llama_cpp(), named);
    assert_eq!((&alone["tool_choice"], &alone["tools"]), (&json!("required"), &json!([function("g")])));

    let schema = options(&compatible, |options| {
        let (name, schema) = ("answer".into(), json!({"type": "object"}));
        options.response_format = Some(ResponseFormat::JsonSchema { name, schema, strict: true });
    });
    assert_eq!(
        schema["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": true}})
    );
}

#[test]
fn tools_are_written_once_per_set() {
    let request = ChatRequest::new(Message::user("x")).with_tool(DescribedTool::named("f"));
    let tools = |request: &ChatRequest| {
        let names = WireNames::new(request, IdRule::Any, NameRule::Word, &[]);
        options::tools(request, &Profile::openai(), &names).expect("JSON").expect("tools")
    };
    assert_eq!(tools(&request)[0].as_ptr(), tools(&request.clone())[0].as_ptr());
    let more = request.clone().with_tool(DescribedTool::named("g"));
    let names = |request: &ChatRequest| {
        let written = written_by(&Profile::openai(), request)["tools"].take();
        written
            .as_array()
            .into_iter()
            .flatten()
            .map(|tool| tool["function"]["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!((names(&request), names(&more)), (vec![json!("f")], vec![json!("f"), json!("g")]));
    let mut own = request.clone();
    own.options.extra.insert("tools".to_owned(), json!([{"type": "web_search"}]));
    assert_eq!(written_by(&Profile::openai(), &own)["tools"], json!([{"type": "web_search"}]));
}

#[test]
fn tools_are_functions_with_parameters() {
    let now = DescribedTool::new(ToolDefinition::new("now", "", Value::Null));
    let request = ChatRequest::new(Message::user("x")).with_tool(DescribedTool::named("look")).with_tool(now);
    for profile in [Profile::openai(), Profile::mistral()] {
        let tools = written_by(&profile, &request)["tools"].take();
        let look = json!({"name": "look", "description": "Does it.", "parameters": {"type": "object"}});
        assert_eq!(tools[0], json!({"type": "function", "function": look}));
        assert_eq!(tools[1]["function"]["parameters"], json!({"type": "object", "properties": {}}));
    }
}

#[test]
fn request_without_tools_omits_tool_options() {
    let mut options = ChatOptions { tool_choice: Some(ToolChoice::None), ..ChatOptions::default() };
    options.parallel_tool_calls = Some(true);
    let request = ChatRequest { options, ..ChatRequest::new(Message::user("x")) };
    let settings = BodySettings { streaming: false, ..streamed(Profile::compatible()) };
    let (written, _) = body(&request, "m", FORMAT.into(), &settings).expect("a body");
    let mut written: Value = serde_json::from_slice(&written).expect("JSON");
    written.as_object_mut().expect("an object").remove("messages");
    assert_eq!(written, json!({"model": "m", "stream": false}));
}

#[test]
fn extra_fields_win() {
    let mut options = ChatOptions { temperature: Some(0.1), ..ChatOptions::default() };
    let extra = json!({"temperature": 1.0, "n": 1, "service_tier": "flex"});
    options.extra.extend(extra.as_object().cloned().expect("an object"));
    let mut request = ChatRequest { options, ..ChatRequest::new(Message::user("x")) };
    let json = written_by(&Profile::openai(), &request);
    assert_eq!(
        (&json["temperature"], &json["service_tier"], &json["messages"][0]["content"]),
        (&json!(1.0), &json!("flex"), &json!("x"))
    );
    request.options.extra.insert("messages".to_owned(), json!([]));
    assert_eq!(written_by(&Profile::openai(), &request)["messages"], json!([]));
    request.options.extra.insert("n".to_owned(), json!(3));
    let error =
        body(&request, "m", FORMAT.into(), &streamed(Profile::openai())).expect_err("one answer only");
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

#[test]
fn data_goes_to_its_own_server_only() {
    let data = |value: Value| vec![ProviderData::new(FORMAT, value)];
    let thought = data(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "secret"}]}));
    let signed = data(json!({"extra_content": {"google": {"thought_signature": "secret"}}}));
    let sound = Opaque::new(FORMAT, "audio", json!({"id": "secret"}));
    let answer = Message::assistant_blocks(vec![
        Block::with_data(BlockContent::Reasoning("Hm.".into()), thought),
        Block::with_data(BlockContent::ToolCall(ToolCall::new("c", "look", "{}")), signed),
        Block::new(BlockContent::Opaque(sound)),
    ]);
    let messages = MessageList::from(vec![answer]);
    let written = |format: &str| {
        let request = ChatRequest::new(messages.clone());
        let (body, _) = body(&request, "m", format.into(), &streamed(Profile::openrouter())).expect("a body");
        String::from_utf8(body.to_vec()).expect("text")
    };
    // The message keeps both forms.
    for _ in 0..2 {
        assert_eq!(written(FORMAT).matches("secret").count(), 3);
        let elsewhere = written("openai-chat@other.example");
        assert!(!elsewhere.contains("secret") && elsewhere.contains("\"reasoning\":\"Hm.\""), "{elsewhere}");
    }
}

#[test]
fn an_empty_transcript_is_an_empty_list() {
    assert_eq!(messages_by(&Profile::compatible(), vec![]), json!([]));
    let only_system = Message::new(MessageContent::System("s".into()));
    assert_eq!(plain(only_system), json!({"role": "system", "content": "s"}));
}
