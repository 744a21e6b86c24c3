//! An advisor that sends documents with the question.

use advisor_chain::chain::context_fn;
use advisor_chain::{ChatRequest, StreamAdvisor};

/// Sends the documents that share a word with the question. They are looked for once per turn and never remembered.
pub fn retrieval(documents: &'static [&'static str]) -> impl StreamAdvisor {
    context_fn("retrieval", move |request: ChatRequest| async move {
        let question = request.last_user().map(|message| message.text().to_lowercase()).unwrap_or_default();
        let words: Vec<_> =
            question.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3).collect();
        let fits = |document: &&str| words.iter().any(|word| document.to_lowercase().contains(word));
        let found: Vec<_> = documents.iter().copied().filter(fits).collect();
        Ok(if found.is_empty() {
            String::new()
        } else {
            format!("Answer from these documents:\n{}", found.join("\n"))
        })
    })
}
