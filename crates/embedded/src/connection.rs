//! A client's connection: cuts requests out of what arrives, and writes answers as far as the socket takes them.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes, BytesMut};
use mio::net::TcpStream;

/// Kafka's `socket.request.max.bytes`.
const REQUEST_MAX: usize = 100 * 1024 * 1024;
const CHUNK: usize = 64 * 1024;

/// A client's connection.
pub(crate) struct Connection {
    pub stream: TcpStream,
    pub broker: i32,
    pub host: String,
    incoming: BytesMut,
    outgoing: BytesMut,
    /// The request that is being answered: the next one waits, as answers are made in the order of the requests.
    pub serves: Option<u64>,
    is_at_end: bool,
}

impl Connection {
    pub fn new(stream: TcpStream, broker: i32, host: String) -> Self {
        let (incoming, outgoing) = (BytesMut::new(), BytesMut::new());
        Self { stream, broker, host, incoming, outgoing, serves: None, is_at_end: false }
    }

    /// Reads all that has arrived.
    pub fn read(&mut self) -> io::Result<()> {
        loop {
            let before = self.incoming.len();
            self.incoming.resize(before + CHUNK, 0);
            let read = self.stream.read(&mut self.incoming[before..]);
            self.incoming.truncate(before + read.as_ref().map_or(0, |count| *count));
            match read {
                Ok(0) => {
                    self.is_at_end = true;
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the next whole request, without its length.
    ///
    /// # Errors
    /// A length that no request has.
    pub fn next_request(&mut self) -> io::Result<Option<Bytes>> {
        let Some(length) = self.length_of_next()? else { return Ok(None) };
        self.incoming.advance(4);
        Ok(Some(self.incoming.split_to(length).freeze()))
    }

    /// Returns whether `next_request` would return a request, or an error.
    pub fn has_request(&self) -> bool {
        !matches!(self.length_of_next(), Ok(None))
    }

    /// Returns the length of the next request, if all of it has arrived.
    fn length_of_next(&self) -> io::Result<Option<usize>> {
        if self.incoming.len() < 4 {
            return Ok(None);
        }
        let length = (&self.incoming[..]).get_i32();
        let length = usize::try_from(length).ok().filter(|length| *length <= REQUEST_MAX);
        let length = length.ok_or(io::ErrorKind::InvalidData)?;
        Ok((self.incoming.len() >= 4 + length).then_some(length))
    }

    /// Returns whether the client has closed its side and nothing is left to be answered.
    pub fn is_over(&self) -> bool {
        self.is_at_end && self.serves.is_none() && self.outgoing.is_empty()
    }

    /// Sends an answer: what the socket does not take now goes when it is writable.
    pub fn send(&mut self, answer: &[u8]) -> io::Result<()> {
        self.outgoing.extend_from_slice(answer);
        self.flush()
    }

    /// Writes what is left.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(written) => self.outgoing.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
