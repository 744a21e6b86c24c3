//! Work that goes beside a turn: polled with it, dropped with it, able to end it.

use std::future::pending;
use std::task::Poll;

use advisor_tests::prelude::*;
use futures::poll;

struct Recorder(Journal);

#[async_trait]
impl TurnRecorder for Recorder {
    async fn record(&self, record: &Record) -> Result<()> {
        if let Step::End(end) = &record.step {
            self.0.record(match end {
                TurnEnd::Interrupted { partial } => format!("interrupted after {partial}"),
                TurnEnd::Failed { partial } => format!("failed after {partial}"),
                _ => "ended".into(),
            });
        }
        Ok(())
    }
}

struct Dropped(&'static str, Journal);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.1.record(format!("{} dropped", self.0));
    }
}

/// A turn that has shown "Hello" and waits at the gate. An advisor attached its side task while the turn was
/// opened. The side task ends with an error of this kind when its gate opens.
fn turn(kind: ErrorKind) -> (TurnStream, Gate, Gate, Journal) {
    let (waiting, companion, journal) = (Gate::new(), Gate::new(), Journal::new());
    let answer = Answer::new().text("Hello").gate(&waiting).text(" there").finish(FinishReason::Stop);
    let (let_go, told) = (companion.clone(), journal.clone());
    let chain = ChatClient::builder(ScriptedModel::new([answer]))
        .advisor(from_fn("accompanied", move |request: ChatRequest, next: AdvisorChain| {
            let (let_go, dropped) = (let_go.clone(), Dropped("companion", told.clone()));
            request.turn.add_recorder(Arc::new(Recorder(told.clone())));
            request.turn.attach(async move {
                let _dropped = dropped;
                let_go.pass().await;
                Error::new(kind, "the companion has ended")
            });
            async move { next.next_stream(request).await }
        }))
        .build()
        .unwrap()
        .chain()
        .clone();
    (chain.stream(ChatRequest::new(Message::user("?"))), waiting, companion, journal)
}

async fn read_until_it_waits(turn: &mut TurnStream) {
    while let Poll::Ready(item) = poll!(turn.next()) {
        item.unwrap().unwrap();
    }
}

#[tokio::test]
async fn side_task_is_polled_first_can_end_turn() {
    for (kind, end) in
        [(ErrorKind::Cancelled, "interrupted after Hello"), (ErrorKind::Fenced, "failed after Hello")]
    {
        let (mut turn, waiting, companion, journal) = turn(kind);
        read_until_it_waits(&mut turn).await;
        assert!(waiting.is_reached() && companion.is_reached(), "both wait");
        companion.release();
        let error = turn.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.emitted());
        assert!(turn.next().await.is_none());
        assert_eq!(journal.labels(), ["companion dropped", end]);
    }
}

#[tokio::test]
async fn law_r2_what_goes_beside_a_turn_ends_with_it() {
    let (mut turn, waiting, _companion, journal) = turn(ErrorKind::Cancelled);
    read_until_it_waits(&mut turn).await;
    waiting.release();
    while let Some(item) = turn.next().await {
        item.unwrap();
    }
    assert_eq!(journal.labels(), ["companion dropped", "ended"]);

    let (mut turn, _waiting, _companion, journal) = self::turn(ErrorKind::Cancelled);
    read_until_it_waits(&mut turn).await;
    drop(turn);
    assert_eq!(journal.labels(), ["companion dropped"]);
}

/// A lease is renewed until nothing of the turn can write any more.
#[tokio::test]
async fn law_r2_side_tasks_end_after_work_of_their_turn() {
    let answers: [fn() -> Answer; 3] = [
        || Answer::from_text("Hello"),
        || Answer::new().text("Hello").error(Error::new(ErrorKind::Connection, "reset")),
        || Answer::new().text("Hello").hang(),
    ];
    for answer in answers {
        let journal = Journal::new();
        let told = journal.clone();
        let chain = ChatClient::builder(ScriptedModel::new([answer()]))
            .advisor(from_fn("accompanied", move |request: ChatRequest, next: AdvisorChain| {
                let (beside, work) = (Dropped("companion", told.clone()), Dropped("work", told.clone()));
                request.turn.attach(async move {
                    let _dropped = beside;
                    pending().await
                });
                async move {
                    let stream = next.next_stream(request).await?;
                    Ok(stream.inspect_chunks(move |_| {
                        let _work = &work;
                    }))
                }
            }))
            .build()
            .unwrap()
            .chain()
            .clone();
        let mut turn = chain.stream(ChatRequest::new(Message::user("?")));
        while let Poll::Ready(Some(_)) = poll!(turn.next()) {}
        drop(turn);
        assert_eq!(journal.labels(), ["work dropped", "companion dropped"]);
    }
}

#[tokio::test]
async fn side_tasks_can_attach_further_side_tasks() {
    let journal = Journal::new();
    let told = journal.clone();
    let gate = Gate::new();
    let answer = Answer::new().gate(&gate).text("Hi").finish(FinishReason::Stop);
    let chain = ChatClient::builder(ScriptedModel::new([answer]))
        .advisor(from_fn("accompanied", move |request: ChatRequest, next: AdvisorChain| {
            let (turn, told) = (Arc::downgrade(&request.turn), told.clone());
            request.turn.attach(async move {
                told.record("first");
                if let Some(turn) = turn.upgrade() {
                    turn.attach(async move {
                        told.record("second");
                        pending().await
                    });
                }
                pending().await
            });
            async move { next.next_stream(request).await }
        }))
        .build()
        .unwrap()
        .chain()
        .clone();
    let mut turn = chain.stream(ChatRequest::new(Message::user("?")));
    read_until_it_waits(&mut turn).await;
    assert_eq!(journal.labels(), ["first", "second"]);
    gate.release();
    assert_eq!(turn.call().await.unwrap().text(), "Hi");
}

/// The stream waits for the model, and only the attached task can wake it.
#[tokio::test]
async fn side_task_attached_elsewhere_wakes_waiting_stream() {
    let chain = ChatClient::builder(ScriptedModel::new([Answer::new().text("Hello").hang()]))
        .build()
        .unwrap()
        .chain()
        .clone();
    let mut stream = chain.stream(ChatRequest::new(Message::user("?")));
    let turn = Arc::clone(stream.turn());
    read_until_it_waits(&mut stream).await;
    let reading = tokio::spawn(async move { stream.next().await.unwrap().unwrap_err().kind() });
    tokio::task::yield_now().await;
    turn.attach(async { Error::new(ErrorKind::Cancelled, "another turn takes its place") });
    assert_eq!(reading.await.unwrap(), ErrorKind::Cancelled);
}
