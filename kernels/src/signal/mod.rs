//! Signals: Fourier transforms, convolutions, and the cells of recurrent networks.

pub mod convolution;
pub mod fft;
mod parts;
pub mod recurrent;
mod vector;
