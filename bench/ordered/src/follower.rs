//! Entries over loopback TCP to a follower that appends them in order: the two ways of replicating.
//!
//! *Unordered*: every client thread has a connection and sends its own entry. The follower's thread of that connection
//! puts it in order and answers. *Ordered*: entries go in order over one connection. A dispatcher thread takes them
//! from a queue; or, without one, the thread that fills the gap sends for all. A client waits for the answer to its
//! entry.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use awoke_wake::clock::Deadline;
use awoke_wake::{Sequencer, Sink};

use crate::cell::{Measured, measure};
use crate::references::{OneCondition, Striped};

const ENTRY_BYTES: usize = 128;
const CAPACITY: usize = 65_536;

type Entry = [u8; ENTRY_BYTES];

pub fn run(seconds: f64, producers: &[u64]) {
    for &producers in producers {
        unordered("unordered, one condition", producers, seconds, || {
            let log = OneCondition::new();
            move |index| log.append(index)
        });
        unordered("unordered, striped", producers, seconds, || {
            let log = Striped::new(1_000);
            move |index| log.append(index)
        });
        unordered("unordered, awoke waits", producers, seconds, || {
            let log = Sequencer::new(CAPACITY, |_, ()| ());
            move |index| {
                let permit = log.take(index, &Deadline::NEVER).expect("open");
                permit.append((), &Deadline::NEVER).expect("open");
            }
        });
        unordered("unordered, awoke deposits", producers, seconds, || {
            let log = Sequencer::new(CAPACITY, |_, ()| ());
            move |index| {
                log.take(index, &Deadline::NEVER).expect("open").claim_run(());
            }
        });
        dispatcher(producers, seconds);
        combining(producers, seconds);
    }
}

fn report(way: &str, producers: u64, measured: &Measured) {
    let Measured { per_s, switches_per_append, cpu_us_per_append } = measured;
    println!(
        "{{\"way\": \"{way}\", \"producers\": {producers}, \"per_s\": {per_s:.1}, \
         \"switches_per_append\": {switches_per_append:.4}, \"cpu_us_per_append\": {cpu_us_per_append:.3}}}"
    );
}

fn entry_of(index: u64) -> Entry {
    let mut entry = [0; ENTRY_BYTES];
    entry[..8].copy_from_slice(&index.to_le_bytes());
    entry
}

fn index_of(entry: &[u8]) -> u64 {
    u64::from_le_bytes(entry[..8].try_into().expect("eight bytes"))
}

fn connect(address: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the follower listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Every client thread sends its own entries.
fn unordered<A: Fn(u64) + Send + Sync + 'static>(way: &str, producers: u64, seconds: f64, make: impl FnOnce() -> A) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let append = Arc::new(make());
    let follower = std::thread::spawn(move || {
        let serving: Vec<_> = (0..producers)
            .map(|_| {
                let (mut stream, _) = listener.accept().expect("a client");
                stream.set_nodelay(true).expect("a socket");
                let append = Arc::clone(&append);
                let serve = move || {
                    let mut entry = [0; ENTRY_BYTES];
                    while stream.read_exact(&mut entry).is_ok() {
                        append(index_of(&entry));
                        if stream.write_all(&[1]).is_err() {
                            break;
                        }
                    }
                };
                std::thread::Builder::new().stack_size(64 << 10).spawn(serve).expect("a thread")
            })
            .collect();
        serving.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
    let free: Arc<Mutex<Vec<TcpStream>>> = Arc::new(Mutex::new((0..producers).map(|_| connect(address)).collect()));
    let send = Arc::new({
        let free = Arc::clone(&free);
        move |index| {
            thread_local!(static MINE: std::cell::RefCell<Option<TcpStream>> = const { std::cell::RefCell::new(None) });
            MINE.with_borrow_mut(|mine| {
                let stream = mine.get_or_insert_with(|| free.lock().expect("no panic").pop().expect("one each"));
                stream.write_all(&entry_of(index)).expect("the follower reads");
                stream.read_exact(&mut [0]).expect("the follower answers");
            });
        }
    });
    let measured = measure(producers, 0, seconds, &send);
    drop(free);
    follower.join().expect("no panic");
    report(way, producers, &measured);
}

/// A follower of one connection, which answers with the number of entries it has.
fn ordered_follower(listener: TcpListener) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the leader");
        stream.set_nodelay(true).expect("a socket");
        let (mut buffer, mut held, mut count) = (vec![0; 1 << 18], 0, 0u64);
        loop {
            let read = stream.read(&mut buffer[held..]).unwrap_or(0);
            if read == 0 {
                return;
            }
            held += read;
            let whole = held / ENTRY_BYTES;
            for place in 0..whole {
                assert_eq!(index_of(&buffer[place * ENTRY_BYTES..]), count, "in order");
                count += 1;
            }
            buffer.copy_within(whole * ENTRY_BYTES..held, 0);
            held -= whole * ENTRY_BYTES;
            if whole > 0 && stream.write_all(&count.to_le_bytes()).is_err() {
                return;
            }
        }
    })
}

