//! `Denials`, `Denial` and `DenialCause`: the denied blocks of a turn, and the text in their place.

use advisor_core::{BlockId, BlockKind, ErrorKind, Text};

/// The denied blocks of a turn, in the order in which they were left out. An extension of the turn.
///
/// They include blocks of an answer that an outer advisor rejected, but not those of an attempt that the model call
/// restarted. Without a denial there is no such extension.
///
/// # Example
/// ```
/// use std::sync::Arc;
///
/// use advisor_core::ChatClient;
/// use advisor_testkit::{Answer, ScriptedModel};
/// use futures::TryStreamExt;
/// use stream_policy::{BlockPolicy, Denials, PendingBlock, Verdict};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> advisor_core::Result<()> {
/// # let policy = BlockPolicy::new(|_: PendingBlock| async { Ok(Verdict::deny("Ask an administrator.")) });
/// # let model = ScriptedModel::new([Answer::from_calls([("c1", "delete", "{}")])]);
/// # let client = ChatClient::builder(model).advisor(policy).build()?;
/// let mut stream = client.prompt().user("Clean up.").stream();
/// let turn = Arc::clone(stream.turn());
/// while let Some(_chunk) = stream.try_next().await? {}
/// let denials = turn.extensions().get::<Denials>().unwrap_or_default();
/// assert_eq!(denials.0[0].tool.as_deref(), Some("delete"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denials(pub Vec<Denial>);

/// A block that a policy left out of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// The name of the policy.
    pub policy: Text,
    /// The block.
    pub block: BlockId,
    /// The kind of the block.
    pub kind: BlockKind,
    /// The name of the tool, for a call.
    pub tool: Option<Text>,
    /// The cause.
    pub cause: DenialCause,
}

/// The cause of a denial.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DenialCause {
    /// The judge denied the block.
    Verdict {
        /// Its reason, which may be empty.
        explanation: Text,
    },
    /// The judge gave no verdict: it failed with an error of this kind, took too long
    /// ([`Timeout`](ErrorKind::Timeout)) or panicked ([`Advisor`](ErrorKind::Advisor)).
    NoVerdict(ErrorKind),
}

impl Denial {
    /// Returns the default text in place of the block.
    ///
    /// [`BlockPolicy::with_denial_text`](crate::BlockPolicy::with_denial_text) sets another one.
    #[must_use]
    pub fn default_text(&self) -> String {
        let what = match (&self.tool, self.kind) {
            (Some(tool), _) => format!("The call of `{tool}`"),
            (None, BlockKind::Reasoning) => "A part of the reasoning".to_owned(),
            (None, BlockKind::Media) => "An image or file".to_owned(),
            (None, BlockKind::Citation) => "A citation".to_owned(),
            (None, BlockKind::Opaque) => "A part of the answer".to_owned(),
            (None, _) => "A text".to_owned(),
        };
        match &self.cause {
            DenialCause::Verdict { explanation } if explanation.trim().is_empty() => {
                format!("[{what} was denied.]")
            }
            DenialCause::Verdict { explanation } => format!("[{what} was denied: {explanation}]"),
            DenialCause::NoVerdict(_) => format!("[{what} was denied, since it could not be checked.]"),
        }
    }
}
