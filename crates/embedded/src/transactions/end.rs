//! `EndTxn`: commits or aborts a transaction.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{EndTxnRequest, EndTxnResponse};

use crate::cluster::{Answer, Caller, Cluster};
use crate::faults::Of;
use crate::transactions::{State, fence, finish};

pub(crate) fn end(cluster: &mut Cluster, caller: &Caller, request: EndTxnRequest) -> Answer<EndTxnResponse> {
    let fault = cluster.fault(caller);
    let ended = fault.map_or_else(|| complete(cluster, caller, &request), Err);
    Answer::Now(EndTxnResponse::default().with_error_code(ended.err().map_or(0, |error| error.code())))
}

fn complete(cluster: &mut Cluster, caller: &Caller, request: &EndTxnRequest) -> Result<(), ResponseError> {
    let id = request.transactional_id.to_string();
    cluster.check_coordinator(caller, &id)?;
    let own = cluster.transactions.own(caller, &id, request.producer_id.0, request.producer_epoch)?;
    let commits = own.state == State::Ongoing && request.committed;
    if commits && cluster.faults.take(Of::EndTransaction, &id).is_some() {
        fence(cluster, &id);
    }
    let own = cluster.transactions.own(caller, &id, request.producer_id.0, request.producer_epoch)?;
    match own.state {
        State::Ongoing => {
            finish(cluster, &id, request.committed);
            Ok(())
        }
        // The answer to the first request was lost.
        State::CompleteCommit if request.committed => Ok(()),
        State::CompleteAbort if !request.committed => Ok(()),
        _ => Err(ResponseError::InvalidTxnState),
    }
}
