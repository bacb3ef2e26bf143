//! `#[derive(Operand)]`: a struct is what its fields are, in their order.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Field, Generics, Index, Member, Path, Result, Type,
    WherePredicate, parse_quote, parse_quote_spanned,
};

use crate::expand::located;

/// The name of the attribute on the struct and on its fields.
const OPERAND: &str = "operand";

/// Fields that a struct may have which is uploaded.
const MOST_UPLOADED: usize = 12;

/// The implementation for a struct.
pub(crate) fn derive(input: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(input)?;
    let Data::Struct(data) = &input.data else {
        let message = "`Operand` can be derived for a struct; for an enum or a union, implement `kbench::Operand` by hand: \
                       `elements` says what is compared";
        return Err(Error::new_spanned(&input.ident, message));
    };
    let options = Options::of(&input.attrs)?;
    let krate = &options.krate;
    let hidden = quote!(#krate::__private);
    let mut fields = Vec::new();
    for (field, member) in data.fields.iter().zip(data.fields.members()) {
        if !is_skipped(field)? {
            fields.push((member, &field.ty));
        }
    }
    let is_complete = fields.len() == data.fields.len();
    let methods = methods(&hidden, &fields, is_complete);
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let name = &parameter.ident;
        generics.make_where_clause().predicates.push(parse_quote!(#name: 'static));
    }
    for (_, kind) in fields.iter().filter(|(_, kind)| !mentions(kind, &input.ident)) {
        // Without a parameter, too: the field's type is then the one place of the error that it is no operand.
        let operand = located(quote!(#hidden::Operand), kind.span());
        let condition = parse_quote_spanned!(kind.span()=> #kind: #operand);
        generics.make_where_clause().predicates.push(condition);
    }
    let upload = match options.uploads {
        true => upload(&input, krate, &generics, &fields)?,
        false => TokenStream::new(),
    };
    let element = match options.element {
        Some(site) if !is_complete || !is_repr_c(&input.attrs)? => {
            let message =
                "an element of arrays on a device needs `#[repr(C)]`, and no field that is skipped";
            return Err(Error::new(site, message));
        }
        Some(_) => element(&input, krate, &generics, &fields),
        None => TokenStream::new(),
    };
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #hidden::Operand for #name #arguments #conditions {
            #methods
        }
        #upload
        #element
    })
}

/// Whether a type is made of the struct itself: a condition on it would go round in circles.
fn mentions(kind: &Type, name: &Ident) -> bool {
    fn is_in(tokens: TokenStream, name: &Ident) -> bool {
        tokens.into_iter().any(|tree| match tree {
            TokenTree::Ident(ident) => ident == *name,
            TokenTree::Group(group) => is_in(group.stream(), name),
            _ => false,
        })
    }
    is_in(kind.to_token_stream(), name)
}

/// A struct of elements with the layout of C is an element of arrays.
fn element(
    input: &DeriveInput,
    krate: &Path,
    generics: &Generics,
    fields: &[(Member, &Type)],
) -> TokenStream {
    let name = &input.ident;
    let (parameters, arguments, _) = generics.split_for_impl();
    let mut bounds = generics.clone();
    let predicates = &mut bounds.make_where_clause().predicates;
    for (_, kind) in fields {
        predicates.push(parse_quote!(#kind: #krate::DeviceElement));
    }
    let bounds = &bounds.where_clause;
    quote! {
        // SAFETY: any bits are a value of all its fields, and its layout is that of C.
        #[automatically_derived]
        #[allow(unsafe_code, private_bounds)] // asked for by `#[operand(element)]`; fields may have private types
        unsafe impl #parameters #krate::DeviceElement for #name #arguments #bounds {}
    }
}

/// On a device, a struct is the tuple of what its fields are there.
fn upload(
    input: &DeriveInput,
    krate: &Path,
    generics: &Generics,
    fields: &[(Member, &Type)],
) -> Result<TokenStream> {
    if fields.len() > MOST_UPLOADED {
        let message = format!(
            "`#[operand(upload)]` knows structs of up to {MOST_UPLOADED} fields; `#[operand(skip)]` leaves one out, or implement \
             `kbench::Upload` by hand"
        );
        return Err(Error::new_spanned(&input.ident, message));
    }
    let name = &input.ident;
    let (parameters, arguments, _) = generics.split_for_impl();
    let (members, types): (Vec<_>, Vec<&Type>) = fields.iter().cloned().unzip();
    let places: Vec<Index> = (0..fields.len()).map(Index::from).collect();
    let mut bounds = generics.clone();
    if !generics.params.is_empty() {
        let predicates = &mut bounds.make_where_clause().predicates;
        predicates.push(parse_quote!(#name #arguments: ::core::clone::Clone));
        predicates.extend(
            types.iter().map(|kind| -> WherePredicate { parse_quote!(#kind: #krate::Upload) }),
        );
    }
    let of_upload = &bounds.where_clause;
    let devices = types.iter().map(|kind| {
        // The field's type is where an error belongs that it cannot be uploaded.
        let span = Span::call_site().located_at(kind.span());
        quote_spanned!(span=> <#kind as #krate::Upload>::Device)
    });
    let gpu = quote!(gpu: &#krate::Gpu);
    let result = quote!(#krate::GpuResult<()>);
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #krate::Upload for #name #arguments #of_upload {
            type Device = (#(#devices,)*);

            fn upload(&self, #gpu) -> #krate::GpuResult<Self::Device> {
                let _ = &gpu;
                Ok((#(#krate::Upload::upload(&self.#members, gpu)?,)*))
            }

            fn copy_to(&self, device: &mut Self::Device, #gpu) -> #result {
                let _ = (&device, &gpu);
                #(#krate::Upload::copy_to(&self.#members, &mut device.#places, gpu)?;)*
                Ok(())
            }

            fn copy_from(&mut self, device: &Self::Device, #gpu) -> #result {
                let _ = (&device, &gpu);
                #(#krate::Upload::copy_from(&mut self.#members, &device.#places, gpu)?;)*
                Ok(())
            }
        }
    })
}

/// Whether a struct has the layout of C.
fn is_repr_c(attributes: &[Attribute]) -> Result<bool> {
    let mut is_c = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            is_c |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            // `align(8)` and `packed(4)` have arguments.
            if meta.input.peek(syn::token::Paren) {
                let arguments;
                syn::parenthesized!(arguments in meta.input);
                arguments.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(is_c)
}

/// Every method calls that of the fields, one after the other.
fn methods(hidden: &TokenStream, fields: &[(Member, &Type)], is_complete: bool) -> TokenStream {
    let each = |method: &str, arguments: TokenStream, borrow: TokenStream| {
        let method = format_ident!("{method}");
        let calls = fields
            .iter()
            .map(|(member, _)| quote!(#hidden::Operand::#method(#borrow self.#member, #arguments)));
        calls.collect::<Vec<_>>()
    };
    let shared = |method: &str, arguments: TokenStream| each(method, arguments, quote!(&));
    let unique = |method: &str, arguments: TokenStream| each(method, arguments, quote!(&mut));
    let elements = shared("elements", quote!(parts));
    let rests = shared("rests", quote!(parts));
    let fields_of_members = fields.iter().map(|(member, _)| {
        let name = match member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        quote!(#hidden::fields_of_member(#name, &self.#member, parts))
    });
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
    let exchange = fields.iter().map(
        |(member, _)| quote!(#hidden::Operand::exchange(&mut self.#member, &mut other.#member)),
    );
    let usize = quote!(::core::primitive::usize);
    let text = quote!(#hidden::Option<#hidden::String>);
    quote! {
        fn elements(&self, parts: &mut #hidden::Vec<#hidden::Vec<::core::primitive::f64>>) {
            let _ = &parts;
            #(#elements;)*
        }
        fn rests(&self, parts: &mut #hidden::Vec<#hidden::Vec<::core::primitive::f64>>) {
            let _ = &parts;
            #(#rests;)*
        }
        fn fields(&self, parts: &mut #hidden::Vec<#hidden::String>) {
            let _ = &parts;
            #(#fields_of_members;)*
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
        fn exchange(&mut self, other: &mut Self) -> ::core::primitive::bool {
            let _ = &other;
            #is_complete #(&& #exchange)*
        }
        fn relocate(&mut self, pages: &mut #hidden::Pages) {
            let _ = &pages;
            #(#relocate;)*
        }
    }
}

/// What the attribute says about the whole struct.
struct Options {
    /// `#[operand(crate = path)]`, or `::kbench`.
    krate: Path,
    /// `#[operand(upload)]`.
    uploads: bool,
    /// `#[operand(element)]`, and where it stands.
    element: Option<Span>,
}

impl Options {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Options { krate: parse_quote!(::kbench), uploads: false, element: None };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(OPERAND)) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("crate") {
                    options.krate = meta.value()?.call(Path::parse_mod_style)?;
                } else if meta.path.is_ident("upload") {
                    options.uploads = true;
                } else if meta.path.is_ident("element") {
                    options.element = Some(meta.path.span());
                } else {
                    let message =
                        "`#[operand(..)]` of a struct knows `crate = path`, `upload` and `element`";
                    return Err(meta.error(message));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
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
