//! The tool that an approved call runs: the one that the chain makes of it, in every process.

use advisor_chain::Advisor;
use advisor_chain::tools::{CallDecision, PolicyAction, ReadyCall, Tool, ToolPolicy, ToolRule};
use advisor_tests::prelude::*;

use crate::approval::process::{definition, done, line, one_payment};

/// A policy that asks before it pays.
fn ask_to_pay() -> ToolPolicy {
    ToolPolicy { rules: vec![ToolRule::new(["pay"], PolicyAction::Ask)], ..ToolPolicy::default() }
}

/// What ran, in order.
type Ran = Arc<Mutex<Vec<&'static str>>>;

/// What an advisor puts in the place of a tool.
#[derive(Debug, Clone, Copy)]
enum Stand {
    /// Answers in its place.
    Emulator,
    /// Runs it with other arguments.
    Sandbox,
}

/// A tool in the place of another one, with its definition.
struct InPlace {
    stand: Stand,
    tool: Arc<dyn Tool>,
    ran: Ran,
}

#[async_trait]
impl Tool for InPlace {
    fn definition(&self) -> &ToolDefinition {
        self.tool.definition()
    }

    async fn run(&self, mut call: ToolInvocation) -> std::result::Result<ToolOutput, ToolError> {
        match self.stand {
            Stand::Emulator => {
                self.ran.lock().unwrap().push("emulated");
                return Ok("emulated".into());
            }
            Stand::Sandbox => {
                self.ran.lock().unwrap().push("in the sandbox");
                call.arguments["cents"] = 0.into();
            }
        }
        self.tool.run(call).await
    }
}

fn replaced(request: ChatRequest, stand: Stand, ran: &Ran) -> ChatRequest {
    let mut tools = request.tools.clone();
    if let Some(tool) = request.tools.find("pay") {
        tools.insert(Arc::new(InPlace { stand, tool: Arc::clone(tool), ran: Arc::clone(ran) }));
    }
    ChatRequest { tools, ..request }
}

/// Replaces the tool in the loop itself.
struct InHook {
    stand: Stand,
    ran: Ran,
    at_start: bool,
}

#[async_trait]
impl LoopHooks for InHook {
    async fn loop_start(&self, request: ChatRequest) -> Result<ChatRequest> {
        Ok(if self.at_start { replaced(request, self.stand, &self.ran) } else { request })
    }

    async fn before_round(&self, request: ChatRequest, round: u32) -> Result<ChatRequest> {
        Ok(if self.at_start || round > 1 { request } else { replaced(request, self.stand, &self.ran) })
    }

    async fn before_tool(&self, _call: &ReadyCall, _request: &ChatRequest) -> Result<CallDecision> {
        Ok(CallDecision::Run)
    }
}

/// The places of a chain in which the tool can be replaced.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In this phase, before or after memory is added to it.
    Advisor {
        phase: Phase,
        after_memory: bool,
    },
    BesideModel,
    LoopStart,
    BeforeRound,
}

const PLACES_OF_TOOLS: [Place; 9] = [
    Place::Advisor { phase: Phase::Turn, after_memory: false },
    Place::Advisor { phase: Phase::Turn, after_memory: true },
    Place::Advisor { phase: Phase::Round, after_memory: false },
    Place::Advisor { phase: Phase::Round, after_memory: true },
    Place::Advisor { phase: Phase::ModelCall, after_memory: false },
    Place::Advisor { phase: Phase::ModelCall, after_memory: true },
    Place::BesideModel,
    Place::LoopStart,
    Place::BeforeRound,
];

