//! The decisions about single calls, applied to a plan.

use std::collections::HashSet;
use std::sync::Arc;

use advisor_core::{Leniency, Text, ToolResult};

use crate::plan::prepare::fit_in_time;
use crate::plan::schema::Schemas;
use crate::plan::{Fate, PlannedCall, ToolPlan};
use crate::{CallDecision, ReadyCall};

/// Decisions about single calls.
impl ToolPlan {
    /// Returns the calls that could run, in call order.
    pub(crate) fn undecided(&mut self) -> impl Iterator<Item = &mut PlannedCall> {
        self.calls.iter_mut().filter(|planned| planned.ready().is_some())
    }

    /// Leaves calls that repeat the id of an earlier client-side call to the caller, too. Their results would be taken
    /// for that of the earlier one.
    pub(crate) fn leave_repeated(&mut self) {
        let mut left: HashSet<Text> = HashSet::new();
        for planned in &mut self.calls {
            if left.contains(&planned.identity.id) {
                planned.fate = Fate::ClientSide;
            }
            if planned.is_client_side() {
                left.insert(planned.identity.id.clone());
            }
        }
    }
}

impl PlannedCall {
    /// Returns the call, if it is about to run.
    pub(crate) fn ready(&self) -> Option<&ReadyCall> {
        match &self.fate {
            Fate::Ready(ready) => Some(ready),
            _ => None,
        }
    }

    /// Applies a decision to a call that is about to run.
    pub(crate) async fn decide(
        &mut self,
        decision: CallDecision,
        schemas: &Arc<Schemas>,
        leniency: Leniency,
    ) {
        let Fate::Ready(ready) = &mut self.fate else { return };
        match decision {
            CallDecision::Run => {}
            CallDecision::Deny(reason) => self.fate = Fate::Forbidden(reason),
            CallDecision::Ask => self.fate = Fate::ClientSide,
            CallDecision::RunWith(arguments) => {
                let misfit = "its arguments were changed and do not fit the tool";
                match fit_in_time(&ready.tool, arguments, schemas, leniency, misfit).await {
                    Ok(arguments) => {
                        let text = Text::from(arguments.to_string());
                        (ready.arguments, ready.edited) = (arguments, Some(text.clone()));
                        self.edited = Some(text);
                    }
                    Err(unready) => self.fate = Fate::Invalid(unready),
                }
            }
        }
    }
}

/// Adds a note about changed arguments to the front of a result, for the model.
pub(crate) fn note_edit(mut result: ToolResult, arguments: Option<&str>) -> ToolResult {
    if let Some(arguments) = arguments {
        result.parts.insert(0, format!("The call ran with changed arguments: {arguments}\n").into());
    }
    result
}
