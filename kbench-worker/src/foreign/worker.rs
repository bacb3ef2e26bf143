//! A foreign worker, as a worker of ours sees it: started when it is needed, and asked one thing at a time.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::message::{Answer, Ask, Finish, Target};
use super::partner::{Partner, Server, Trouble};
use super::{Announcement, FOREIGN_PROTOCOL, ForeignProgram, Place};
use crate::kernel::Fault;

/// Characters of what a program says that it is made of.
const LONGEST_ABOUT: usize = 1000;

/// A program that implements variants, and its process if it has one.
pub struct ForeignWorker {
    program: ForeignProgram,
    /// The device that its variants run on, and whether all devices are left alone.
    device: (usize, bool),
    /// How long it may take to begin.
    patience: Duration,
    place: Place,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    partner: Option<Partner>,
    /// Who forks its processes.
    server: Option<Server>,
    /// Whether it is ready.
    has_begun: bool,
    /// Why it cannot be had.
    unavailable: Option<String>,
    /// How often it was started: data that was handed to a former process is gone.
    starts: u64,
    /// Device code that it is to have, and whether it has it.
    instruments: Option<String>,
    is_equipped: bool,
    /// The number of the next data.
    next: u64,
    /// Data that nobody needs any more.
    released: Vec<u64>,
    /// Kernels and variants that the process has called.
    served: Vec<(String, String)>,
}

impl ForeignWorker {
    /// A program that is started when it is needed, for a device by its number, unless all of them are left alone.
    pub fn new(program: ForeignProgram, device: (usize, bool), patience: Duration) -> Self {
        ForeignWorker { program, device, patience, place: Place::Within, state: Mutex::default() }
    }

    /// A program that is asked what it implements, and may fork processes for others as long as this lives.
    pub fn announcing(program: ForeignProgram, device: (usize, bool), patience: Duration) -> Self {
        ForeignWorker { place: Place::Apart, ..ForeignWorker::new(program, device, patience) }
    }

    /// A program whose processes are forked by one that this process has a descriptor of, if it has one.
    pub(crate) fn forked_by(self, server: Option<i32>) -> Self {
        self.state().server = server.and_then(Server::handed_down);
        self
    }

    /// The process that forks others, if there is one.
    pub fn process(&self) -> Option<u32> {
        self.state().partner.as_ref()?.leader()
    }

    /// Starts it and asks what it implements. One that can be forked goes on; any other ends.
    pub fn announcement(&self) -> Announcement {
        let (mut about, mut variants) = (None, Vec::new());
        let mut state = self.state();
        let answer =
            self.ask_ready(&mut state, &Ask::Announce, Some(self.patience), &mut |answer| {
                match answer {
                    Answer::About { text } => {
                        about = Some(text.chars().take(LONGEST_ABOUT).collect())
                    }
                    Answer::Variant(variant) => variants.push(variant),
                    _ => {}
                }
            });
        let forks = matches!(answer, Ok(Answer::Done(Finish { forks: true, .. })));
        let is_done = |answer| done(answer, &Ask::Announce).map_err(|why| self.fault(why));
        let unavailable = answer.and_then(is_done).err().map(|why| why.to_string());
        if unavailable.is_some() {
            variants.clear();
        }
        if !forks {
            state.partner = None;
        }
        let server = state.partner.as_ref().map(Partner::descriptor);
        Announcement { program: self.program.clone(), about, variants, unavailable, server }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.program.name
    }

    /// Starts the process if there is none, and does not wait for it.
    pub fn summon(&self) {
        let _ = self.start(&mut self.state());
    }

    /// Waits until it is ready. Whoever needs one that cannot be had is told then.
    pub(super) fn await_ready(&self) {
        let _ = self.begin(&mut self.state());
    }

    /// Device code that it is to have.
    pub(super) fn equip(&self, instruments: &str) {
        let mut state = self.state();
        if state.instruments.as_deref() != Some(instruments) {
            (state.instruments, state.is_equipped) = (Some(instruments.to_owned()), false);
        }
    }

    /// A number for data, and how often the process was started.
    pub(super) fn next_data(&self) -> (u64, u64) {
        let mut state = self.state();
        state.next += 1;
        (state.next, state.starts)
    }

    /// Whether data that was handed over is still there.
    pub(super) fn has(&self, starts: u64) -> bool {
        let state = self.state();
        state.partner.is_some() && state.starts == starts
    }

    /// Some data is not needed any more.
    pub(super) fn release(&self, data: u64, starts: u64) {
        let mut state = self.state();
        if state.starts == starts {
            state.released.push(data);
        }
    }

