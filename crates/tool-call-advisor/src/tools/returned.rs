//! The conversions of the values that functions with `#[tool]` return. The macro's code selects one by the type.
//!
//! Each conversion is a trait of a [`Kind`] behind a number of references. A method call tries the type with most
//! references first, so the first conversion that applies is used. The name of the return type would not do:
//! an alias hides `Result`, and a failed call would be a success.

use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;

use advisor_core::{ToolError, ToolOutput, text_with_sources};
use serde::Serialize;
use serde_json::Value;

/// The type of a returned value.
#[derive(Debug)]
pub struct Kind<T>(PhantomData<fn() -> T>);

impl<T> Kind<T> {
    /// Returns the kind of a value.
    #[must_use]
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// A result whose error converts to [`ToolError`], as all that implement [`Error`].
pub trait ConvertedError<T, E> {
    /// Converts the error.
    ///
    /// # Errors
    /// That of `result`.
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError>;
}

impl<T, E: Into<ToolError>> ConvertedError<T, E> for &&&Kind<Result<T, E>> {
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError> {
        result.map_err(Into::into)
    }
}

/// A result whose error contains one: a boxed error, or one of the crate `anyhow`.
pub trait ErrorWithSources<T, E> {
    /// Converts the error to its text and those of its sources.
    ///
    /// # Errors
    /// That of `result`.
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError>;
}

impl<T, E: AsRef<dyn Error + Send + Sync>> ErrorWithSources<T, E> for &&Kind<Result<T, E>> {
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError> {
        result.map_err(|error| ToolError::new(text_with_sources(error.as_ref())))
    }
}

/// Any other result: its error must be displayable.
pub trait DisplayedError<T, E> {
    /// Converts the error to its text.
    ///
    /// # Errors
    /// That of `result`.
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError>
    where
        E: Display;
}

impl<T, E> DisplayedError<T, E> for &Kind<Result<T, E>> {
    fn checked(&self, result: Result<T, E>) -> Result<T, ToolError>
    where
        E: Display,
    {
        // The alternate form is that of errors with their sources.
        result.map_err(|error| ToolError::new(format!("{error:#}")))
    }
}

/// A value that is no result.
pub trait NoError<T> {
    /// Returns the value.
    ///
    /// # Errors
    /// None.
    fn checked(&self, value: T) -> Result<T, ToolError>;
}

impl<T> NoError<T> for Kind<T> {
    fn checked(&self, value: T) -> Result<T, ToolError> {
        Ok(value)
    }
}

/// A value that converts to [`ToolOutput`], such as a text, a part or nothing.
pub trait ConvertedResult<T> {
    /// Converts the value.
    ///
    /// # Errors
    /// None.
    fn output(&self, value: T) -> Result<ToolOutput, ToolError>;
}

impl<T: Into<ToolOutput>> ConvertedResult<T> for &Kind<T> {
    fn output(&self, value: T) -> Result<ToolOutput, ToolError> {
        Ok(value.into())
    }
}

/// Any other value: it must be serialisable.
pub trait AnyResult<T> {
    /// Serialises the value. A value that is a text in JSON is a text for the model.
    ///
    /// # Errors
    /// If it cannot be serialised as JSON, such as a map whose keys are not strings.
    fn output(&self, value: T) -> Result<ToolOutput, ToolError>
    where
        T: Serialize;
}

impl<T> AnyResult<T> for Kind<T> {
    fn output(&self, value: T) -> Result<ToolOutput, ToolError>
    where
        T: Serialize,
    {
        Ok(match serde_json::to_value(value)? {
            Value::String(text) => text.into(),
            value => value.into(),
        })
    }
}
