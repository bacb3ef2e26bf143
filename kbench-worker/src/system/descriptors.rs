//! Descriptors that one process gives to another: to one that it starts, and through a socket.
#![cfg(unix)]
#![allow(unsafe_code)] // the standard library passes standard input, output and error, and nothing else

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Descriptors that one message carries.
const CARRIED: usize = 3;

/// Room for the header of such a message and its descriptors, in words of 8 bytes, as a header is aligned.
const ROOM: usize = 8;

/// Lets the process of a command have some descriptors of this process, by the same numbers. A number that is not open when the
/// process begins is left out; one that is another file's by then is that file.
pub(crate) fn hand_down(command: &mut Command, numbers: Vec<RawFd>) {
    // SAFETY: between fork and exec the process calls nothing but `fcntl`, which may be called there. It changes a flag of its own
    // copy of a descriptor, and closes none.
    unsafe {
        command.pre_exec(move || {
            for number in &numbers {
                libc::fcntl(*number, libc::F_SETFD, 0);
            }
            Ok(())
        });
    }
}

/// A socket that was handed down to this process. Processes that are started here do not get it.
pub(crate) fn handed_down(number: RawFd) -> io::Result<UnixStream> {
    // SAFETY: numbers in and out; a copy of a descriptor belongs to nothing else. That the number is that of a socket which is meant
    // for this process is what the process says that has started it.
    let copy = unsafe {
        match libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) {
            -1 => return Err(io::Error::last_os_error()),
            copy => OwnedFd::from_raw_fd(copy),
        }
    };
    // SAFETY: numbers in and out. The flag says what processes that are started here get, and concerns nothing that this one has.
    unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    let socket = UnixStream::from(copy);
    socket.peer_addr()?;
    Ok(socket)
}

/// Sends a message with copies of some descriptors.
pub(crate) fn send(
    socket: &UnixStream,
    message: &[u8],
    descriptors: [BorrowedFd<'_>; CARRIED],
) -> io::Result<()> {
    let numbers = descriptors.map(|descriptor| descriptor.as_raw_fd());
    loop {
        let sent = send_once(socket, message, &numbers);
        match usize::try_from(sent) {
            Ok(sent) if sent == message.len() => return Ok(()),
            Ok(_) => return Err(io::Error::from(ErrorKind::WriteZero)),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

fn send_once(socket: &UnixStream, message: &[u8], numbers: &[RawFd; CARRIED]) -> isize {
    let mut part =
        libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    let mut room = [0_u64; ROOM];
    let bytes = size_of_val(numbers);
    // SAFETY: the structure is plain numbers and pointers, so zeroes are one. It points to the message and to the room on this
    // stack, which is aligned, and larger than a header and the descriptors take; the system reads them and writes neither.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut part;
        header.msg_iovlen = 1;
        header.msg_control = room.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(bytes as u32) as _;
        let carried = libc::CMSG_FIRSTHDR(&header);
        (*carried).cmsg_level = libc::SOL_SOCKET;
        (*carried).cmsg_type = libc::SCM_RIGHTS;
        (*carried).cmsg_len = libc::CMSG_LEN(bytes as u32) as _;
        let place = libc::CMSG_DATA(carried);
        std::ptr::copy_nonoverlapping(numbers.as_ptr().cast::<u8>(), place, bytes);
        libc::sendmsg(socket.as_raw_fd(), &header, 0)
    }
}

/// A message and the descriptors that it carries; none at the end.
#[cfg(test)]
pub(crate) fn receive(socket: &UnixStream) -> Option<(Vec<u8>, [OwnedFd; CARRIED])> {
    let (mut message, mut room, mut numbers) = (vec![0; 4096], [u64::MAX; ROOM], [-1; CARRIED]);
    let mut part = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
    let bytes = size_of_val(&numbers);
    // SAFETY: as in `send_once`; the system writes no more than it is told that there is room for, and descriptors that it
    // gives belong to nothing else. What it has not written is no descriptor.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &mut part;
        header.msg_iovlen = 1;
        header.msg_control = room.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&room) as _;
        let received = libc::recvmsg(socket.as_raw_fd(), &mut header, 0);
        message.truncate(usize::try_from(received).ok().filter(|received| *received > 0)?);
        let carried = libc::CMSG_FIRSTHDR(&header);
        assert!(!carried.is_null(), "every message carries descriptors");
        assert_eq!((*carried).cmsg_type, libc::SCM_RIGHTS);
        let place = libc::CMSG_DATA(carried);
        std::ptr::copy_nonoverlapping(place, numbers.as_mut_ptr().cast::<u8>(), bytes);
        assert!(numbers.iter().all(|number| *number >= 0), "fewer than {CARRIED} descriptors");
        let own = |number| {
            libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC);
            OwnedFd::from_raw_fd(number)
        };
        Some((message, numbers.map(own)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use super::*;

    /// Whether the process of a command has a descriptor.
    #[cfg(target_os = "linux")]
    fn has(number: RawFd, prepare: impl FnOnce(&mut Command)) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("test -e /proc/$$/fd/{number}")]);
        prepare(&mut command);
        command.status().expect("a shell").success()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_has_the_descriptors_that_are_handed_down_and_no_others() {
        let (one, other) = UnixStream::pair().expect("a socket");
        let (one, other) = (one.as_raw_fd(), other.as_raw_fd());
        assert!(has(one, |command| hand_down(command, vec![one])));
        assert!(!has(other, |command| hand_down(command, vec![one, RawFd::MAX])));
        // A process that has got one does not pass it on.
        handed_down(one).expect("a socket");
        assert!(!has(one, |_| {}));
    }

    #[test]
    fn what_is_handed_down_is_a_socket() {
        let (mut ours, theirs) = UnixStream::pair().expect("a socket");
        let mut copy = handed_down(theirs.as_raw_fd()).expect("a socket");
        copy.write_all(b"x").expect("room");
        let mut byte = [0];
        ours.read_exact(&mut byte).expect("a byte");
        let (reader, _writer) = io::pipe().expect("a pipe");
        assert!(handed_down(reader.as_raw_fd()).is_err(), "a pipe is no socket");
        assert!(handed_down(RawFd::MAX).is_err(), "nothing is open there");
    }

    #[test]
    fn descriptors_go_through_a_socket_with_their_message() {
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let carried = [reader.as_fd(), writer.as_fd(), ours.as_fd()];
        send(&ours, b"hello\n", carried).expect("room");
        drop(writer);
        let (message, [_, writer, _]) = receive(&theirs).expect("a message");
        assert_eq!(message, b"hello\n");
        let mut writer = io::PipeWriter::from(writer);
        writer.write_all(b"through").expect("room");
        drop(writer);
        let mut told = String::new();
        reader.read_to_string(&mut told).expect("an end");
        assert_eq!(told, "through");
        drop(ours);
        assert!(receive(&theirs).is_none());
    }

    #[test]
    fn a_message_that_nothing_receives_is_an_error() {
        let (ours, theirs) = UnixStream::pair().expect("a socket");
        let descriptors = || [ours.as_fd(); CARRIED];
        send(&ours, b"hello\n", descriptors()).expect("room");
        drop(theirs);
        assert!(send(&ours, b"hello\n", descriptors()).is_err());
    }
}