/// Reads the number of entries that the follower has, and reports it.
fn on_answers(mut stream: TcpStream, tell: impl Fn(u64) + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut count = [0; 8];
        while stream.read_exact(&mut count).is_ok() {
            tell(u64::from_le_bytes(count));
        }
    })
}

#[derive(Default)]
struct Queue {
    state: Mutex<(VecDeque<Entry>, u64, bool)>,
    came: Condvar,
}

/// A queue, a thread that sends its entries, and one condition for all threads that wait for an answer.
fn dispatcher(producers: u64, seconds: f64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut stream = connect(listener.local_addr().expect("bound"));
    let follower = ordered_follower(listener);
    let answered: Arc<(Mutex<u64>, Condvar)> = Arc::default();
    let answers = on_answers(stream.try_clone().expect("a socket"), {
        let answered = Arc::clone(&answered);
        move |count| {
            *answered.0.lock().expect("no panic") = count;
            answered.1.notify_all();
        }
    });
    let queue: Arc<Queue> = Arc::default();
    let sending = std::thread::spawn({
        let queue = Arc::clone(&queue);
        move || {
            loop {
                let mut state = queue.state.lock().expect("no panic");
                while state.0.is_empty() && !state.2 {
                    state = queue.came.wait(state).expect("no panic");
                }
                let batch: Vec<u8> = state.0.drain(..).flatten().collect();
                let is_over = state.2;
                drop(state);
                stream.write_all(&batch).expect("the follower reads");
                if is_over {
                    stream.shutdown(std::net::Shutdown::Both).expect("open");
                    return;
                }
            }
        }
    });
    let append = Arc::new({
        let (queue, answered) = (Arc::clone(&queue), Arc::clone(&answered));
        move |_| {
            let mut state = queue.state.lock().expect("no panic");
            // The index is taken together with the place in the queue, so the queue is in order.
            let index = state.1;
            state.1 += 1;
            state.0.push_back(entry_of(index));
            drop(state);
            queue.came.notify_one();
            let mut count = answered.0.lock().expect("no panic");
            while *count <= index {
                count = answered.1.wait(count).expect("no panic");
            }
        }
    });
    let measured = measure(producers, 0, seconds, &append);
    queue.state.lock().expect("no panic").2 = true;
    queue.came.notify_one();
    sending.join().expect("no panic");
    follower.join().expect("no panic");
    answers.join().expect("no panic");
    report("ordered, dispatcher", producers, &measured);
}

/// Sends a run in one call.
struct Connection {
    stream: TcpStream,
    run: Vec<u8>,
}

impl Sink<Entry> for Connection {
    fn append(&mut self, _index: u64, entry: Entry) {
        self.run.extend_from_slice(&entry);
    }

    fn flush(&mut self) -> bool {
        let sent = self.stream.write_all(&self.run).is_ok();
        self.run.clear();
        sent
    }
}

/// The thread that fills the gap sends for all. An answer wakes only the clients whose entries it confirms.
fn combining(producers: u64, seconds: f64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let stream = connect(listener.local_addr().expect("bound"));
    let follower = ordered_follower(listener);
    let answered = Arc::new(Sequencer::new(CAPACITY, |_, ()| ()));
    let answers = on_answers(stream.try_clone().expect("a socket"), {
        let answered = Arc::clone(&answered);
        move |count| {
            for index in answered.appended()..count {
                answered.take(index, &Deadline::NEVER).expect("open").claim_run(());
            }
        }
    });
    let closing = stream.try_clone().expect("a socket");
    let log = Arc::new(Sequencer::new(CAPACITY, Connection { stream, run: Vec::new() }));
    let append = Arc::new({
        let (log, answered) = (Arc::clone(&log), Arc::clone(&answered));
        move |index| {
            log.take(index, &Deadline::NEVER).expect("open").claim_run(entry_of(index));
            answered.wait_for(index + 1, &Deadline::NEVER).expect("open");
        }
    });
    let measured = measure(producers, 0, seconds, &append);
    closing.shutdown(std::net::Shutdown::Both).expect("open");
    follower.join().expect("no panic");
    answers.join().expect("no panic");
    report("ordered, awoke", producers, &measured);
}
