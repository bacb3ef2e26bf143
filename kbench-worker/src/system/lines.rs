//! Lines that come through a socket, as far as they are there.
#![cfg(unix)]

use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::net::UnixStream;

/// The reading end of a socket whose patience has a limit.
pub(crate) struct Lines {
    socket: BufReader<UnixStream>,
    /// The part of a line that is there.
    line: Vec<u8>,
}

/// What a moment of listening gave.
pub(crate) enum Heard {
    /// A line, or as much of it as is read of one.
    Line(Vec<u8>),
    /// More of a line, but not its end. Callers look at their deadline then: a line may never end.
    Part,
    /// Nothing.
    Nothing,
    /// Nobody is there any more; what was not finished is lost.
    End,
}

impl Lines {
    pub(crate) fn of(socket: UnixStream) -> Self {
        Lines { socket: BufReader::new(socket), line: Vec::new() }
    }

    /// The next line, of which no more than this many bytes are read.
    pub(crate) fn next(&mut self, longest: usize) -> Heard {
        let bytes = match self.socket.fill_buf() {
            Ok([]) => return Heard::End,
            Ok(bytes) => bytes,
            Err(error) if is_pause(error.kind()) => return Heard::Nothing,
            Err(_) => return Heard::End,
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        self.line.extend_from_slice(&bytes[..taken]);
        self.socket.consume(taken);
        match end.is_some() || self.line.len() > longest {
            true => Heard::Line(std::mem::take(&mut self.line)),
            false => Heard::Part,
        }
    }
}

/// Whether there is just nothing to read, or no room to write, now.
pub(crate) fn is_pause(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_is_heard_when_it_is_whole_and_not_without_end() {
        let (ours, mut theirs) = UnixStream::pair().expect("a socket");
        ours.set_read_timeout(Some(Duration::from_millis(5))).expect("a time");
        let mut lines = Lines::of(ours);
        let mut say = |text: &str| theirs.write_all(text.as_bytes()).expect("room");
        say("hel");
        assert!(matches!(lines.next(100), Heard::Part));
        assert!(matches!(lines.next(100), Heard::Nothing));
        say("lo\nwor");
        assert!(matches!(lines.next(100), Heard::Line(line) if line == b"hello\n"));
        assert!(matches!(lines.next(100), Heard::Part));
        say(&"x".repeat(200));
        assert!(matches!(lines.next(100), Heard::Line(line) if line.len() > 100));
        say("the end");
        drop(theirs);
        // What is there of the last line comes first.
        while matches!(lines.next(100), Heard::Part) {}
        assert!(matches!(lines.next(100), Heard::End));
    }
}
