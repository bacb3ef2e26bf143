//! Requests and replies from JSON.
//!
//! A word says which message a line is; the rest is read as that message.

use serde::Deserialize;
use serde::de::Error;

use super::protocol::{CheckedReply, OverdueReply, Reply, Request, VisitedBlock};
use crate::json::{parse, read, word};

#[derive(Deserialize)]
struct Inspection {
    processor: Option<bool>,
}

impl Request {
    /// The request of one line.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let line = parse(text)?;
        Ok(match word(&line, "request")? {
            "prepare" => Request::Prepare(read(&line)?),
            "measure" => Request::Measure(read(&line)?),
            "recheck" => Request::Recheck(read(&line)?),
            "inspect" => {
                let Inspection { processor } = read(&line)?;
                Request::Inspect { processor: processor.unwrap_or(true) }
            }
            "check" => Request::Check(read(&line)?),
            "profile" => Request::Profile,
            "ceilings" => Request::Ceilings(read(&line)?),
            "enlist" => Request::Enlist(read(&line)?),
            other => {
                return Err(Error::custom(format_args!("there is no request `{other}`")));
            }
        })
    }
}

#[derive(Deserialize)]
struct Compiling {
    done: usize,
    total: usize,
}

#[derive(Deserialize)]
struct Refusal {
    reason: String,
}

impl Reply {
    /// The reply of one line.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        let line = parse(text)?;
        Ok(match word(&line, "reply")? {
            "calling" => Reply::Calling(read(&line)?),
            "called" => Reply::Called,
            "trying" => Reply::Trying(read(&line)?),
            "overdue" => Reply::Overdue(OverdueReply { place: read(&line)?, ..read(&line)? }),
            "prepared" => Reply::Prepared(read(&line)?),
            "block" => Reply::Block(VisitedBlock { block: read(&line)?, ..read(&line)? }),
            "failed" => Reply::Failed(read(&line)?),
            "declined" => Reply::Declined(read(&line)?),
            "inspected" => Reply::Inspected(read(&line)?),
            "checked" => Reply::Checked(CheckedReply { place: read(&line)?, ..read(&line)? }),
            "compiling" => {
                let Compiling { done, total } = read(&line)?;
                Reply::Compiling { done, total }
            }
            "ceilings" => Reply::Ceilings(read(&line)?),
            "done" => Reply::Done(read(&line)?),
            "refused" => {
                let Refusal { reason } = read(&line)?;
                Reply::Refused { reason }
            }
            other => return Err(Error::custom(format_args!("there is no reply `{other}`"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_nobody_knows_is_named() {
        let error = Request::from_json(r#"{"request":"dance"}"#).expect_err("no request");
        assert_eq!(error.to_string(), "there is no request `dance`");
        let error = Reply::from_json(r#"{"reply":"danced"}"#).expect_err("no reply");
        assert_eq!(error.to_string(), "there is no reply `danced`");
    }

    #[test]
    fn the_word_may_come_last_and_parts_are_found_among_the_fields() {
        let text = r#"{"row":2,"seconds":1.5,"cell":1,"more":[{}],"reply":"overdue"}"#;
        let Ok(Reply::Overdue(overdue)) = Reply::from_json(text) else { panic!("no reply") };
        assert_eq!((overdue.place.cell, overdue.place.row), (1, Some(2)));
        let again = serde_json::to_value(Reply::Overdue(overdue)).expect("JSON");
        let told = serde_json::json!({"reply": "overdue", "cell": 1, "row": 2, "seconds": 1.5});
        assert_eq!(again, told);
    }
}
