//! A streaming advisor chain for language-model calls with tools and memory that stay consistent: the facade.
