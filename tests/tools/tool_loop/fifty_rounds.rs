//! A turn of fifty rounds: as deep in round fifty as in round one, and each request extends the one before.

use advisor_tests::prelude::*;
use futures::stream;

use crate::tool_loop::support::*;

/// Asks for tools in all rounds but the last.
fn model(rounds: u32) -> ScriptedModel {
    ScriptedModel::from_fn(move |prompt| {
        let id = format!("c{}", prompt.round);
        let answer = Answer::new().text("Round.");
        if prompt.round < rounds { answer.call(&id, "look", "{}").done() } else { answer.done() }
    })
}

fn limits(rounds: u32) -> ToolLimits {
    let mut limits = ToolLimits { rounds: Some(rounds), same_calls: None, ..ToolLimits::default() };
    (limits.calls, limits.calls_per_tool) = (None, None);
    limits
}

/// Counts the live values inside the loop, and the stack depth at each poll.
#[derive(Clone, Default)]
struct Layers {
    live: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    opened: Arc<AtomicUsize>,
    /// The least and the greatest address of a local of the polls of each round.
    depths: Arc<Mutex<Vec<(usize, usize)>>>,
}

/// Counts itself as alive until it is dropped.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Layers {
    fn counting(&self) -> impl StreamAdvisor {
        let layers = self.clone();
        from_fn("counting", move |request: ChatRequest, next: AdvisorChain| {
            let layers = layers.clone();
            async move {
                let stream = next.next_stream(request).await?;
                Ok(layers.wrap(stream))
            }
        })
        .with_placement(Placement::new(Phase::Round))
    }

    fn wrap(&self, mut inner: ChunkStream) -> ChunkStream {
        let live = self.live.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(live, Ordering::Relaxed);
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.depths.lock().unwrap().push((usize::MAX, 0));
        let (alive, depths) = (Alive(Arc::clone(&self.live)), Arc::clone(&self.depths));
        ChunkStream::new(stream::poll_fn(move |cx| {
            let _alive = &alive;
            let here = 0_u8;
            let address = std::ptr::from_ref(&here).addr();
            if let Some((least, most)) = depths.lock().unwrap().last_mut() {
                (*least, *most) = ((*least).min(address), (*most).max(address));
            }
            inner.poll_next_unpin(cx)
        }))
    }
}

/// A long turn spends the budget of its task, and is then told that nothing is ready.
#[tokio::test]
async fn law_s4_spent_task_budget_loses_no_event() {
    let advisor = ToolCallAdvisor::builder().streaming(ToolCallStreaming::All).limits(limits(50));
    let model = model(50);
    let client = client(&model, advisor.build().unwrap()).tool(tool("look", "sunny")).build().unwrap();
    let lines = read(client.prompt().user("go").stream()).await.lines();
    let count = |what: &str| lines.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count(" started {}"), count(" finished: sunny")), (49, 49));
}

#[tokio::test]
async fn round_fifty_is_as_deep_as_round_one() {
    for mode in MODES {
        let layers = Layers::default();
        let advisor = ToolCallAdvisor::builder().streaming(mode).limits(limits(50)).build().unwrap();
        let model = model(50);
        let run = go(client(&model, advisor).advisor(layers.counting()).tool(tool("look", "sunny"))).await;
        assert_eq!((model.calls(), run.response().round()), (50, 50), "{mode:?}");
        assert_valid(&run.response().transcript);
        assert_eq!(layers.opened.load(Ordering::Relaxed), 50);
        assert_eq!(layers.most.load(Ordering::Relaxed), 1, "one inner stream at a time");
        assert_eq!(layers.live.load(Ordering::Relaxed), 0, "all of them are gone");
        let depths = layers.depths.lock().unwrap();
        let polled_at = depths.iter().map(|(least, _)| *least).collect::<Vec<_>>();
        assert!(polled_at.iter().all(|depth| *depth == polled_at[0]), "{mode:?}: {polled_at:?}");
        assert!(depths.iter().all(|(least, most)| least == most), "{mode:?}: {depths:?}");
    }
}

/// Thousands of rounds, and dropping their remains, do not overflow a small stack.
#[test]
fn thousands_of_rounds_need_no_stack() {
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let turn = small.spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let model = model(3000);
            let response =
                response_of(client(&model, limited(limits(3000))).tool(tool("look", "sunny"))).await;
            assert_eq!((response.round(), response.transcript.len()), (3000, 6000));
        });
    });
    turn.unwrap().join().unwrap();
}
