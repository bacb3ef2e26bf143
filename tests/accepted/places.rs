//! Functions may stand anywhere, and `of` finds a kernel wherever a path leads to it.
#![deny(warnings)]

pub mod outer {
    pub mod inner {
        use kbench::kernel_bench;

        #[kernel_bench(sizes = [4])]
        pub fn sum(x: &[f32]) -> f32 {
            x.iter().sum()
        }

        #[kernel_bench(of = self::sum)]
        pub(crate) fn restricted(x: &[f32]) -> f32 {
            x.iter().sum()
        }
    }
    pub use inner::sum as total;
}

/// A module of the kernel's name.
pub mod largest {
    use kbench::kernel_bench;

    #[kernel_bench(sizes = [4], marker = Largest)]
    pub fn largest(x: &[f32]) -> f32 {
        x.iter().copied().fold(f32::MIN, f32::max)
    }

    #[kernel_bench(of = Largest)]
    pub fn largest_again(x: &[f32]) -> f32 {
        largest(x)
    }
}
pub use largest::largest;

#[kernel_bench(of = largest::Largest)]
fn largest_elsewhere(x: &[f32]) -> f32 {
    largest(x)
}

use kbench::kernel_bench;
use outer::total;

#[kernel_bench(of = total)]
fn renamed(x: &[f32]) -> f32 {
    total(x)
}

#[kernel_bench(of = crate::outer::inner::sum)]
fn absolute(x: &[f32]) -> f32 {
    total(x)
}

fn main() {
    #[kernel_bench(sizes = [4])]
    fn local(x: &[f32]) -> f32 {
        x.iter().sum()
    }

    #[kernel_bench(of = local)]
    fn local_variant(x: &[f32]) -> f32 {
        local(x)
    }
}