/// Creates a process over the store in which a stand takes the place of the tool that pays, and a policy asks before.
fn process(
    store: &Arc<dyn ConversationStore>,
    (memory, place, stand): (Phase, Place, Stand),
    answers: Vec<Answer>,
) -> (ChatClient, ScriptedModel, Ran) {
    let (model, ran) = (ScriptedModel::new(answers), Ran::default());
    let paid = Arc::clone(&ran);
    let pay = FnTool::new(definition("pay"), move |arguments: Value| {
        let paid = Arc::clone(&paid);
        async move {
            paid.lock().unwrap().push(if arguments["cents"] == 0 { "paid nothing" } else { "paid" });
            Ok("paid")
        }
    });
    let of = Arc::clone(&ran);
    let advisor = from_fn("in-place", move |request: ChatRequest, next: AdvisorChain| {
        let request = replaced(request, stand, &of);
        async move { next.next_stream(request).await }
    });
    let mut tool_loop = ToolCallAdvisor::builder().policy(ask_to_pay());
    let mut builder = ChatClient::builder(model.clone()).tool(pay);
    let hook = |at_start| InHook { stand, ran: Arc::clone(&ran), at_start };
    let memory_advisor = ChatMemoryAdvisor::new(Arc::clone(store));
    builder = match place {
        Place::Advisor { phase, after_memory: true } => {
            let placed = advisor.with_placement(Placement::new(phase));
            builder.advisor_in(memory, memory_advisor).advisor(placed)
        }
        Place::Advisor { phase, after_memory: false } => {
            let placed = advisor.with_placement(Placement::new(phase));
            builder.advisor(placed).advisor_in(memory, memory_advisor)
        }
        Place::BesideModel => builder
            .advisor(
                advisor.with_placement(Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel }),
            )
            .advisor_in(memory, memory_advisor),
        Place::LoopStart | Place::BeforeRound => {
            tool_loop = tool_loop.hooks(hook(matches!(place, Place::LoopStart)));
            builder.advisor_in(memory, memory_advisor)
        }
    };
    let client = builder.advisor(tool_loop.build().unwrap()).build().unwrap();
    (client, model, ran)
}

/// An approved call runs the tool that an unasked one would run, wherever an advisor or a hook has put it in the chain.
#[tokio::test]
async fn law_t7_approved_call_runs_the_tool_of_the_chain() {
    for memory in PLACES {
        for place in PLACES_OF_TOOLS {
            for (stand, expected) in
                [(Stand::Emulator, &["emulated"][..]), (Stand::Sandbox, &["in the sandbox", "paid nothing"])]
            {
                let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
                let setting = (memory, place, stand);
                let (client, _, ran) = process(&store, setting, one_payment());
                client.prompt().user("Pay.").conversation("c").call().await.unwrap();
                assert!(ran.lock().unwrap().is_empty());
                let (client, model, ran) = process(&store, setting, done());
                let approved = client.pending_calls("c").await.unwrap()[0].approve().unwrap();
                let answer = client.prompt().conversation("c").resume([approved]).call().await.unwrap();
                assert_eq!(answer.text(), "Done.");
                assert_eq!(*ran.lock().unwrap(), expected, "memory in {memory:?}: {setting:?}");
                assert_eq!(model.prompts().len(), 1, "the model is asked once");
            }
        }
    }
}

/// Counts the requests that reach it, and the answers that it sees complete.
#[derive(Default, Clone)]
struct Counter(Arc<Mutex<(usize, usize)>>);

impl AdvisorInfo for Counter {
    fn placement(&self) -> Placement {
        Placement::new(Phase::ModelCall)
    }
}

#[async_trait]
impl Advisor for Counter {
    type State = ();

    async fn before(&self, request: ChatRequest) -> Result<(ChatRequest, ())> {
        if !request.turn.resolves_tools() {
            self.0.lock().unwrap().0 += 1;
        }
        Ok((request, ()))
    }

    async fn after(&self, _state: (), _response: &ChatResponse) -> Result<()> {
        self.0.lock().unwrap().1 += 1;
        Ok(())
    }
}

