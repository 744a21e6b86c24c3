//! Tests of `timeouts`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{FutureExt, StreamExt, poll};
use http::{Request, Response};
use tokio::time::{Instant, advance, sleep, timeout};

use super::*;
use crate::transport::{ByteStream, Transport, TransportError};

const SECOND: Duration = Duration::from_secs(1);

type Item = Result<Bytes, TransportError>;

/// Answers after a delay with a body that the test feeds. Records whether the exchange was dropped.
struct Scripted {
    head_after: Option<Duration>,
    body: Mutex<Option<ByteStream>>,
    dropped: Arc<AtomicBool>,
}

/// Dropped with a body, or with a request that has no answer yet.
struct Held(Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Scripted {
    fn new(head_after: Option<Duration>) -> (Self, UnboundedSender<Item>) {
        let (sender, receiver) = unbounded();
        let dropped = Arc::new(AtomicBool::new(false));
        let held = Held(Arc::clone(&dropped));
        let body = receiver.map(move |item| (item, &held).0).boxed();
        (Self { head_after, body: Mutex::new(Some(body)), dropped }, sender)
    }

    fn dropped(&self) -> bool {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl Transport for Scripted {
    async fn send(&self, _: Request<Bytes>) -> Result<Response<ByteStream>, TransportError> {
        let body = self.body.lock().expect("no panic").take().expect("one request");
        match self.head_after {
            Some(delay) => sleep(delay).await,
            None => std::future::pending().await,
        }
        Ok(Response::new(body))
    }
}

fn timeouts() -> Timeouts {
    Timeouts {
        first_byte_timeout: Some(300 * SECOND),
        idle_timeout: Some(120 * SECOND),
        ..Timeouts::default()
    }
}

/// Returns a body whose head came at once.
async fn body(timeouts: Timeouts) -> (TimedBody, UnboundedSender<Item>, Scripted) {
    let (transport, sender) = Scripted::new(Some(Duration::ZERO));
    let response = send(&transport, Request::new(Bytes::new()), &timeouts).await.expect("a head");
    (response.into_body().into_answer(), sender, transport)
}

fn feed(sender: &UnboundedSender<Item>, bytes: &'static str) {
    sender.unbounded_send(Ok(Bytes::from(bytes))).expect("the body is there");
}

async fn next_bytes(body: &mut TimedBody) -> Bytes {
    body.next().await.expect("not the end").expect("no error")
}

async fn next_timeout(body: &mut TimedBody) -> TimedOut {
    match body.next().await {
        Some(Err(TransportError::TimedOut(timed_out))) => timed_out,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn missing_head_times_out() {
    let (transport, _sender) = Scripted::new(None);
    let start = Instant::now();
    let error = send(&transport, Request::new(Bytes::new()), &timeouts()).await.expect_err("no head");
    assert_eq!(start.elapsed().as_secs(), 300);
    assert_eq!(error.to_string(), "no byte of the answer within 300s");
    assert!(matches!(error, TransportError::TimedOut(TimedOut { clock: Clock::FirstByte, .. })));
    assert!(transport.dropped(), "the request is given up");
}

#[tokio::test(start_paused = true)]
async fn first_byte_timeout_spans_head_and_body() {
    let (transport, _sender) = Scripted::new(Some(200 * SECOND));
    let start = Instant::now();
    let response = send(&transport, Request::new(Bytes::new()), &timeouts()).await.expect("a head");
    assert_eq!(start.elapsed().as_secs(), 200);
    let mut body = response.into_body().into_answer();
    assert_eq!(next_timeout(&mut body).await, TimedOut::new(Clock::FirstByte, 300 * SECOND));
    assert_eq!(start.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn idle_counts_from_byte_to_byte() {
    let (mut body, sender, transport) = body(timeouts()).await;
    feed(&sender, ": hello\n");
    assert_eq!(next_bytes(&mut body).await, ": hello\n");
    // Each comes 119 s after the previous one: ten of them take far longer than any limit.
    for _ in 0..10 {
        let (bytes, ()) = futures::join!(next_bytes(&mut body), async {
            sleep(119 * SECOND).await;
            feed(&sender, ": ping\n");
        });
        assert_eq!(bytes, ": ping\n");
    }
    let start = Instant::now();
    assert!(!transport.dropped());
    assert_eq!(next_timeout(&mut body).await, TimedOut::new(Clock::Idle, 120 * SECOND));
    assert_eq!(start.elapsed().as_secs(), 120);
    assert!(transport.dropped(), "the connection is let go with the error");
    assert!(body.next().await.is_none(), "nothing follows");
}

#[tokio::test(start_paused = true)]
async fn empty_pieces_are_no_bytes() {
    let (mut body, sender, _transport) = body(timeouts()).await;
    let start = Instant::now();
    let empty_every_minute = async {
        for _ in 0..10 {
            sleep(60 * SECOND).await;
            feed(&sender, "");
        }
        panic!("ten minutes have passed");
    };
    let timed_out = async {
        loop {
            match body.next().await.expect("not the end") {
                Ok(bytes) => assert!(bytes.is_empty()),
                Err(error) => break error,
            }
        }
    };
    let error = futures::select_biased! {
        error = timed_out.fuse() => error,
        never = empty_every_minute.fuse() => never,
    };
    assert_eq!(error.to_string(), "no byte of the answer within 300s");
    assert_eq!(start.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_is_not_a_stalled_server() {
    let (mut body, sender, _transport) = body(timeouts()).await;
    for _ in 0..3 {
        // Nothing waited for the body in all that time.
        sleep(3600 * SECOND).await;
        feed(&sender, "x");
        assert_eq!(next_bytes(&mut body).await, "x");
    }
    sleep(3600 * SECOND).await;
    let start = Instant::now();
    assert_eq!(next_timeout(&mut body).await.clock, Clock::Idle);
    assert_eq!(start.elapsed().as_secs(), 120, "the clock starts when the consumer waits");
}

#[tokio::test(start_paused = true)]
async fn idle_timeout_restarts_after_absent_consumer() {
    let (mut body, sender, _transport) = body(timeouts()).await;
    feed(&sender, "x");
    assert_eq!(next_bytes(&mut body).await, "x");
    assert!(poll!(body.next()).is_pending());
    advance(3600 * SECOND).await;
    assert!(poll!(body.next()).is_pending(), "nobody waited in that hour");
    let start = Instant::now();
    assert_eq!(next_timeout(&mut body).await.clock, Clock::Idle);
    assert_eq!(start.elapsed().as_secs(), 120);
}

#[tokio::test(start_paused = true)]
async fn ready_items_precede_the_deadline() {
    let (mut body, sender, _transport) = body(timeouts()).await;
    feed(&sender, "x");
    assert_eq!(next_bytes(&mut body).await, "x");
    assert!(poll!(body.next()).is_pending());
    advance(120 * SECOND).await;
    feed(&sender, "in the last moment");
    assert_eq!(next_bytes(&mut body).await, "in the last moment");
}

#[tokio::test(start_paused = true)]
async fn switched_off_or_endless_clocks_never_run_out() {
    let century = 100 * 365 * 24 * 3600 * SECOND;
    for limit in [None, Some(century), Some(Duration::MAX)] {
        let timeouts = Timeouts { first_byte_timeout: limit, idle_timeout: limit, ..timeouts() };
        let (mut body, sender, _transport) = body(timeouts).await;
        let year = 365 * 24 * 3600 * SECOND;
        assert!(timeout(year, body.next()).await.is_err(), "{limit:?}");
        feed(&sender, "x");
        assert_eq!(next_bytes(&mut body).await, "x");
        assert!(timeout(year, body.next()).await.is_err(), "{limit:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn end_or_error_releases_body() {
    let (mut ended, sender, transport) = body(timeouts()).await;
    drop(sender);
    assert!(ended.next().await.is_none());
    assert!(transport.dropped());
    assert!(ended.next().await.is_none());

    let (mut failed, sender, transport) = body(timeouts()).await;
    let error = TransportError::Broken { source: "reset".into() };
    sender.unbounded_send(Err(error)).expect("the body is there");
    feed(&sender, "after the error");
    assert!(matches!(failed.next().await, Some(Err(TransportError::Broken { .. }))));
    assert!(transport.dropped());
    assert!(failed.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn progress_counts_events_not_bytes() {
    // Intended use of the clock: the owner stops it at events only.
    let (mut body, sender, _transport) = body(timeouts()).await;
    let mut progress = Deadline::new(Clock::Progress, Some(30 * SECOND));
    let start = Instant::now();
    let comments = async {
        loop {
            feed(&sender, ": ping\n\n");
            sleep(10 * SECOND).await;
            if start.elapsed() == 20 * SECOND {
                feed(&sender, "data: x\n\n");
            }
        }
    };
    let timed_out = std::future::poll_fn(|cx| {
        while let Poll::Ready(bytes) = body.poll_next_unpin(cx) {
            if bytes.expect("not the end").expect("no error").starts_with(b"data") {
                progress.stop();
            }
        }
        progress.poll_elapsed(cx)
    });
    let timed_out = futures::select_biased! {
        timed_out = timed_out.fuse() => timed_out,
        () = comments.fuse() => unreachable!("it loops"),
    };
    assert_eq!(timed_out, TimedOut::new(Clock::Progress, 30 * SECOND));
    assert_eq!(start.elapsed().as_secs(), 50, "the event at 20 s started the clock anew");
}

#[tokio::test(start_paused = true)]
async fn zero_timeout_expires_at_once_after_ready_work() {
    let mut deadline = Deadline::new(Clock::Progress, Some(Duration::ZERO));
    assert_eq!(deadline.limit(async { 1 }).await, Ok(1));
    let start = Instant::now();
    assert!(deadline.limit(std::future::pending::<()>()).await.is_err());
    assert!(start.elapsed() <= Duration::from_millis(2), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn task_without_coop_budget_polls_again_before_timeout() {
    use tokio::task::{coop, yield_now};

    for something_came in [false, true] {
        let mut deadline = Deadline::new(Clock::Idle, Some(SECOND));
        let start = std::future::poll_fn(|cx| Poll::Ready(deadline.poll_elapsed(cx).is_pending()));
        assert!(start.await);
        advance(SECOND).await;
        // The source may be ready, but would return pending all the same.
        let tired = std::future::poll_fn(|cx| {
            while coop::has_budget_remaining() {
                ready!(coop::poll_proceed(cx)).made_progress();
            }
            Poll::Ready(deadline.poll_elapsed(cx).is_pending())
        });
        assert!(tired.await);
        yield_now().await;
        if something_came {
            deadline.stop();
        }
        let again = std::future::poll_fn(|cx| Poll::Ready(deadline.poll_elapsed(cx).is_pending()));
        assert_eq!(again.await, something_came);
    }
}

#[test]
fn a_deadline_without_a_limit_needs_no_runtime() {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(Deadline::new(Clock::Idle, None).poll_elapsed(&mut cx).is_pending());
}
