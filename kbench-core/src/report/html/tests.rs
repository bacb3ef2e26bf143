//! What the page promises, whatever the report.
