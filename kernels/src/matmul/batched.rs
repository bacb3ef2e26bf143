//! Many small matrix products at once.
