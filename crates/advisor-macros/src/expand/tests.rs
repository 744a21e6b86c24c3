//! Tests of `expand`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proc_macro2::TokenStream;
use quote::quote;

use super::{expand, expand_or_error};

/// The text of the error that this function with these settings causes.
fn error(settings: TokenStream, item: TokenStream) -> String {
    expand(settings, item).unwrap_err().to_string()
}

/// The same for a function without settings.
fn mistake(item: TokenStream) -> String {
    error(TokenStream::new(), item)
}

#[test]
fn a_function_without_description_is_refused() {
    for item in [
        quote!(
            fn now() {}
        ),
        quote!(
            #[doc = "  "]
            fn now() {}
        ),
    ] {
        let text = mistake(item);
        assert!(
            text.contains("write a doc comment above the function, or `#[tool(description = \"…\")]`"),
            "{text}"
        );
    }
}

#[test]
fn a_method_takes_a_shared_reference() {
    for receiver in [quote!(self), quote!(mut self), quote!(&mut self), quote!(self: Arc<Self>)] {
        let text = mistake(quote!(#[doc = "Sells."] async fn sell(#receiver, article: u32) {}));
        assert!(text.contains("takes `&self`: put what changes behind a `Mutex`"), "{text}");
    }
    expand(
        quote!(),
        quote!(
            #[doc = "Sells."]
            async fn sell(&self, article: u32) {}
        ),
    )
    .unwrap();
}

#[test]
fn a_generic_function_is_refused() {
    for item in [
        quote!(
            #[doc = "Finds."]
            fn find<T: Key>(key: T) {}
        ),
        quote!(
            #[doc = "Finds."]
            fn find<'a>(key: Key<'a>) {}
        ),
    ] {
        let text = mistake(item);
        assert!(text.contains("a tool has one schema, so its function is not generic"), "{text}");
    }
    let text = mistake(quote!(
        #[doc = "Finds."]
        fn find(key: impl Key) {}
    ));
    assert!(text.contains("its arguments are not generic: take a type such as `String`"), "{text}");
}

#[test]
fn a_pattern_is_no_argument() {
    for pattern in [quote!((north, east)), quote!(_), quote!(Place { north, east }), quote!(ref place)] {
        let text = mistake(quote!(#[doc = "Looks."] fn look(#pattern: Place) {}));
        assert!(text.contains("write `name: Type`, and take it apart in the body"), "{text}");
    }
    expand(
        quote!(),
        quote!(
            #[doc = "Looks."]
            fn look(mut place: Place) {}
        ),
    )
    .unwrap();
}

#[test]
fn a_borrowed_argument_is_refused_with_its_owned_type() {
    for (borrowed, owned) in [
        (quote!(&str), "take `String`, not `&str`"),
        (quote!(&[Vec<u8>]), "take `Vec<Vec<u8>>`, not `&[Vec<u8>]`"),
        (quote!(&shop::Article), "take `shop::Article`, not `&shop::Article`"),
        (quote!(&mut ToolInvocation), "take `ToolInvocation`, not `&mut ToolInvocation`"),
    ] {
        let text = mistake(quote!(#[doc = "Finds."] fn find(query: #borrowed) {}));
        assert!(text.contains(owned), "{text}");
    }
}

#[test]
fn a_second_invocation_is_refused() {
    let item = quote!(
        #[doc = "Finds."]
        fn find(call: &ToolInvocation, again: tools::ToolInvocation) {}
    );
    assert!(mistake(item).contains("a call has one invocation"));
}

#[test]
fn only_functions_are_tools() {
    for item in [
        quote!(
            struct Shop;
        ),
        quote!(
            const LIMIT: u32 = 1;
        ),
    ] {
        let text = mistake(item);
        assert!(text.contains("write it above a `fn`, also above one in an `impl` block"), "{text}");
    }
    let text = mistake(quote!(impl Shop { fn find(&self) {} }));
    assert!(text.contains("write it above a `fn`, also above one in an `impl` block"), "{text}");
}

#[test]
fn a_setting_needs_its_value() {
    for (setting, says) in [
        (quote!(name), "write `name = \"weather\"`"),
        (quote!(name("weather")), "write `name = \"weather\"`"),
        (quote!(name = 7), "write `name = \"weather\"`"),
        (quote!(blocking), "write `blocking = 4`"),
        (quote!(crate), "write `crate = \"advisor_chain::tools\"`"),
        (quote!(effect =), "write `effect = Effect::Pure`"),
        (quote!(blocking = 1, blocking = 2), "`blocking` is set twice"),
    ] {
        let text = error(
            setting,
            quote!(
                #[doc = "Finds."]
                fn find() {}
            ),
        );
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn a_name_that_servers_refuse_is_refused() {
    let long = "a".repeat(65);
    for name in ["", "search docs", "größe", &long] {
        let text = error(
            quote!(name = #name),
            quote!(
                #[doc = "Finds."]
                fn find() {}
            ),
        );
        assert!(text.contains("1 to 64 letters, digits, `_`, `-` and `.`"), "{text}");
    }
    assert!(
        mistake(quote!(
            #[doc = "Measures."]
            fn größe() {}
        ))
        .contains("servers refuse this name")
    );
    expand(
        quote!(name = "search.docs-2"),
        quote!(
            #[doc = "Finds."]
            fn find() {}
        ),
    )
    .unwrap();
}

#[test]
fn an_async_function_does_not_block() {
    let text = error(
        quote!(blocking = 4),
        quote!(
            #[doc = "Finds."]
            async fn find() {}
        ),
    );
    assert!(text.contains("remove it, or the `async`"), "{text}");
    expand(
        quote!(blocking = 4),
        quote!(
            #[doc = "Finds."]
            fn find() {}
        ),
    )
    .unwrap();
}

/// The function stays there with an error, without the attributes that no function may have.
#[test]
fn a_refused_function_stays_callable() {
    let item = quote!(
        fn find(
            #[doc = "What to find."]
            #[serde(default)]
            #[allow(unused)]
            query: String,
        ) {
        }
    );
    let expanded = expand_or_error(quote!(), item).to_string();
    assert!(expanded.contains("compile_error"), "{expanded}");
    assert!(expanded.contains("fn find (# [allow (unused)] query : String"), "{expanded}");
    assert!(!expanded.contains("serde") && !expanded.contains("What to find"), "{expanded}");
}
