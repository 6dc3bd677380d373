//! The one error type of the core: a kind, which the binding maps to an exception class, and a message for the user.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An argument or a text that cannot be used.
    Value,
    /// Data of a tokenizer that contradicts itself.
    Format,
    /// Text that spells a special token where that is not allowed.
    SpecialToken,
    /// An id or a token that the vocabulary does not have.
    UnknownToken,
    /// The caller asked to stop.
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn value(message: impl Into<String>) -> Self {
        Self { kind: Kind::Value, message: message.into() }
    }

    pub fn format(message: impl Into<String>) -> Self {
        Self { kind: Kind::Format, message: message.into() }
    }

    pub fn unknown(message: impl Into<String>) -> Self {
        Self { kind: Kind::UnknownToken, message: message.into() }
    }

    pub fn interrupted() -> Self {
        Self { kind: Kind::Interrupted, message: "interrupted".into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
