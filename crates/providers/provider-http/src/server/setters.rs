//! The setters of every model, and the check of its settings.

/// Gives a model the setters of its name and its server, and `validate`, which checks them. To be used inside the `impl` block of a struct with the
/// fields `model: Option<`[`Text`](crate::server::Text)`>` and `server: `[`Server`](crate::server::Server).
///
/// `server_setters!(except with_base_url)` leaves that one to the model, because a new base URL changes more there.
/// `server_setters!(connection)` has only those of the connection, for a model without streamed answers.
///
/// ```
/// use provider_http::server::{Authorization, Server, Text};
///
/// #[must_use]
/// #[derive(Debug, Clone)]
/// pub struct SomeModel {
///     model: Option<Text>,
///     server: Server,
/// }
///
/// impl SomeModel {
///     provider_http::server_setters!();
/// }
///
/// let server = Server::new("https://llm.example", Authorization::Bearer);
/// let model = SomeModel { model: None, server }.with_model("small").with_base_url("http://127.0.0.1:8080");
/// assert!(model.validate().is_ok());
/// assert!(model.with_base_url("127.0.0.1:8080").validate().is_err());
/// ```
#[macro_export]
macro_rules! server_setters {
    () => {
        /// Sets the base URL, such as `http://127.0.0.1:8080`. With an unusable one, `validate` and the first
        /// request fail.
        pub fn with_base_url(mut self, base_url: impl ::std::convert::Into<::std::string::String>) -> Self {
            self.server = self.server.with_base_url(base_url);
            self
        }

        $crate::server_setters!(except with_base_url);
    };
    (except with_base_url) => {
        /// Sets the model. A request can name another one.
        pub fn with_model(mut self, model: impl ::std::convert::Into<$crate::server::Text>) -> Self {
            self.model = ::std::option::Option::Some(model.into());
            self
        }

        /// Sets the model, the key and the base URL as far as the environment has them.
        pub fn with_env_settings(self, settings: $crate::server::EnvSettings) -> Self {
            let named = settings.model.into_iter().fold(self, Self::with_model);
            let keyed = settings.key.into_iter().fold(named, |model, (_, key)| model.with_api_key(key));
            settings.base_url.into_iter().fold(keyed, Self::with_base_url)
        }

        /// Sets the bounds for an answer.
        pub fn with_answer_limits(mut self, limits: $crate::server::AggregatorLimits) -> Self {
            self.server.answer_limits = limits;
            self
        }

        $crate::server_setters!(connection);
    };
    (connection) => {
        /// Sets the key. It appears in no `Debug` output, log or error.
        pub fn with_api_key(mut self, key: impl ::std::convert::Into<$crate::server::SecretString>) -> Self {
            self.server = self.server.with_api_key(key);
            self
        }

        /// Adds a header to every request, replacing an earlier one of this name. Its value is treated as a
        /// secret.
        pub fn with_header(
            mut self,
            name: &str,
            value: impl ::std::convert::Into<$crate::server::SecretString>,
        ) -> Self {
            self.server = self.server.with_header(name, value);
            self
        }

        /// Sets the timeouts.
        pub fn with_timeouts(mut self, timeouts: $crate::timeouts::Timeouts) -> Self {
            self.server = self.server.with_timeouts(timeouts);
            self
        }

        /// Sets the schedule of retries.
        ///
        /// A request is retried after a transient failure: no connection, a timeout, 429, 5xx, or an error in
        /// place of the answer. The server's `Retry-After` takes precedence over the schedule. Nothing is retried
        /// once a part of the answer was shown.
        pub fn with_retries(mut self, retries: $crate::backoff::Backoff) -> Self {
            self.server.retries = retries;
            self
        }

        /// Sets the bounds for lines and events. The bound for an event also applies to a JSON value.
        pub fn with_limits(mut self, limits: $crate::sse::SseLimits) -> Self {
            self.server.limits = limits;
            self
        }

        /// Sets the transport, which is responsible for its own connect timeout.
        pub fn with_transport(mut self, transport: impl $crate::transport::Transport) -> Self {
            self.server.transport = ::std::option::Option::Some(::std::sync::Arc::new(transport));
            self
        }

        /// Checks the base URL, the key and the headers, so that a program can refuse them before its first
        /// request.
        ///
        /// # Errors
        /// Of kind `Configuration`, with a message that names the remedy. The message shows neither the base URL
        /// nor the key.
        pub fn validate(&self) -> $crate::server::Result<()> {
            self.server.validate()
        }
    };
}
