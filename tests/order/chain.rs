//! Tests of building a chain: order, phases, checks, the plan.

use advisor_core::context_fn;
use advisor_tests::prelude::*;
use tool_call_advisor::ToolCallAdvisor;

fn named(name: &'static str, journal: &Journal) -> impl StreamAdvisor {
    placed(name, journal, Placement::default())
}

fn placed(name: &'static str, journal: &Journal, placement: Placement) -> impl StreamAdvisor {
    let journal = journal.clone();
    from_fn(name, move |request: ChatRequest, next: AdvisorChain| {
        let journal = journal.clone();
        async move {
            journal.record(format!("{name} before"));
            let stream = next.next_stream(request).await?;
            Ok(stream.on_completed(move |response| async move {
                journal.record(format!("{name} after"));
                Ok(response)
            }))
        }
    })
    .with_placement(placement)
}

fn builder(answers: usize) -> ChatClientBuilder {
    ChatClient::builder(ScriptedModel::new((0..answers).map(|_| Answer::from_text("hi"))))
}

async fn run(client: &ChatClient) {
    client.chain().next_call(ChatRequest::new(Message::user("?"))).await.unwrap();
}

#[tokio::test]
async fn law_o1_before_runs_inward_and_after_runs_outward() {
    let journal = Journal::new();
    let client = builder(1)
        .advisor_in(Phase::ModelCall, named("call", &journal))
        .advisor_in(Phase::Round, named("round", &journal))
        .advisor(named("first", &journal))
        .advisor(named("second", &journal))
        .advisor(ToolCallAdvisor::new())
        .build()
        .unwrap();
    run(&client).await;
    assert_eq!(
        journal.labels(),
        [
            "first before", "second before", "round before", "call before", "call after", "round after",
            "second after", "first after",
        ]
    );
}

