//! Order, duplicates, and data of what is registered.

use super::fixtures::{Double, base, right, variant_of_double};
use super::*;
use crate::kernel::{Caller, Kernel};
use crate::value::Operand;

fn names(registry: &Registry) -> Vec<&'static str> {
    registry.kernels.iter().flat_map(|k| k.variants.iter().map(|v| v.name)).collect()
}

#[test]
fn order_is_that_of_the_source_whatever_the_linker_did() {
    let entries = [variant_of_double("c", 30, right), base(), variant_of_double("b", 20, right)];
    let forward = Registry::of(entries).expect("fine");
    let backward = Registry::of(entries.into_iter().rev()).expect("fine");
    assert_eq!(names(&forward), ["double", "b", "c"]);
    assert_eq!(names(&forward), names(&backward));
}

#[test]
fn an_empty_registry_explains_linking() {
    let error = Registry::of([]).err().expect("an error").to_string();
    assert!(error.contains("use my_kernels as _;"), "{error}");
}

#[test]
fn two_variants_of_one_name_are_an_error_that_names_both_places() {
    let error = Registry::of([
        base(),
        variant_of_double("twin", 7, right),
        variant_of_double("twin", 9, right),
    ])
    .err()
    .expect("an error")
    .to_string();
    assert!(error.contains("demo::double/twin/f32"), "{error}");
    assert!(error.contains("demo.rs:7:1") && error.contains("demo.rs:9:1"), "{error}");
}

#[test]
fn a_reset_keeps_the_memory_of_the_outputs() {
    let mut data = Double::ENTRY.definition.data(&[1 << 20], 1);
    let mut addresses = Vec::new();
    for _ in 0..3 {
        data.reset();
        right().call(data.as_mut(), &Caller::Outside).expect("no fault");
        addresses.push(data.output_addresses());
    }
    assert!(addresses.windows(2).all(|pair| pair[0] == pair[1]), "{addresses:?}");
}

#[test]
fn an_operand_is_seen_through_its_data() {
    let data = Double::ENTRY.definition.data(&[4], 1);
    assert_eq!((data.read_bytes(), data.written_bytes(), data.overlaps()), (16, 16, false));
    assert!(Vec::<f32>::new().failure().is_none());
}
