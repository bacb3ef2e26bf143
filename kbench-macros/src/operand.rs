//! `#[derive(Operand)]`: a struct is what its fields are, in their order.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Field, Member, Path, Result, Type, parse_quote};

/// The name of the attribute on the struct and on its fields.
const OPERAND: &str = "operand";

/// The implementation for a struct.
pub(crate) fn derive(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let Data::Struct(data) = &input.data else {
        let message = "`Operand` can be derived for a struct; for an enum or a union, implement `kbench::Operand` by hand: \
                       `elements` says what is compared";
        return Err(Error::new_spanned(&input.ident, message));
    };
    let krate = krate(&input.attrs)?;
    let hidden = quote!(#krate::__private);
    let mut fields = Vec::new();
    for (field, member) in data.fields.iter().zip(data.fields.members()) {
        if !is_skipped(field)? {
            fields.push((member, &field.ty));
        }
    }
    let methods = methods(&hidden, &fields);
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let name = &parameter.ident;
        generics.make_where_clause().predicates.push(parse_quote!(#name: 'static));
    }
    if !input.generics.params.is_empty() {
        for (_, kind) in &fields {
            generics.make_where_clause().predicates.push(parse_quote!(#kind: #hidden::Operand));
        }
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #hidden::Operand for #name #arguments #conditions {
            #methods
        }
    })
}

/// Every method calls that of the fields, one after the other.
fn methods(hidden: &TokenStream, fields: &[(Member, &Type)]) -> TokenStream {
    let each = |method: &str, arguments: TokenStream, borrow: TokenStream| {
        let method = format_ident!("{method}");
        let calls = fields.iter().map(|(member, kind)| {
            // The field's type is where an error belongs that it is no operand.
            let span = Span::call_site().located_at(kind.span());
            quote_spanned!(span=> #hidden::Operand::#method(#borrow self.#member, #arguments))
        });
        calls.collect::<Vec<_>>()
    };
    let shared = |method: &str, arguments: TokenStream| each(method, arguments, quote!(&));
    let unique = |method: &str, arguments: TokenStream| each(method, arguments, quote!(&mut));
    let elements = shared("elements", quote!(parts));
    let poison = unique("poison", quote!(poison));
    let poisoned = shared("poisoned", quote!(poison, parts));
    let fingerprint = shared("fingerprint", quote!(fingerprint));
    let bytes = shared("bytes", quote!());
    let addresses = shared("addresses", quote!(ranges));
    let roundoffs = shared("roundoffs", quote!(parts));
    let export = shared("export", quote!(parts));
    let import = unique("import", quote!(parts));
    let failure = shared("failure", quote!());
    let declined = shared("declined", quote!());
    let uncompared = shared("uncompared", quote!(types));
    let each_numbers = unique("each_numbers", quote!(visit));
    let relocate = unique("relocate", quote!(pages));
    let usize = quote!(::core::primitive::usize);
    let text = quote!(#hidden::Option<#hidden::String>);
    quote! {
        fn elements(&self, parts: &mut #hidden::Vec<#hidden::Vec<::core::primitive::f64>>) {
            let _ = &parts;
            #(#elements;)*
        }
        fn poison(&mut self, poison: #hidden::Poison) {
            let _ = &poison;
            #(#poison;)*
        }
        fn poisoned(
            &self,
            poison: #hidden::Poison,
            parts: &mut #hidden::Vec<#hidden::Vec<#usize>>,
        ) {
            let _ = (&poison, &parts);
            #(#poisoned;)*
        }
        fn fingerprint(&self, fingerprint: &mut #hidden::Fingerprint) {
            let _ = &fingerprint;
            #(#fingerprint;)*
        }
        fn bytes(&self) -> #usize {
            0 #(+ #bytes)*
        }
        fn addresses(&self, ranges: &mut #hidden::Vec<::core::ops::Range<#usize>>) {
            let _ = &ranges;
            #(#addresses;)*
        }
        fn roundoffs(&self, parts: &mut #hidden::Vec<::core::primitive::f64>) {
            let _ = &parts;
            #(#roundoffs;)*
        }
        fn export<'kbench>(&'kbench self, parts: &mut #hidden::Vec<#hidden::Plain<'kbench>>) {
            let _ = &parts;
            #(#export;)*
        }
        fn import(&mut self, parts: &mut #hidden::PlainBytes<'_>) -> ::core::primitive::bool {
            let _ = &parts;
            true #(&& #import)*
        }
        fn failure(&self) -> #text {
            #hidden::Option::None #(.or_else(|| #failure))*
        }
        fn declined(&self) -> #text {
            #hidden::Option::None #(.or_else(|| #declined))*
        }
        fn uncompared(&self, types: &mut #hidden::Vec<&'static ::core::primitive::str>) {
            let _ = &types;
            #(#uncompared;)*
        }
        fn each_numbers(&mut self, visit: &mut dyn ::core::ops::FnMut(&mut dyn #hidden::NumbersMut)) {
            let _ = &visit;
            #(#each_numbers;)*
        }
        fn relocate(&mut self, pages: &mut #hidden::Pages) {
            let _ = &pages;
            #(#relocate;)*
        }
    }
}

/// The path of kbench: `#[operand(crate = path)]`, or `::kbench`.
fn krate(attributes: &[Attribute]) -> Result<Path> {
    let mut krate = parse_quote!(::kbench);
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(OPERAND)) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("a struct knows `#[operand(crate = path)]` alone"));
            }
            krate = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(krate)
}

/// Whether a field is left out.
fn is_skipped(field: &Field) -> Result<bool> {
    let mut skipped = false;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident(OPERAND)) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("skip") {
                return Err(meta.error("a field knows `#[operand(skip)]` alone"));
            }
            skipped = true;
            Ok(())
        })?;
    }
    Ok(skipped)
}
