use conversation_store::StoreError;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address cannot be read. It is not repeated here, since it may hold a password.
    #[error("the address of the server cannot be read; write it as redis://user:password@host:port/number")]
    Address,
    /// The address asks for TLS, which this build does not speak.
    #[error(
        "the address asks for TLS; turn on the feature `native-tls`, or a TLS feature of the crate `redis`"
    )]
    NeedsTls,
    /// The prefix is none that this crate takes.
    #[error("a prefix of keys has 1 to 64 characters of A-Z, a-z, 0-9, `-`, `_`, `.` and `:`")]
    Prefix,
    /// The server cannot be used, or refused what was needed.
    #[error("the server could not be used")]
    Store(#[from] StoreError),
}