/// The pass that finds the tools is no round: no advisor sees an answer of it, and one that counts can tell it apart.
#[tokio::test]
async fn law_t7_finding_the_tools_is_no_round() {
    for memory in PLACES {
        let (counter, model) =
            (Counter::default(), ScriptedModel::new(one_payment().into_iter().chain(done())));
        let client = ChatClient::builder(model.clone())
            .advisor_in(memory, ChatMemoryAdvisor::new(InMemoryStore::new()))
            .advisor(ToolCallAdvisor::builder().policy(ask_to_pay()).build().unwrap())
            .advisor(counter.clone())
            .tool(FnTool::new(definition("pay"), |_: Value| async { Ok("paid") }))
            .build()
            .unwrap();
        client.prompt().user("Pay.").conversation("c").call().await.unwrap();
        let approved = client.pending_calls("c").await.unwrap()[0].approve().unwrap();
        let answer = client.prompt().conversation("c").resume([approved]).call().await.unwrap();
        assert_eq!((*counter.0.lock().unwrap(), answer.round()), ((2, 2), 1), "{memory:?}");
    }
}

/// An advisor inside memory may add the tool that a call waits for.
#[tokio::test]
async fn law_t7_tool_may_come_from_inside_memory() {
    let (model, ran) = (ScriptedModel::new(one_payment().into_iter().chain(done())), Ran::default());
    let paid = Arc::clone(&ran);
    let pay = FnTool::new(definition("pay"), move |_: Value| {
        paid.lock().unwrap().push("paid");
        async { Ok("paid") }
    });
    let tools = ToolSet::new().with(pay);
    let added = from_fn("adds", move |request: ChatRequest, next: AdvisorChain| {
        let request = ChatRequest { tools: tools.clone(), ..request };
        async move { next.next_stream(request).await }
    });
    let client = ChatClient::builder(model)
        .advisor(ChatMemoryAdvisor::new(InMemoryStore::new()))
        .advisor(ToolCallAdvisor::builder().policy(ask_to_pay()).build().unwrap())
        .advisor(added.with_placement(Placement::new(Phase::ModelCall)))
        .build()
        .unwrap();
    client.prompt().user("Pay.").conversation("c").call().await.unwrap();
    let approved = client.pending_calls("c").await.unwrap()[0].approve().unwrap();
    client.prompt().conversation("c").resume([approved]).call().await.unwrap();
    assert_eq!(*ran.lock().unwrap(), ["paid"]);
}

/// If the definition of the tool has changed since the question, the approved call does not run. The model is told, and can
/// call the new tool, which asks again.
#[tokio::test]
async fn law_t7_approval_is_for_one_definition() {
    for memory in PLACES {
        for changed in [false, true] {
            let store: Arc<dyn ConversationStore> = Arc::new(InMemoryStore::new());
            let client = |text: &str, answers: Vec<Answer>| {
                let (model, ran) = (ScriptedModel::new(answers), Ran::default());
                let paid = Arc::clone(&ran);
                let pay = FnTool::new(
                    ToolDefinition::new("pay", text, definition("pay").parameters),
                    move |_: Value| {
                        paid.lock().unwrap().push("paid");
                        async { Ok("paid") }
                    },
                );
                let client = ChatClient::builder(model.clone())
                    .advisor_in(memory, ChatMemoryAdvisor::new(Arc::clone(&store)))
                    .advisor(ToolCallAdvisor::builder().policy(ask_to_pay()).build().unwrap())
                    .tool(pay)
                    .build()
                    .unwrap();
                (client, model, ran)
            };
            let (asking, ..) = client("Pays.", one_payment());
            asking.prompt().user("Pay.").conversation("c").call().await.unwrap();
            let again = Answer::from_calls([("c2", "pay", r#"{"cents":1}"#)]);
            let text = if changed { "Pays twice." } else { "Pays." };
            let (other, model, ran) = client(text, vec![again]);
            let shown = other.pending_calls("c").await.unwrap().remove(0);
            assert!(shown.definition.is_some());
            other.prompt().conversation("c").resume([shown.approve().unwrap()]).call().await.unwrap();
            let told = line(model.prompts()[0].messages.last().unwrap());
            assert_eq!(told.contains("the definition of the tool has changed"), changed, "{told}");
            assert_eq!(ran.lock().unwrap().len(), usize::from(!changed), "{memory:?}");
            // The new call is another question.
            let asked = other.pending_calls("c").await.unwrap().remove(0);
            assert_ne!(asked.key, shown.key);
            assert_eq!(asked.definition != shown.definition, changed);
        }
    }
}
