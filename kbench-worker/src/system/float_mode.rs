//! How this thread's processor rounds, and what it does with numbers below the smallest normal one.
//!
//! Code that changes this and leaves it so changes the results of everything that the thread runs afterwards.
#![allow(unsafe_code)] // instructions of the processor

/// The setting of this thread, without the flags that operations raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FloatMode(u64);

impl FloatMode {
    /// The setting now; always the same where it cannot be read.
    pub(crate) fn now() -> Self {
        FloatMode(control() & !flags())
    }

    /// Sets it again; gives whether it was another one.
    pub(crate) fn restore(self) -> bool {
        let now = control();
        let is_other = now & !flags() != self.0;
        if is_other {
            set_control(self.0 | (now & flags()));
        }
        is_other
    }
}

/// The bits that operations raise.
fn flags() -> u64 {
    if cfg!(target_arch = "x86_64") { 0x3f } else { 0 }
}

#[cfg(target_arch = "x86_64")]
fn control() -> u64 {
    let mut control = 0u32;
    // SAFETY: the instruction writes four bytes to the address of `control`, and nothing else.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack, preserves_flags));
    }
    u64::from(control)
}

#[cfg(target_arch = "x86_64")]
fn set_control(control: u64) {
    let control = control as u32;
    // SAFETY: the instruction reads four bytes from the address of `control`, which were read by `stmxcsr` with other flags:
    // no reserved bit is set.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack, preserves_flags));
    }
}

#[cfg(target_arch = "aarch64")]
fn control() -> u64 {
    let control: u64;
    // SAFETY: the instruction reads a register that programs may read.
    unsafe {
        std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nostack, preserves_flags));
    }
    control
}

#[cfg(target_arch = "aarch64")]
fn set_control(control: u64) {
    // SAFETY: the instruction sets a register that programs may set, to what was read from it.
    unsafe {
        std::arch::asm!("msr fpcr, {}", in(reg) control, options(nostack, preserves_flags));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn control() -> u64 {
    0
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn set_control(_: u64) {}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_changed_setting_is_noticed_and_undone_and_raised_flags_are_no_change() {
        let before = FloatMode::now();
        std::hint::black_box(std::hint::black_box(1.0f32) / std::hint::black_box(3.0));
        assert!(!before.restore());
        let flush_to_zero = 1 << 15;
        set_control(control() | flush_to_zero);
        assert!(before.restore());
        assert_eq!(FloatMode::now(), before);
    }
}