    /// Asks for something; a process that goes astray is ended.
    pub(super) fn ask(&self, ask: &Ask<'_>) -> Result<Answer, Fault> {
        let mut state = self.state();
        if let Ask::Call(Target { of, variant, .. }) = ask {
            let called = ((*of).to_owned(), (*variant).to_owned());
            if !state.served.contains(&called) {
                state.served.push(called);
            }
        }
        if let (Some(instruments), false, true) =
            (state.instruments.clone(), state.is_equipped, matches!(ask, Ask::Sample(_)))
        {
            let equip = Ask::Equip { instruments: &instruments };
            let answer = self.ask_ready(&mut state, &equip, None, &mut |_| {})?;
            done(answer, &equip).map_err(|why| self.fault(why))?;
            state.is_equipped = true;
        }
        match self.ask_ready(&mut state, ask, None, &mut |_| {})? {
            Answer::Failed { failure, ends } => {
                if ends {
                    state.partner = None;
                    return Err(Fault::Foreign { text: failure, ends });
                }
                Err(Fault::Foreign { text: failure, ends: false })
            }
            Answer::Declined { reason } => Err(Fault::Declined(reason)),
            answer => Ok(answer),
        }
    }

    /// Gives data back that nobody needs any more; a process that does not survive it is started again by whoever needs it.
    pub(super) fn give_back(&self) {
        let mut state = self.state();
        for data in std::mem::take(&mut state.released) {
            if state.partner.is_some() {
                let _ = self.ask_ready(&mut state, &Ask::Release { data }, None, &mut |_| {});
            }
        }
    }

    /// Whether others were called in the same process before.
    pub(super) fn has_served_others(&self, of: &str, variant: &str) -> bool {
        self.state()
            .served
            .iter()
            .any(|(other, name)| (other.as_str(), name.as_str()) != (of, variant))
    }

    /// A time that cannot be: the process is not to be trusted any more.
    pub(super) fn liar(&self, nanoseconds: f64, waited: Duration) -> Fault {
        self.state().partner = None;
        let (told, waited) = (nanoseconds / 1e9, waited.as_secs_f64());
        let name = self.name();
        let text = format!(
            "its worker `{name}` says that calls took {told:.3} s, and was waited for for {waited:.3} s"
        );
        Fault::Foreign { text, ends: true }
    }

    /// An answer that is none of those to what was asked: the process is not to be trusted any more.
    pub(super) fn astray(&self, ask: &Ask<'_>, answer: &Answer) -> Fault {
        self.state().partner = None;
        self.fault(unexpected(ask, answer))
    }

    fn fault(&self, why: Trouble) -> Fault {
        Fault::Foreign { text: format!("its worker `{}` {why}", self.name()), ends: true }
    }

    fn start(&self, state: &mut State) -> Result<(), Fault> {
        if let Some(why) = &state.unavailable {
            return Err(Fault::Foreign { text: why.clone(), ends: false });
        }
        if state.partner.is_none() {
            let forked = state.server.as_ref().and_then(|server| Partner::fork(server).ok());
            let started = match forked {
                Some(forked) => Ok(forked),
                None => {
                    // One that did not fork once is not waited for again.
                    state.server = None;
                    Partner::start(&self.program, self.device.1, self.place)
                }
            };
            state.partner = Some(started.map_err(|why| self.give_up(state, &why))?);
            (state.has_begun, state.is_equipped) = (false, false);
            state.starts += 1;
            state.released.clear();
            state.served.clear();
        }
        Ok(())
    }

    /// Who cannot even begin is not started again.
    fn give_up(&self, state: &mut State, why: &Trouble) -> Fault {
        let text = format!("its worker `{}` {why}", self.name());
        state.partner = None;
        state.unavailable = Some(text.clone());
        Fault::Foreign { text, ends: false }
    }

    /// Starts it, and waits until it is ready.
    fn begin<'s>(&self, state: &'s mut State) -> Result<&'s mut Partner, Fault> {
        self.start(state)?;
        if !state.has_begun
            && let Some(partner) = &mut state.partner
        {
            let (ordinal, off) = self.device;
            let begin = Ask::Begin { protocol: FOREIGN_PROTOCOL, ordinal, off };
            let begun = partner.ask(&begin, Some(self.patience), &mut |_| {});
            if let Err(why) = begun.and_then(|answer| done(answer, &begin)) {
                return Err(self.give_up(state, &why));
            }
            state.has_begun = true;
        }
        match &mut state.partner {
            Some(partner) => Ok(partner),
            None => unreachable!("it was just started"),
        }
    }

    /// Asks when it is ready.
    fn ask_ready(
        &self,
        state: &mut State,
        ask: &Ask<'_>,
        patience: Option<Duration>,
        hear: &mut dyn FnMut(Answer),
    ) -> Result<Answer, Fault> {
        let partner = self.begin(state)?;
        partner.ask(ask, patience, hear).map_err(|why| {
            state.partner = None;
            self.fault(why)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What an answer means to something that is either done or not.
fn done(answer: Answer, ask: &Ask<'_>) -> Result<(), Trouble> {
    match answer {
        Answer::Done(_) => Ok(()),
        answer => Err(unexpected(ask, &answer)),
    }
}

fn unexpected(ask: &Ask<'_>, answer: &Answer) -> Trouble {
    match answer {
        Answer::Failed { failure, .. } => {
            Trouble::Failed { asked: ask.name(), failure: failure.clone() }
        }
        Answer::Declined { reason } => {
            Trouble::Failed { asked: ask.name(), failure: reason.clone() }
        }
        other => {
            Trouble::Nonsense { asked: ask.name(), line: other.name().to_owned(), error: None }
        }
    }
}
