//! The thread of the brokers: it owns their sockets and the cluster, and waits for a socket, a timer, or a call.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use awoke_wake::fork_guard::Birthplace;
use awoke_wake::{Error, OwnThread, Result};
use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::cluster::{Cluster, HOST, Moment, Outgoing};
use crate::connection::Connection;
use crate::faults::{self, Fault, Happened};
use crate::fetch;
use crate::requests::{self, Origin};
use crate::topics::is_topic_name;

const WAKER: Token = Token(0);
const BROKERS_MAX: usize = 100;

const WHAT: &str = "embedded cluster";

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::Invalid { reason })
}

fn system<T>(operation: &'static str, error: &io::Error) -> Result<T> {
    Err(Error::System { operation, detail: error.to_string() })
}

/// A function that another thread has run on the brokers' thread.
type Call = Box<dyn FnOnce(&mut Loop) + Send>;

/// Running brokers. They stop when it is dropped; in a forked child nothing happens then.
pub struct Server {
    bootstrap_servers: String,
    calls: Option<Sender<Call>>,
    waker: Waker,
    thread: Option<OwnThread>,
    birthplace: Birthplace,
}

impl Server {
    /// Starts that many brokers on free loopback ports. Does not wait for anything.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a count outside of 1 to 100, [`Error::System`] without a socket or thread to be had.
    pub fn start(brokers: i32) -> Result<Self> {
        let count = usize::try_from(brokers).ok().filter(|count| (1..=BROKERS_MAX).contains(count));
        let Some(count) = count else {
            return refuse(format!("an embedded cluster has 1 to 100 brokers, not {brokers}"));
        };
        Self::started(count).or_else(|error| system("start embedded brokers", &error))
    }

    fn started(count: usize) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let listeners = (0..count).map(|_| listen(0)).collect::<io::Result<Vec<_>>>()?;
        let ports =
            listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect::<io::Result<Vec<_>>>()?;
        let servers: Vec<String> = ports.iter().map(|port| format!("{HOST}:{port}")).collect();
        let (calls, called) = channel();
        let mut brokers = Loop::new(poll, listeners, Cluster::new(&ports, now()), called)?;
        let thread = OwnThread::start("awoke-brokers", "start embedded brokers", move || brokers.run())
            .map_err(io::Error::other)?;
        Ok(Self {
            bootstrap_servers: servers.join(","),
            calls: Some(calls),
            waker,
            thread: Some(thread),
            birthplace: Birthplace::here(),
        })
    }

    /// Where the brokers listen, as `bootstrap.servers` takes it.
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// Creates a topic; one that exists stays as it is. Blocks until the brokers know it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name or a number that Kafka refuses; [`Error::Forked`] in a forked child.
    pub fn create_topic(&self, name: &str, partitions: i32, replicas: i32) -> Result<()> {
        if !is_topic_name(name) {
            return refuse(format!("{name:?} is no name of a topic"));
        }
        let name = name.to_owned();
        let refused_by = self.call(move |brokers| {
            let cluster = &mut brokers.cluster;
            let known = cluster.brokers.len();
            let partitions = usize::try_from(partitions).ok().filter(|count| *count > 0);
            let replicas = usize::try_from(replicas).ok().filter(|count| (1..=known).contains(count));
            let (Some(partitions), Some(replicas)) = (partitions, replicas) else { return Some(known) };
            if cluster.topics.get(&name).is_none() {
                let replicas = cluster.spread(0, partitions, replicas);
                cluster.topics.create(&name, replicas, std::collections::BTreeMap::new());
            }
            None
        })?;
        match refused_by {
            None => Ok(()),
            Some(known) => refuse(format!(
                "a topic of {known} embedded brokers has at least 1 partition and 1 to {known} replicas, not \
                 {partitions} and {replicas}"
            )),
        }
    }

    /// Makes a broker refuse connections, or accept them again at its port. Blocks until that is done.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a broker that does not exist, [`Error::System`] for a port that another process has
    /// taken.
    fn set_broker_up(&self, broker: i32, is_up: bool) -> Result<()> {
        let set = self.call(move |brokers| brokers.set_up(broker, is_up))?;
        match set {
            Err(error) if error.kind() == io::ErrorKind::NotFound => refuse(format!("there is no broker {broker}")),
            set => set.or_else(|error| system("start the embedded broker again", &error)),
        }
    }

    /// Makes a broker answer this much later, in ms.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a broker that does not exist.
    fn set_round_trip(&self, broker: i32, round_trip_ms: i32) -> Result<()> {
        let found = self.call(move |brokers| {
            let found = brokers.cluster.brokers.iter_mut().find(|each| each.id == broker);
            found.map(|found| found.round_trip = std::time::Duration::from_millis(round_trip_ms.max(0) as u64))
        })?;
        found.map_or_else(|| refuse(format!("there is no broker {broker}")), Ok)
    }

    /// Has a fault happen, and returns what completes when it has.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a broker, an error, a topic, a partition or a group that does not exist;
    /// [`Error::System`] for a port that another process has taken.
    pub fn inject(&self, fault: Fault) -> Result<Happened> {
        match fault {
            Fault::SetBrokerUp(broker, is_up) => self.set_broker_up(broker, is_up).map(|()| faults::happened()),
            Fault::SetRoundTrip(broker, ms) => self.set_round_trip(broker, ms).map(|()| faults::happened()),
            fault => self.inject_into_cluster(fault),
        }
    }

    fn inject_into_cluster(&self, fault: Fault) -> Result<Happened> {
        self.call(move |brokers| faults::inject(&mut brokers.cluster, fault))?.or_else(refuse)
    }

    /// Has a function run on the brokers' thread, and blocks until it has.
    fn call<T: Send + 'static>(&self, function: impl FnOnce(&mut Loop) -> T + Send + 'static) -> Result<T> {
        self.birthplace.check(WHAT)?;
        let (done, result) = channel();
        let call: Call = Box::new(move |brokers| drop(done.send(function(brokers))));
        let sent = self.calls.as_ref().is_some_and(|calls| calls.send(call).is_ok()) && self.waker.wake().is_ok();
        // The thread drops the call unanswered only when it ends.
        sent.then(|| result.recv().ok()).flatten().ok_or(Error::Closed { what: WHAT })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.birthplace.is_foreign() {
            return; // The waker would wake the parent's thread.
        }
        self.calls = None;
        let woken = self.waker.wake();
        if let Some(thread) = self.thread.take().filter(|_| woken.is_ok()) {
            thread.join();
        }
    }
}

