//! `provider_name`: the well-known names of providers.

use crate::Conventions;

/// Returns the well-known name of a provider, if the conventions have one that differs from ours.
pub(crate) fn provider_name(own: &str, conventions: Conventions) -> &str {
    match (own, conventions) {
        ("gemini", _) => "gcp.gemini",
        ("vertex-ai", _) => "gcp.vertex_ai",
        ("mistral", _) => "mistral_ai",
        ("xai", Conventions::V1_41 | Conventions::GenAi0_1) => "x_ai",
        _ => own,
    }
}
