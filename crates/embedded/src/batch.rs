//! A batch of records as producers write it (magic 2): its header, what is wrong with it, and batches that a broker
//! writes itself.
//!
//! The layout: <https://kafka.apache.org/documentation/#recordbatch>. The checksum covers everything behind it, so a
//! broker may set the base offset and the leader's epoch, which stand before it, and leave the rest as it is.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::ResponseError;

/// Bytes of a batch before its first record.
pub(crate) const HEADER: usize = 61;
const AT_LENGTH: usize = 8;
const AT_LEADER_EPOCH: usize = 12;
const AT_CHECKSUM: usize = 17;
const AT_ATTRIBUTES: usize = 21;
const AT_MAX_TIMESTAMP: usize = 35;
const MAGIC: i8 = 2;

const CODEC: i16 = 0b111;
const APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;

/// The header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub base_offset: i64,
    /// Bytes of the whole batch.
    pub size: usize,
    pub leader_epoch: i32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: i64,
    pub max_timestamp: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub count: i32,
}

impl Header {
    /// Reads the header of the first batch in the bytes.
    ///
    /// # Errors
    /// `CorruptMessage` for bytes that end too early, `UnsupportedForMessageFormat` for another layout than magic 2.
    pub fn read(bytes: &[u8]) -> Result<Self, ResponseError> {
        if bytes.len() < HEADER {
            return Err(ResponseError::CorruptMessage);
        }
        let mut from = bytes;
        let base_offset = from.get_i64();
        let length = from.get_i32();
        let leader_epoch = from.get_i32();
        if from.get_i8() != MAGIC {
            return Err(ResponseError::UnsupportedForMessageFormat);
        }
        let _checksum = from.get_u32();
        let size = usize::try_from(length).map_err(|_| ResponseError::CorruptMessage)? + AT_LEADER_EPOCH;
        if size < HEADER || size > bytes.len() {
            return Err(ResponseError::CorruptMessage);
        }
        Ok(Self {
            base_offset,
            size,
            leader_epoch,
            attributes: from.get_i16(),
            last_offset_delta: from.get_i32(),
            base_timestamp: from.get_i64(),
            max_timestamp: from.get_i64(),
            producer_id: from.get_i64(),
            producer_epoch: from.get_i16(),
            base_sequence: from.get_i32(),
            count: from.get_i32(),
        })
    }

    /// Returns the number of the codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    pub fn codec(&self) -> i16 {
        self.attributes & CODEC
    }

    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Returns whether its timestamps are those of the append.
    pub fn has_append_time(&self) -> bool {
        self.attributes & APPEND_TIME != 0
    }

    pub fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }
}

/// Checks the only batch of a produce request: its size, checksum and count.
///
/// # Errors
/// The error that Kafka answers.
pub(crate) fn check(bytes: &[u8]) -> Result<Header, ResponseError> {
    let header = Header::read(bytes)?;
    let checksum = (&bytes[AT_CHECKSUM..]).get_u32();
    if checksum != crc32c::crc32c(&bytes[AT_ATTRIBUTES..header.size]) {
        return Err(ResponseError::CorruptMessage);
    }
    let is_whole = header.size == bytes.len() && header.count > 0 && header.count == header.last_offset_delta + 1;
    if !is_whole || header.is_control() {
        return Err(ResponseError::InvalidRecord);
    }
    Ok(header)
}

/// Returns the batch with its place in the log, and with the time of the append where the topic wants that.
pub(crate) fn place(bytes: &[u8], base_offset: i64, leader_epoch: i32, append_time: Option<i64>) -> Bytes {
    let mut batch = BytesMut::from(bytes);
    batch[..AT_LENGTH].copy_from_slice(&base_offset.to_be_bytes());
    batch[AT_LEADER_EPOCH..AT_LEADER_EPOCH + 4].copy_from_slice(&leader_epoch.to_be_bytes());
    if let Some(time) = append_time {
        let attributes = (&batch[AT_ATTRIBUTES..]).get_i16() | APPEND_TIME;
        batch[AT_ATTRIBUTES..AT_ATTRIBUTES + 2].copy_from_slice(&attributes.to_be_bytes());
        batch[AT_MAX_TIMESTAMP..AT_MAX_TIMESTAMP + 8].copy_from_slice(&time.to_be_bytes());
        seal(&mut batch);
    }
    batch.freeze()
}

/// Returns the batch that ends a transaction: one control record, `COMMIT` or `ABORT`.
pub(crate) fn marker(producer_id: i64, producer_epoch: i16, commits: bool, timestamp: i64) -> Bytes {
    let mut record = BytesMut::new();
    record.put_i8(0); // attributes
    record.put_u8(0); // timestamp delta
    record.put_u8(0); // offset delta
    record.put_u8(8); // length of the key: 4, as a zigzag number
    record.put_i16(0); // version of the key
    record.put_i16(i16::from(commits));
    record.put_u8(12); // length of the value: 6, as a zigzag number
    record.put_i16(0); // version of the value
    record.put_i32(0); // epoch of the coordinator
    record.put_u8(0); // headers
    let mut batch = BytesMut::with_capacity(HEADER + 1 + record.len());
    batch.put_i64(0);
    batch.put_i32(0);
    batch.put_i32(0);
    batch.put_i8(MAGIC);
    batch.put_u32(0);
    batch.put_i16(TRANSACTIONAL | CONTROL);
    batch.put_i32(0);
    batch.put_i64(timestamp);
    batch.put_i64(timestamp);
    batch.put_i64(producer_id);
    batch.put_i16(producer_epoch);
    batch.put_i32(-1);
    batch.put_i32(1);
    batch.put_u8(u8::try_from(record.len() * 2).unwrap_or(u8::MAX)); // zigzag; a marker is shorter than 64 bytes
    batch.put_slice(&record);
    seal(&mut batch);
    batch.freeze()
}

/// Writes the length and the checksum.
fn seal(batch: &mut BytesMut) {
    let length = (batch.len() - AT_LEADER_EPOCH) as i32;
    batch[AT_LENGTH..AT_LEADER_EPOCH].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32c::crc32c(&batch[AT_ATTRIBUTES..]);
    batch[AT_CHECKSUM..AT_ATTRIBUTES].copy_from_slice(&checksum.to_be_bytes());
}
