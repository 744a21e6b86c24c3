//! The settings of a model in environment variables.

use std::fmt;

use advisor_core::{ChatRequest, Error, Result, Text};
use secrecy::SecretString;

/// The names of the environment variables that configure a model. The value of a variable is trimmed, and an empty
/// one counts as unset.
///
/// ```
/// use provider_http::server::Variables;
///
/// const VARIABLES: Variables =
///     Variables { keys: &["SOME_API_KEY"], base_url: "SOME_BASE_URL", model: "SOME_MODEL" };
///
/// # fn main() -> advisor_core::Result<()> {
/// let settings = VARIABLES.read_required(|name| (name == "SOME_BASE_URL").then(|| "http://127.0.0.1:8080".to_owned()))?;
/// assert_eq!(settings.base_url.as_deref(), Some("http://127.0.0.1:8080"));
/// assert!(settings.key.is_none() && settings.model.is_none());
/// assert!(VARIABLES.read_required(|_| None).is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variables {
    /// The variables of the key. The first one that is set counts.
    pub keys: &'static [&'static str],
    /// The variable of the base URL.
    pub base_url: &'static str,
    /// The variable of the model.
    pub model: &'static str,
}

/// The settings of a model in the environment.
#[derive(Default)]
#[non_exhaustive]
pub struct EnvSettings {
    /// The key, and the variable that has it.
    pub key: Option<(&'static str, SecretString)>,
    /// The base URL.
    pub base_url: Option<String>,
    /// The model.
    pub model: Option<Text>,
}

impl Variables {
    /// Reads the variables. `lookup` returns the value of a variable, such as `|name| std::env::var(name).ok()`.
    #[must_use]
    pub fn read(&self, lookup: impl Fn(&str) -> Option<String>) -> EnvSettings {
        let value =
            |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        EnvSettings {
            key: self.keys.iter().find_map(|name| Some((*name, value(name)?.into()))),
            base_url: value(self.base_url),
            model: value(self.model).map(Text::from),
        }
    }

    /// Reads the variables of a model whose vendor demands a key.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if there is neither a key nor a base URL.
    pub fn read_required(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<EnvSettings> {
        let settings = self.read(lookup);
        if settings.key.is_none() && settings.base_url.is_none() {
            return Err(Error::configuration(format!(
                "set {}, or {} for a server that needs no key",
                self.keys.join(" or "),
                self.base_url
            )));
        }
        Ok(settings)
    }

    /// Returns the model that a request names, or else `model`.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration) if there is neither.
    pub fn model_of<'a>(&self, request: &'a ChatRequest, model: Option<&'a Text>) -> Result<&'a Text> {
        request.options.model.as_ref().or(model).ok_or_else(|| {
            Error::configuration(format!(
                "no model is named; set {} or the request's `ChatOptions::model`",
                self.model
            ))
        })
    }
}

/// Shows the variable of the key, and neither the key nor the base URL.
impl fmt::Debug for EnvSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvSettings")
            .field("key", &self.key.as_ref().map(|(name, _)| name))
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::{ChatOptions, ErrorKind, Message};
    use secrecy::ExposeSecret;

    use super::*;

    const VARIABLES: Variables =
        Variables { keys: &["A_KEY", "A_TOKEN"], base_url: "A_URL", model: "A_MODEL" };

    fn lookup<'a>(vars: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| vars.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn values_are_trimmed_and_empty_ones_are_unset() {
        let settings = VARIABLES.read(lookup(&[("A_KEY", " \n"), ("A_TOKEN", " t\n"), ("A_MODEL", "")]));
        let key = settings.key.as_ref().map(|(name, key)| (*name, key.expose_secret()));
        assert_eq!(key, Some(("A_TOKEN", "t")));
        assert_eq!((settings.base_url, settings.model), (None, None));
        let both = VARIABLES.read(lookup(&[("A_TOKEN", "t"), ("A_KEY", "k")]));
        assert_eq!(both.key.map(|(name, _)| name), Some("A_KEY"));
    }

    #[test]
    fn key_or_base_url_is_required() {
        for vars in [&[][..], &[("A_KEY", " ")], &[("A_MODEL", "m")]] {
            let error = VARIABLES.read_required(lookup(vars)).expect_err("neither");
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert_eq!(error.to_string(), "set A_KEY or A_TOKEN, or A_URL for a server that needs no key");
        }
        for vars in [[("A_TOKEN", "t")], [("A_URL", "http://localhost")]] {
            assert!(VARIABLES.read_required(lookup(&vars)).is_ok());
        }
    }

    #[test]
    fn law_r3_settings_show_no_key() {
        let vars = [("A_KEY", "canary"), ("A_URL", "http://canary@localhost"), ("A_MODEL", "m")];
        let shown = format!("{:?}", VARIABLES.read(lookup(&vars)));
        assert!(shown.contains("A_KEY") && !shown.contains("canary"), "{shown}");
    }

    #[test]
    fn request_names_the_model_first() {
        let request = ChatRequest::new(Message::user("x"));
        let error = VARIABLES.model_of(&request, None).expect_err("no model");
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains("A_MODEL"), "{error}");
        let model = Text::from("m");
        assert_eq!(VARIABLES.model_of(&request, Some(&model)).ok(), Some(&model));
        let named = ChatRequest {
            options: ChatOptions { model: Some("other".into()), ..ChatOptions::default() },
            ..request
        };
        assert_eq!(VARIABLES.model_of(&named, Some(&model)).ok().map(Text::as_str), Some("other"));
    }
}
