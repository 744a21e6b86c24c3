//! The tests of the workspace.