/// All that the thread owns.
struct Loop {
    poll: Poll,
    calls: Receiver<Call>,
    cluster: Cluster,
    /// By broker; a broker that is down has none.
    listeners: Vec<Option<TcpListener>>,
    connections: HashMap<Token, Connection>,
    /// The connections of the requests that are not answered.
    asked: HashMap<u64, Token>,
    tokens: usize,
    tickets: u64,
}

impl Loop {
    fn new(poll: Poll, mut listeners: Vec<TcpListener>, cluster: Cluster, calls: Receiver<Call>) -> io::Result<Self> {
        for (index, listener) in listeners.iter_mut().enumerate() {
            poll.registry().register(listener, Token(index + 1), Interest::READABLE)?;
        }
        Ok(Self {
            poll,
            calls,
            cluster,
            tokens: listeners.len(),
            listeners: listeners.into_iter().map(Some).collect(),
            connections: HashMap::new(),
            asked: HashMap::new(),
            tickets: 0,
        })
    }

    fn run(&mut self) {
        let mut events = Events::with_capacity(256);
        loop {
            let wait = self.cluster.due().map(|due| due.saturating_duration_since(Instant::now()));
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    eprintln!("awoke: the embedded brokers stop: {error}");
                    return;
                }
                _ => {}
            }
            self.cluster.advance(now());
            loop {
                match self.calls.try_recv() {
                    Ok(call) => call(self),
                    Err(std::sync::mpsc::TryRecvError::Empty) => break,
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
                }
            }
            events.iter().for_each(|event| self.on_event(event));
            self.send_all();
        }
    }

    fn on_event(&mut self, event: &Event) {
        let token = event.token();
        if token == WAKER {
        } else if token.0 <= self.listeners.len() {
            self.accept(token.0 - 1);
        } else if self.exchange(token, event.is_readable(), event.is_writable()).is_err() {
            self.close(token);
        }
    }

    fn accept(&mut self, index: usize) {
        while let Some(Ok((mut stream, address))) = self.listeners[index].as_ref().map(TcpListener::accept) {
            self.tokens += 1;
            let token = Token(self.tokens);
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registered = self.poll.registry().register(&mut stream, token, interest);
            // An answer is one write: waiting for more to send would only delay it.
            if registered.and_then(|()| stream.set_nodelay(true)).is_ok() {
                let connection = Connection::new(stream, index as i32 + 1, address.ip().to_string());
                self.connections.insert(token, connection);
            }
        }
    }

    fn exchange(&mut self, token: Token, is_readable: bool, is_writable: bool) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        if is_writable {
            connection.flush()?;
        }
        if is_readable {
            connection.read()?;
        }
        self.handle_next(token)
    }

    /// Hands the connection's next request to the cluster, unless one is being answered. A fetch that waits for
    /// messages ends its wait when another request is behind it.
    ///
    /// Kafka has that request wait until the fetch's time is over, by default 500 ms. A test should not: a fetch may be
    /// answered with nothing at any time.
    fn handle_next(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        if connection.serves.is_none() {
            let Some(request) = connection.next_request()? else {
                return if connection.is_over() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) };
            };
            self.tickets += 1;
            connection.serves = Some(self.tickets);
            self.asked.insert(self.tickets, token);
            let origin = Origin { ticket: self.tickets, broker: connection.broker, host: &connection.host };
            requests::handle(&mut self.cluster, &origin, request);
        }
        if let Some(served) = connection.serves.filter(|_| connection.has_request()) {
            fetch::end(&mut self.cluster, served);
        }
        Ok(())
    }

    /// Sends the answers that there are. Each makes room for its connection's next request, whose answer may follow at
    /// once.
    fn send_all(&mut self) {
        loop {
            let outgoing = self.cluster.take_outgoing();
            if outgoing.is_empty() {
                return;
            }
            for (ticket, outgoing) in outgoing {
                let Some(token) = self.asked.get(&ticket).copied() else { continue };
                if !matches!(outgoing, Outgoing::OnItsWay) {
                    self.asked.remove(&ticket);
                }
                if self.send(token, ticket, &outgoing).and_then(|()| self.handle_next(token)).is_err() {
                    self.close(token);
                }
            }
        }
    }

    fn send(&mut self, token: Token, ticket: u64, outgoing: &Outgoing) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&token) else { return Ok(()) };
        connection.serves = connection.serves.filter(|served| *served != ticket);
        match outgoing {
            Outgoing::Answer(answer) => connection.send(answer),
            Outgoing::Nothing | Outgoing::OnItsWay => Ok(()),
            Outgoing::HangUp => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    fn close(&mut self, token: Token) {
        if let Some(mut connection) = self.connections.remove(&token) {
            // Closing the socket removes it from the poll as well.
            drop(self.poll.registry().deregister(&mut connection.stream));
        }
    }

    fn set_up(&mut self, id: i32, is_up: bool) -> io::Result<()> {
        let broker = self.cluster.broker(id).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let (index, port) = ((id - 1) as usize, broker.port);
        if is_up && self.listeners[index].is_none() {
            let mut listener = listen(port)?;
            self.poll.registry().register(&mut listener, Token(index + 1), Interest::READABLE)?;
            self.listeners[index] = Some(listener);
        }
        if !is_up {
            if let Some(mut listener) = self.listeners[index].take() {
                self.poll.registry().deregister(&mut listener)?;
            }
            let of_broker = |(token, each): (&Token, &Connection)| (each.broker == id).then_some(*token);
            let gone: Vec<Token> = self.connections.iter().filter_map(of_broker).collect();
            gone.into_iter().for_each(|token| self.close(token));
        }
        self.cluster.set_up(id, is_up);
        Ok(())
    }
}

fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn now() -> Moment {
    // Messages are stamped by the clock that a test may have taken. What a broker waits for comes in real time.
    Moment { at: Instant::now(), wall_ms: awoke_wake::clock::wall().as_millis() as i64 }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    use bytes::Buf;
    use kafka_protocol::messages::{ListGroupsRequest, MetadataRequest};

    use super::*;
    use crate::testing::{encoded, fetch_request};

    fn connect(server: &Server) -> TcpStream {
        let stream = TcpStream::connect(server.bootstrap_servers()).expect("the broker listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        stream
    }

    fn send(stream: &mut TcpStream, requests: &[bytes::Bytes]) {
        let with_lengths =
            requests.iter().flat_map(|each| [&(each.len() as u32).to_be_bytes()[..], &each[..]].concat());
        stream.write_all(&with_lengths.collect::<Vec<u8>>()).expect("the broker reads");
    }

    fn read_answer(stream: &mut TcpStream) -> Vec<u8> {
        let mut length = [0; 4];
        stream.read_exact(&mut length).expect("an answer before the fetch's time is over");
        let mut answer = vec![0; (&length[..]).get_u32() as usize];
        stream.read_exact(&mut answer).expect("all of the answer");
        answer
    }

    #[test]
    fn a_request_does_not_wait_for_the_fetch_before_it() {
        let server = Server::start(1).expect("it starts");
        server.create_topic("orders", 1, 1).expect("it is created");
        let fetch = || encoded(11, &fetch_request(0, 3_600_000));
        let mut together = connect(&server);
        send(&mut together, &[fetch(), encoded(0, &ListGroupsRequest::default()), fetch()]);
        let mut later = connect(&server);
        send(&mut later, &[fetch(), encoded(4, &MetadataRequest::default())]);
        for stream in [&mut together, &mut later] {
            read_answer(stream);
            read_answer(stream);
        }
        // The last fetch of the first connection waits, as does another one behind which nothing has come yet.
        send(&mut later, &[fetch()]);
        send(&mut later, &[encoded(0, &ListGroupsRequest::default())]);
        read_answer(&mut later);
        read_answer(&mut later);
        together.set_nonblocking(true).expect("it is set");
        let error = together.read(&mut [0]).expect_err("nothing to be read");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
