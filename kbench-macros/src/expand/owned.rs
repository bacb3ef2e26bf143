//! The values that the runtime owns and lends as parameters.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Lifetime, Path, Type, TypeReference, parse_quote, parse_quote_spanned};

use super::at;
use crate::check::{pointee, referent};
use crate::model::{Backend, Parameter};

/// The owned type of a parameter.
pub(super) fn owned(parameter: &Parameter, backend: Backend, hidden: &Path) -> Type {
    let Some(target) = referent(&parameter.kind) else { return owner(&parameter.kind, hidden) };
    let on_device = pointee(target).filter(|_| backend == Backend::Cuda);
    let element = match target {
        Type::Slice(slice) => Some(&*slice.elem),
        _ => on_device,
    };
    match element.map(without_borrows) {
        Some(element) => parse_quote!(#hidden::Vec<#element>),
        None if is_str(target) => parse_quote!(#hidden::String),
        None => without_borrows(target),
    }
}

/// A by-value parameter is its own owner, unless it is a view of something else.
fn owner(kind: &Type, hidden: &Path) -> Type {
    if !is_view(kind) {
        return kind.clone();
    }
    let view = without_borrows(kind);
    parse_quote_spanned!(at(kind.span())=> <#view as #hidden::Lent>::Owner)
}

fn is_str(kind: &Type) -> bool {
    matches!(kind, Type::Path(path) if path.qself.is_none() && path.path.is_ident("str"))
}

/// Whether a type borrows, as far as its spelling shows.
pub(super) fn is_view(kind: &Type) -> bool {
    #[derive(Default)]
    struct Borrows(bool);
    impl<'ast> Visit<'ast> for Borrows {
        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            self.0 |= lifetime.ident != "static";
        }
        fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
            self.0 |= reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static");
            visit::visit_type_reference(self, reference);
        }
        // Lifetimes in the signature of a function are not borrows of its pointer.
        fn visit_type_fn_ptr(&mut self, _: &'ast syn::TypeFnPtr) {}
    }
    let mut borrows = Borrows::default();
    borrows.visit_type(kind);
    borrows.0
}

/// The type with every lifetime replaced by `'static`: the function's own are not in scope where data is owned.
fn without_borrows(kind: &Type) -> Type {
    struct Static;
    impl VisitMut for Static {
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            lifetime.ident = syn::Ident::new("static", lifetime.ident.span());
        }
        fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
            reference.lifetime.get_or_insert_with(|| parse_quote!('static));
            visit_mut::visit_type_reference_mut(self, reference);
        }
        fn visit_type_fn_ptr_mut(&mut self, _: &mut syn::TypeFnPtr) {}
    }
    let mut kind = kind.clone();
    Static.visit_type_mut(&mut kind);
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Access;
    use quote::quote;

    fn owned(kind: &str) -> String {
        let kind = syn::parse_str(kind).expect("a type");
        let parameter = Parameter { name: "x".into(), kind, access: Access::Read };
        let owned = super::owned(&parameter, Backend::Cuda, &parse_quote!(k));
        quote!(#owned).to_string().replace(' ', "")
    }

    #[test]
    fn a_parameter_is_lent_from_what_owns_it() {
        assert_eq!(owned("&[f32]"), "k::Vec<f32>");
        assert_eq!(owned("&mut [T]"), "k::Vec<T>");
        assert_eq!(owned("&str"), "k::String");
        assert_eq!(owned("&DeviceSlice<f16>"), "k::Vec<f16>");
        assert_eq!(owned("&'a Matrix<'a>"), "Matrix<'static>");
        assert_eq!(owned("f32"), "f32");
        assert_eq!(owned("fn(&f32) -> f32"), "fn(&f32)->f32");
        assert_eq!(owned("MatrixRef<'_>"), "<MatrixRef<'static>ask::Lent>::Owner");
        assert_eq!(owned("Option<&[f32]>"), "<Option<&'static[f32]>ask::Lent>::Owner");
    }
}
