//! `SystemTemplate` and `ReReading`: the model receives the rendered text, and memory stores the user's.

use advisor_chain::advisors::{PromptTemplate, ReReading, SystemTemplate, TemplateValues};
use advisor_tests::prelude::*;

use crate::common_advisors::support::{Setting, looks, says};

/// Each request has the rendered text once, and memory has it never.
#[tokio::test]
async fn law_m2_rendered_system_text_is_never_stored() {
    for remembers in PLACES {
        let model = ScriptedModel::new([looks(10), says("Done.", 10), says("Yes.", 10)]);
        let setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let template: PromptTemplate = "You help {user} ({place}).".parse().unwrap();
        let client = setting
            .client
            .clone()
            .advisor(SystemTemplate::new(template).with("place", "Oslo"))
            .build()
            .unwrap();
        for (user, text) in [("Ann", "go"), ("Bo", "And?")] {
            let values = TemplateValues::default().with("user", user);
            let prompt = client.prompt().system("Be brief.").user(text).conversation("c");
            prompt.extension(values).call().await.unwrap();
        }
        let sent = model.prompts().into_iter().map(|prompt| prompt.messages.iter().next().unwrap().text());
        let expected = ["Ann", "Ann", "Bo"].map(|user| format!("Be brief.\n\nYou help {user} (Oslo)."));
        assert_eq!(sent.collect::<Vec<_>>(), expected, "{remembers}");
        assert_eq!(setting.remembered().await, ["go", "Well. (look)", "= a result", "Done.", "And?", "Yes."]);
        let missing = client.prompt().user("go").conversation("d").call().await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::Configuration);
        assert!(missing.to_string().contains("`{user}`"), "{missing}");
    }
}

/// The model reads the question twice. Memory and the caller have it once.
#[tokio::test]
async fn law_m2_question_is_stored_once() {
    for remembers in PLACES {
        let model = ScriptedModel::new([looks(10), says("Done.", 10), says("Yes.", 10)]);
        let setting = Setting::new(&model, remembers, OnLimit::EndTurn);
        let client = setting.client.clone().advisor(ReReading).build().unwrap();
        for text in ["go", "And?"] {
            client.prompt().user(text).conversation("c").call().await.unwrap();
        }
        let sent: Vec<_> = model.prompts().pop().unwrap().messages.iter().map(Message::text).collect();
        assert_eq!(sent[0], "go\nRead the question again: go", "{remembers}");
        assert_eq!(sent[4], "And?\nRead the question again: And?", "{remembers}");
        assert_eq!(setting.remembered().await, ["go", "Well. (look)", "= a result", "Done.", "And?", "Yes."]);
    }
}
