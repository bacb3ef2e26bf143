//! Signals: Fourier transforms, convolutions, and the cells of recurrent networks.

pub mod fft;
mod vector;
