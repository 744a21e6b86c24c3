//! Embeddings from a server: forms, batches, retries, timeouts and failures.

use std::future::pending;
use std::time::Duration;

use advisor_core::{Embedding, EmbeddingModel, Error, ErrorKind, Result, Text, async_trait};
use advisor_testkit::{Gate, ReplayServer, Reply};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use provider_openai::backoff::Backoff;
use provider_openai::sse::SseLimits;
use provider_openai::transport::{ByteStream, Transport, TransportError};
use provider_openai::{OpenAiEmbeddings, Profile, ProviderError};
use serde_json::{Value, json};

fn model(server: &ReplayServer) -> OpenAiEmbeddings {
    OpenAiEmbeddings::new("m").with_base_url(format!("{}/v1", server.url())).with_retries(Backoff::none())
}

fn texts(texts: &[&str]) -> Vec<Text> {
    texts.iter().copied().map(Text::from).collect()
}

/// An answer with these embeddings, in their order.
fn answer(embeddings: &[[f32; 2]]) -> Value {
    let item = |(index, numbers): (usize, &[f32; 2])| json!({"object": "embedding", "index": index, "embedding": numbers});
    let data: Vec<_> = embeddings.iter().enumerate().map(item).collect();
    json!({"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 2, "total_tokens": 2}})
}

fn numbers(embeddings: &[Embedding]) -> Vec<Vec<f32>> {
    embeddings.iter().map(|embedding| embedding.to_vec()).collect()
}

/// The error of one text that is answered so.
async fn failure(reply: Reply) -> Error {
    let server = ReplayServer::start([reply]).await.unwrap();
    model(&server).embed(&texts(&["a"])).await.unwrap_err()
}

#[tokio::test]
async fn embeddings_have_the_order_of_the_texts() {
    let mixed = json!({"data": [
        {"index": 2, "embedding": [3.0, 0.5]},
        {"index": 0, "embedding": [1, 0]},
        {"index": 1, "embedding": [2e-1, 0.0]},
    ]});
    let unnumbered = json!({"data": [{"embedding": [1.0]}, {"embedding": [2.0]}]});
    let server = ReplayServer::start([Reply::json(200, mixed), Reply::json(200, unnumbered)]).await.unwrap();
    let model = model(&server).with_api_key("sk-example").with_dimensions(2);
    let found = model.embed(&texts(&["a", "b", "c"])).await.unwrap();
    assert_eq!(numbers(&found), [[1.0, 0.0], [0.2, 0.0], [3.0, 0.5]]);
    assert_eq!(numbers(&model.embed(&texts(&["a", "b"])).await.unwrap()), [[1.0], [2.0]]);
    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/embeddings");
    assert_eq!(request.headers["authorization"], "Bearer sk-example");
    assert_eq!(request.json().unwrap(), json!({"model": "m", "input": ["a", "b", "c"], "dimensions": 2}));
    assert_eq!(server.requests()[1].connection, 0, "the connection is reused");
}

#[tokio::test]
async fn long_lists_are_sent_in_batches() {
    let ones = |count: usize| Reply::json(200, answer(&vec![[1.0, 0.0]; count]));
    let server = ReplayServer::start([ones(64), ones(1)]).await.unwrap();
    let model = model(&server);
    assert_eq!(model.embed(&texts(&["a"; 65])).await.unwrap().len(), 65);
    let requests = server.requests();
    let sent = requests.iter().map(|request| request.json().unwrap()["input"].as_array().unwrap().len());
    assert_eq!(sent.collect::<Vec<_>>(), [64, 1]);
    assert_eq!(model.embed(&[]).await.unwrap(), []);
    assert_eq!(server.requests().len(), 2, "no text needs no request");
}

#[tokio::test]
async fn azure_has_the_model_in_its_path() {
    let server = ReplayServer::start([Reply::json(200, answer(&[[1.0, 0.0]]))]).await.unwrap();
    let model = OpenAiEmbeddings::new("my model")
        .with_profile(Profile::azure_deployment("2024-10-21"))
        .with_base_url(server.url())
        .with_api_key("k");
    model.embed(&texts(&["a"])).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.path, "/openai/deployments/my%20model/embeddings?api-version=2024-10-21");
    assert_eq!(request.headers["api-key"], "k");
}

#[tokio::test]
async fn transient_failures_are_retried() {
    let replies = [Reply::status(503), Reply::hang_up(), Reply::json(200, answer(&[[1.0, 0.0]]))];
    let server = ReplayServer::start(replies).await.unwrap();
    let quick =
        Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(1), ..Backoff::default() };
    let model = model(&server).with_retries(Backoff { retries: 2, ..quick });
    assert_eq!(model.embed(&texts(&["a"])).await.unwrap().len(), 1);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn failures_of_the_server_are_typed() {
    let reported = |message: &str| json!({"error": {"message": message, "type": "invalid_request_error"}});
    let cases = [
        (Reply::json(401, reported("Incorrect API key")), ErrorKind::Authentication),
        (Reply::json(400, reported("the maximum context length is 8192 tokens")), ErrorKind::ContextOverflow),
        (Reply::json(400, reported("'$.input' is invalid")), ErrorKind::InvalidRequest),
        (Reply::json(404, reported("The model `m` does not exist")), ErrorKind::NotFound),
        (
            Reply::json(429, reported("slow down")).with_header("retry-after", "7"),
            ErrorKind::RateLimited { retry_after: Some(Duration::from_secs(7)) },
        ),
        (
            Reply::json(200, json!({"error": {"message": "overloaded", "code": 503}})),
            ErrorKind::Provider { status: Some(503) },
        ),
        (Reply::html(200, "<html></html>"), ErrorKind::Protocol { position: None }),
    ];
    for (reply, kind) in cases {
        let error = failure(reply).await;
        assert_eq!(error.kind(), kind, "{error:?}");
    }
    let error = failure(Reply::json(400, reported("'$.input' is invalid"))).await;
    let source = std::error::Error::source(&error).unwrap().downcast_ref::<ProviderError>().unwrap();
    assert_eq!((source.status, source.message.as_str()), (Some(400), "'$.input' is invalid"));
}

#[tokio::test]
async fn answers_that_are_no_embeddings_are_protocol_errors() {
    let one = |embedding: Value| json!({"data": [{"index": 0, "embedding": embedding}]});
    let bodies = [
        (json!({"data": []}), "0 embeddings for 1 texts"),
        (json!({"data": [{"index": 1, "embedding": [1.0]}]}), "not sent"),
        (json!({"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}), "twice"),
        (one(json!([])), "no numbers"),
        (one(json!([0.0, 0.0])), "zero"),
        (one(json!([1.0, 1e300])), "malformed JSON"),
        (one(json!([1.0, null])), "no answer of its API"),
        (one(json!("AAAA")), "no answer of its API"),
        (json!({"choices": []}), "no answer of its API"),
    ];
    for (body, message) in bodies {
        let error = failure(Reply::json(200, body.clone())).await;
        assert!(matches!(error.kind(), ErrorKind::Protocol { .. }), "{body}: {error:?}");
        assert!(error.to_string().contains(message), "{body}: {error}");
    }
    let cut = Reply::json(200, answer(&[[1.0, 0.0]])).cut_after(20);
    assert!(matches!(failure(cut).await.kind(), ErrorKind::Connection | ErrorKind::Protocol { .. }));
}

#[tokio::test]
async fn law_r1_longest_answer_is_bounded() {
    let server = ReplayServer::start([Reply::json(200, answer(&[[1.0, 0.0]]))]).await.unwrap();
    let limits = SseLimits { event: 50, ..SseLimits::default() };
    let error = model(&server).with_limits(limits).embed(&texts(&["a"])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn law_r3_errors_show_no_key() {
    let body = json!({"error": {"message": "the key sk-canary-0123456789 is wrong"}});
    let server = ReplayServer::start([Reply::json(401, body)]).await.unwrap();
    let model = model(&server).with_api_key("sk-canary-0123456789");
    let error = model.embed(&texts(&["a"])).await.unwrap_err();
    let shown = format!("{model:?} {error} {error:?} {:?}", std::error::Error::source(&error));
    assert!(!shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn law_k2_dropped_call_closes_the_connection() {
    let gate = Gate::new();
    let server =
        ReplayServer::start([Reply::json(200, answer(&[[1.0, 0.0]])).gate_head(gate.clone())]).await.unwrap();
    let model = model(&server);
    let asked = texts(&["a"]);
    let mut call = Box::pin(model.embed(&asked));
    tokio::select! {
        _ = &mut call => panic!("the server waits"),
        () = gate.reached() => {}
    }
    drop(call);
    gate.release();
    assert_eq!(server.requests().len(), 1);
}

/// A server that sends the head and a byte, and nothing more.
struct Silent;

#[async_trait]
impl Transport for Silent {
    async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
        let body = stream::iter([Ok(Bytes::from("{"))])
            .chain(pending::<()>().into_stream().map(|()| Ok(Bytes::new())));
        Ok(http::Response::new(body.boxed()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_times_out() {
    let model = OpenAiEmbeddings::new("m").with_transport(Silent).with_retries(Backoff::none());
    let error = model.embed(&texts(&["a"])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[test]
fn settings_can_be_checked() {
    assert_eq!(OpenAiEmbeddings::new("m").model_name(), Some("m"));
    assert!(OpenAiEmbeddings::new("m").with_base_url("not a url").validate().is_err());
}
