//! Any messages and their parts, and their round trip through JSON.

use message_aggregator::{
    Block, BlockContent, Citation, Media, MediaSource, Message, MessageContent, Opaque, Part, ProviderData,
    Text, ToolCall, ToolResult,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any};
use proptest::prop_oneof;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) fn text() -> impl Strategy<Value = Text> {
    any::<String>().prop_map(Text::from)
}

pub(crate) fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

pub(crate) fn media() -> impl Strategy<Value = Media> {
    let source = prop_oneof![
        text().prop_map(MediaSource::Url),
        vec(any::<u8>(), 0..20).prop_map(|bytes| MediaSource::Bytes(bytes.into())),
        text().prop_map(MediaSource::ProviderFile),
    ];
    (text(), source, option::of(text())).prop_map(|(mime, source, name)| {
        let mut media = Media::from_url(mime, "");
        media.source = source;
        media.name = name;
        media
    })
}

pub(crate) fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        text().prop_map(Part::Text),
        media().prop_map(Part::Image),
        media().prop_map(Part::Audio),
        media().prop_map(Part::Video),
        media().prop_map(Part::File),
        value().prop_map(Part::Json),
    ]
}

pub(crate) fn call() -> impl Strategy<Value = ToolCall> {
    (text(), text(), any::<String>(), any::<bool>()).prop_map(|(id, name, arguments, complete)| {
        let mut call = ToolCall::new(id, name, arguments);
        call.complete = complete;
        call
    })
}

pub(crate) fn result() -> impl Strategy<Value = ToolResult> {
    (call(), vec(part(), 0..3), any::<bool>()).prop_map(|(call, parts, is_error)| {
        let mut result = ToolResult::new(&call, parts);
        result.is_error = is_error;
        result
    })
}

pub(crate) fn citation() -> impl Strategy<Value = Citation> {
    (option::of(text()), option::of(text()), option::of(text())).prop_map(|(url, title, quote)| {
        let mut citation = Citation::default();
        citation.url = url;
        citation.title = title;
        citation.quote = quote;
        citation
    })
}

pub(crate) fn block() -> impl Strategy<Value = Block> {
    let opaque = (text(), text(), value()).prop_map(|(format, name, value)| Opaque::new(format, name, value));
    let content = prop_oneof![
        any::<String>().prop_map(BlockContent::Text),
        any::<String>().prop_map(BlockContent::Reasoning),
        any::<String>().prop_map(BlockContent::Refusal),
        media().prop_map(BlockContent::Media),
        citation().prop_map(BlockContent::Citation),
        call().prop_map(BlockContent::ToolCall),
        opaque.prop_map(BlockContent::Opaque),
    ];
    let data = (text(), value()).prop_map(|(format, value)| ProviderData::new(format, value));
    (content, vec(data, 0..3)).prop_map(|(content, data)| Block::with_data(content, data))
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let content = prop_oneof![
        text().prop_map(MessageContent::System),
        vec(part(), 0..4).prop_map(MessageContent::User),
        vec(block(), 0..4).prop_map(MessageContent::Assistant),
        result().prop_map(MessageContent::Tool),
    ];
    (content, any::<bool>()).prop_map(|(content, ephemeral)| {
        let message = Message::new(content);
        if ephemeral { message.ephemeral() } else { message }
    })
}

/// Through a text, as a file or a database keeps it, and through a value.
#[allow(clippy::unwrap_used, reason = "a message that cannot be written or read is a failed test")]
pub(crate) fn again<T: Serialize + DeserializeOwned>(value: &T) -> [T; 2] {
    let text = serde_json::to_string(value).unwrap();
    let tree = serde_json::to_value(value).unwrap();
    [serde_json::from_str(&text).unwrap(), serde_json::from_value(tree).unwrap()]
}