#[tokio::test]
async fn law_s7_one_chain_runs_many_times_also_at_once() {
    let journal = Journal::new();
    let client = builder(40).advisor(named("a", &journal)).advisor(named("b", &journal)).build().unwrap();
    let runs = (0..40).map(|_| client.chain().next_call(ChatRequest::new(Message::user("?"))));
    for response in futures::future::join_all(runs).await {
        let response = response.unwrap();
        assert_eq!((response.round(), response.text().as_str()), (1, "hi"), "every run is like the first");
    }
    assert_eq!(journal.count("a before"), 40);
    assert_eq!(journal.count("a after"), 40);
    assert_eq!(format!("{:?}", client.chain()), r#"["a", "b"]"#, "a chain is not used up");
}

fn memory_in(phase: Phase) -> Placement {
    let mut placement = Placement { phase: Phase::Round, role: AdvisorRole::Memory };
    placement.phase = phase;
    placement
}

fn refusal(builder: ChatClientBuilder) -> String {
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    error.to_string()
}

#[test]
fn contradictions_are_refused_with_what_to_do() {
    let journal = Journal::new();
    let memory = |phase| placed("memory", &journal, memory_in(phase));
    let text_calls = TextToolCalls::new;
    let own_history =
        |enabled| ToolCallAdvisor::builder().internal_conversation_history(enabled).build().unwrap();
    let table = [
        (
            builder(0).advisor(ToolCallAdvisor::new()).advisor(ToolCallAdvisor::new()),
            "both run tools; keep one",
        ),
        (
            builder(0).advisor(memory(Phase::Turn)).advisor(memory(Phase::Round)),
            "both remember the conversation; keep one",
        ),
        (builder(0).advisor(memory(Phase::Round)).advisor(own_history(true)), "leave the history unset"),
        (builder(0).advisor(own_history(false)), "leave the history unset"),
        (
            builder(0).advisor(memory(Phase::Turn)).advisor(own_history(false)),
            "add a memory in the round phase",
        ),
        (builder(0).advisor(memory(Phase::ModelCall)), "belongs in the turn or the round phase"),
        (builder(0).advisor_in(Phase::Turn, ToolCallAdvisor::new()), "belongs in the loop phase"),
        (builder(0).advisor_in(Phase::Round, text_calls(TextFormat::Xml)), "belongs in the model-call phase"),
        (builder(0).advisor_in(Phase::Loop, named("x", &journal)), "belongs in the turn or the round phase"),
        (
            builder(0).advisor_in(
                Phase::Round,
                placed("x", &journal, Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel }),
            ),
            "belongs in the model-call phase",
        ),
    ];
    for (builder, expected) in table {
        let text = refusal(builder);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn advisors_beside_the_model_are_inside_all_others() {
    let journal = Journal::new();
    let client = builder(0)
        .advisor(placed(
            "first",
            &journal,
            Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel },
        ))
        .advisor(placed(
            "second",
            &journal,
            Placement { phase: Phase::ModelCall, role: AdvisorRole::BesideModel },
        ))
        .advisor(placed("retry", &journal, Placement::new(Phase::ModelCall)))
        .advisor(named("guard", &journal))
        .build()
        .unwrap();
    assert_eq!(format!("{:?}", client.chain()), r#"["guard", "retry", "first", "second"]"#);
}

#[test]
fn fallback_yields_to_advisor_of_same_role() {
    let builder = || ChatClient::builder(ScriptedModel::new([])).fallback_advisor(ToolCallAdvisor::new());
    let loops = |client: ChatClient| format!("{:?}", client.chain());
    assert_eq!(loops(builder().build().unwrap()), r#"["tool-call"]"#);
    assert_eq!(loops(builder().advisor(ToolCallAdvisor::new()).build().unwrap()), r#"["tool-call"]"#);
}

#[test]
fn plan_shows_order_roles_rounds_and_remembered_content() {
    let journal = Journal::new();
    let memory = placed("memory", &journal, Placement { phase: Phase::Round, role: AdvisorRole::Memory });
    let client = builder(0)
        .advisor(memory)
        .advisor(ToolCallAdvisor::new())
        .advisor(TextToolCalls::new(TextFormat::Xml))
        .advisor_in(Phase::ModelCall, named("cache", &journal))
        .advisor(named("guard", &journal))
        .build()
        .unwrap();
    let plan = client.explain();
    assert_eq!(
        plan.to_string(),
        "\
turn        guard                     once per turn    outside memory\n\
loop        tool-call                 once per turn    outside memory  runs tools; memory inside it sends the messages\n\
round       memory                    every round                      remembers the conversation\n\
model call  cache                     each model call  inside memory\n\
model call  text-tool-calls           each model call  inside memory\n           \
\u{20}the model\n\
An approved call runs before the first round, with the tool that the first request has beside the model.\n\
Each round is stored as it completes, before a tool of it runs.\n\
Outside memory: guard. Messages that they add are stored, unless they are ephemeral or instructions; their changes to an answer are not stored.\n\
An answer that one of these gives by itself is made outside memory and not stored: guard.\n"
    );
}

#[test]
fn advisor_on_wrong_side_of_memory_is_refused() {
    let journal = Journal::new();
    let edits = |phase| placed("redact", &journal, Placement { phase, role: AdvisorRole::InsideMemory });
    let hides = |phase| placed("hide", &journal, Placement { phase, role: AdvisorRole::OutsideMemory });
    let memory = |phase| placed("memory", &journal, memory_in(phase));
    let refused = |builder: ChatClientBuilder| {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        error.to_string()
    };
    for phase in PLACES {
        let error = refused(builder(0).advisor(edits(phase)).advisor(memory(phase)));
        assert!(error.starts_with("`redact` must be inside memory"), "{error}");
        let own = if phase == Phase::Round {
            "round phase and add it after the memory"
        } else {
            "model-call phase"
        };
        assert!(error.ends_with(&format!("; place it in the {own}")), "{error}");
        builder(0).advisor(memory(phase)).advisor(edits(phase)).build().unwrap();
        builder(0).advisor(edits(Phase::ModelCall)).advisor(memory(phase)).build().unwrap();
        let error = refused(builder(0).advisor(memory(phase)).advisor(hides(phase)));
        assert!(error.starts_with("`hide` must be outside memory"), "{error}");
        builder(0).advisor(hides(Phase::Turn)).advisor(memory(phase)).build().unwrap();
    }
    // The loop reports each answer to memory before advisors outside the loop receive it.
    let looped =
        |phase| builder(0).advisor(memory(Phase::Turn)).advisor(edits(phase)).advisor(ToolCallAdvisor::new());
    let error = refused(looped(Phase::Turn));
    assert!(error.starts_with("`redact` must be inside the tool loop"), "{error}");
    looped(Phase::Round).build().unwrap();
    builder(0).advisor(edits(Phase::Turn)).advisor(hides(Phase::ModelCall)).build().unwrap();
    let moved = builder(0).advisor(memory(Phase::Round)).advisor_in(Phase::Turn, edits(Phase::ModelCall));
    assert!(refused(moved).contains("`redact`"), "another phase is no way around it");
}

#[test]
fn the_plan_tells_who_adds_messages_outside_memory() {
    let journal = Journal::new();
    let documents = context_fn("documents", |_: ChatRequest| async { Ok("none") });
    let client = builder(0)
        .advisor_in(Phase::Round, named("steer", &journal))
        .advisor(placed("memory", &journal, Placement { phase: Phase::Round, role: AdvisorRole::Memory }))
        .advisor(ToolCallAdvisor::new())
        .advisor(documents)
        .build()
        .unwrap();
    let told = client.explain().to_string();
    assert!(told.contains("Outside memory: documents, steer (in every round). Messages"), "{told}");

    let client = builder(0)
        .advisor(placed("memory", &journal, memory_in(Phase::Turn)))
        .advisor(named("edits", &journal))
        .advisor(ToolCallAdvisor::new());
    let told = client.build().unwrap().explain().to_string();
    assert!(told.contains("reports each answer to memory: edits. Their changes"), "{told}");
}
