//! `InitProducerId`: gives a producer its id and epoch, and fences the one that had the transactional id before.

use std::collections::BTreeSet;
use std::time::Duration;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use crate::cluster::{Answer, Caller, Cluster};
use crate::transactions::{State, Transaction, fence};

/// Kafka's `transaction.max.timeout.ms`.
const TIMEOUT_MAX_MS: i32 = 900_000;
/// A coordinator needs one epoch more to fence the last producer of an id.
const EPOCH_MAX: i16 = i16::MAX - 1;

pub(crate) fn init(
    cluster: &mut Cluster,
    caller: &Caller,
    request: InitProducerIdRequest,
) -> Answer<InitProducerIdResponse> {
    let fault = cluster.fault(caller);
    let given = fault.map_or_else(|| give(cluster, caller, &request), Err);
    let response = InitProducerIdResponse::default();
    Answer::Now(match given {
        Ok((id, epoch)) => response.with_producer_id(ProducerId(id)).with_producer_epoch(epoch),
        Err(error) => response.with_error_code(error.code()).with_producer_id(ProducerId(-1)).with_producer_epoch(-1),
    })
}

fn give(cluster: &mut Cluster, caller: &Caller, request: &InitProducerIdRequest) -> Result<(i64, i16), ResponseError> {
    let Some(id) = request.transactional_id.as_ref().map(|id| id.to_string()) else {
        return Ok((cluster.transactions.new_producer_id(), 0));
    };
    let timeout_ms = request.transaction_timeout_ms;
    if id.is_empty() {
        return Err(ResponseError::InvalidRequest);
    }
    cluster.check_coordinator(caller, &id)?;
    if !(1..=TIMEOUT_MAX_MS).contains(&timeout_ms) {
        return Err(ResponseError::InvalidTransactionTimeout);
    }
    let timeout = Duration::from_millis(timeout_ms.unsigned_abs().into());
    let new_id = cluster.transactions.new_producer_id();
    let Some(known) = cluster.transactions.by_id.get(&id) else {
        let transaction = Transaction {
            producer_id: new_id,
            epoch: 0,
            timeout,
            state: State::Empty,
            partitions: BTreeSet::new(),
            groups: BTreeSet::new(),
            started_ms: -1,
            serial: 0,
        };
        cluster.transactions.by_id.insert(id, transaction);
        return Ok((new_id, 0));
    };
    // A producer that goes on after an error says who it is (KIP-360): only the present one, or the one that was just
    // replaced, may.
    let (told_id, told_epoch) = (request.producer_id.0, request.producer_epoch);
    if told_id >= 0 && (told_id != known.producer_id || told_epoch < known.epoch - 1) {
        return Err(ResponseError::ProducerFenced);
    }
    if known.state == State::Ongoing {
        fence(cluster, &id);
    }
    let known = cluster.transactions.by_id.get_mut(&id).ok_or(ResponseError::UnknownServerError)?;
    known.timeout = timeout;
    known.state = State::Empty;
    if known.epoch >= EPOCH_MAX {
        (known.producer_id, known.epoch) = (new_id, 0);
    } else {
        known.epoch += 1;
    }
    Ok((known.producer_id, known.epoch))
}
