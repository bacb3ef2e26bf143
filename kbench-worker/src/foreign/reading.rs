//! Answers from JSON: the word that says which answer a line is, then the rest as that answer.

use serde::Deserialize;
use serde::de::Error;

use super::message::Answer;
use crate::json::{parse, read, word};

#[derive(Deserialize)]
struct About {
    text: String,
}

#[derive(Deserialize)]
struct Failure {
    failure: String,
    #[serde(default)]
    ends: bool,
}

#[derive(Deserialize)]
struct Reason {
    reason: String,
}

impl Answer {
    /// The answer of one line.
    pub(super) fn from_bytes(line: &[u8]) -> serde_json::Result<Self> {
        let line = parse(std::str::from_utf8(line).map_err(Error::custom)?)?;
        Ok(match word(&line, "reply")? {
            "about" => {
                let About { text } = read(&line)?;
                Answer::About { text }
            }
            "variant" => Answer::Variant(read(&line)?),
            "called" => Answer::Called(read(&line)?),
            "sampled" => Answer::Sampled(read(&line)?),
            "done" => Answer::Done(read(&line)?),
            "failed" => {
                let Failure { failure, ends } = read(&line)?;
                Answer::Failed { failure, ends }
            }
            "declined" => {
                let Reason { reason } = read(&line)?;
                Answer::Declined { reason }
            }
            other => return Err(Error::custom(format_args!("there is no reply `{other}`"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_nobody_knows_is_named() {
        let error = Answer::from_bytes(br#"{"reply":"danced"}"#).expect_err("no answer");
        assert_eq!(error.to_string(), "there is no reply `danced`");
        let error = Answer::from_bytes(b"\xff").expect_err("no text");
        assert!(error.to_string().contains("utf-8"), "{error}");
    }
}
