//! The compiler's errors about types that cannot be arguments or results, and about misspelt settings.
//!
//! The expected texts are those of the compiler in `rust-version`. `TRYBUILD=overwrite` updates them.

#[test]
fn compiler_names_types_and_settings_that_do_not_fit() {
    trybuild::TestCases::new().compile_fail("tests/compile/*.rs");
}
