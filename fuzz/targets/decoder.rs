//! Checks that any split of any body gives the same events, chunks and errors.
//!
//! The input is four digits (small bounds, tags, content type, seed of the split), then the body.
#![no_main]

#[path = "../../crates/message-aggregator/tests/all/common.rs"]
mod common;

use advisor_core::{ChatModel, ChatRequest, Chunk, Message, Turn, TurnId};
use advisor_fuzz::{Script, wait_for};
use advisor_testkit::split::random_splits;
use async_trait::async_trait;
use bytes::Bytes;
use common::{ROUND, Run};
use futures::{StreamExt, stream};
use libfuzzer_sys::fuzz_target;
use provider_openai::backoff::Backoff;
use provider_openai::sse::{SseDecoder, SseError, SseLimits};
use provider_openai::transport::{ByteStream, Transport, TransportError};
use provider_openai::{OpenAiModel, Profile, ThinkTags, recording};

fuzz_target!(|script: &[u8]| {
    let mut script = Script::new(script);
    let limits = script.pick(&[SseLimits::default(), SseLimits { line: 64, event: 100 }]);
    let asked = Asked {
        tags: script.pick(&[ThinkTags::AsText, ThinkTags::Leading]),
        content_type: script.pick(&["", "text/event-stream", "application/json", "text/html"]),
        limits,
    };
    let seed = script.number() as u64;
    let body = script.rest();
    let whole = [body];
    let one_by_one: Vec<_> = body.chunks(1).collect();
    let cuts = random_splits(body, seed, 1).map(|split| split.pieces);
    let cuts = cuts.chain([one_by_one]);

    let events = Events::of(&whole, limits);
    events.assert_bounded(body, limits);
    let outcome = recording::aggregate(owned(&whole));
    let (chunks, error) = asked.answer(&whole);
    assert_lawful(&chunks, error.as_deref());
    for pieces in cuts {
        assert_eq!(Events::of(&pieces, limits), events, "{} pieces", pieces.len());
        assert_eq!(recording::aggregate(owned(&pieces)), outcome, "{} pieces", pieces.len());
        assert_eq!(asked.answer(&pieces), (chunks.clone(), error.clone()), "{} pieces", pieces.len());
    }
});

fn owned(pieces: &[&[u8]]) -> Vec<Bytes> {
    pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect()
}

/// The result of the decoder of server-sent events for a body.
#[derive(Debug, PartialEq)]
struct Events {
    /// The name, the data, the position of each event, and whether it was cut.
    events: Vec<(Option<String>, String, bool, u64)>,
    comments: u64,
    error: Option<SseError>,
}

impl Events {
    fn of(pieces: &[&[u8]], limits: SseLimits) -> Self {
        let mut decoder = SseDecoder::new(limits);
        let (mut events, mut error) = (Vec::new(), None);
        for piece in pieces.iter().map(Some).chain([None]) {
            match piece {
                Some(piece) => decoder.push(piece),
                None => decoder.finish(),
            }
            loop {
                match decoder.next_event() {
                    Ok(Some(event)) => {
                        let name = event.event.map(str::to_owned);
                        events.push((name, event.data.to_owned(), event.trailing, event.position));
                    }
                    Ok(None) => break,
                    Err(found) => {
                        error = Some(found);
                        break;
                    }
                }
            }
        }
        assert_eq!(decoder.events(), events.len() as u64);
        if error.is_some() {
            decoder.push(b"data: more\n\n");
            assert_eq!(decoder.next_event().err(), error, "after an error there is only that error");
        }
        Self { events, comments: decoder.comments(), error }
    }

    fn assert_bounded(&self, body: &[u8], limits: SseLimits) {
        let mut before = 0;
        for (_, data, _, position) in &self.events {
            assert!(data.len() <= limits.event);
            assert!(data.lines().all(|line| line.len() <= limits.line));
            let at = usize::try_from(*position).expect("a place in the body");
            let line = body[at..].strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&body[at..]);
            assert!(line.starts_with(b"data"), "an event is where its first data line is");
            assert!(at >= before, "events come in their order");
            before = at;
        }
        if let Some(SseError::InvalidUtf8 { position } | SseError::TooLarge { position, .. }) = &self.error {
            assert!(*position <= body.len() as u64);
        }
    }
}

/// The settings of a request.
struct Asked {
    tags: ThinkTags,
    content_type: &'static str,
    limits: SseLimits,
}

impl Asked {
    /// The chunks of an answer whose body comes in these pieces, and the error that ends it.
    fn answer(&self, pieces: &[&[u8]]) -> (Vec<Chunk>, Option<String>) {
        let mut profile = Profile::openai();
        profile.think_tags = self.tags;
        let model = OpenAiModel::new("some-model")
            .with_profile(profile)
            .with_retries(Backoff::none())
            .with_limits(self.limits)
            .with_transport(Canned { pieces: owned(pieces), content_type: self.content_type });
        // A turn of the same name, since ids are made of it.
        let turn = Turn::new(TurnId::new("turn").expect("a short name"));
        let mut request = ChatRequest { turn, ..ChatRequest::new(Message::user("Hello")) };
        request.round = ROUND;
        wait_for(async {
            let mut chunks = match model.stream(request).await {
                Ok(chunks) => chunks,
                Err(error) => return (Vec::new(), Some(told(&error))),
            };
            let mut all = Vec::new();
            loop {
                match chunks.next().await {
                    Some(Ok(chunk)) => all.push(chunk),
                    Some(Err(error)) => return (all, Some(told(&error))),
                    None => return (all, None),
                }
            }
        })
    }
}

/// Returns the text of the error, with the partial answer.
fn told(error: &advisor_core::Error) -> String {
    format!("{:?}: {error}; {:?}", error.kind(), error.partial())
}

fn assert_lawful(chunks: &[Chunk], error: Option<&str>) {
    let completed = chunks.iter().filter(|chunk| chunk.completed().is_some()).count();
    assert_eq!(completed, usize::from(error.is_none()), "one completion or one error");
    if let Some((Chunk::Completed(response), chunks)) = chunks.split_last() {
        Run { chunks: chunks.to_vec(), response: response.clone(), error: None }.assert_lawful();
    }
}

/// A server that gives every request the same answer.
struct Canned {
    pieces: Vec<Bytes>,
    content_type: &'static str,
}

#[async_trait]
impl Transport for Canned {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
        let body = stream::iter(self.pieces.clone().into_iter().map(Ok)).boxed();
        let mut response = http::Response::new(body);
        if !self.content_type.is_empty() {
            let value = http::HeaderValue::from_static(self.content_type);
            response.headers_mut().insert(http::header::CONTENT_TYPE, value);
        }
        Ok(response)
    }
}
