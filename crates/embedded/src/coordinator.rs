//! `FindCoordinator`: the broker that is asked about a group or a transactional id.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Answer, Caller, Cluster, HOST};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
/// Since this version a request may name several keys (KIP-699).
const SEVERAL_SINCE: i16 = 4;

pub(crate) fn find(
    cluster: &mut Cluster,
    caller: &Caller,
    request: FindCoordinatorRequest,
) -> Answer<FindCoordinatorResponse> {
    let fault = cluster.fault(caller);
    let find = |key: &StrBytes| {
        let found = fault.map_or_else(|| found(cluster, key, request.key_type), Err);
        let told = Coordinator::default().with_key(key.clone());
        match found {
            Ok((id, port)) => told
                .with_node_id(BrokerId(id))
                .with_host(StrBytes::from_static_str(HOST))
                .with_port(i32::from(port))
                .with_error_message(Some(StrBytes::default())),
            Err(error) => told.with_node_id(BrokerId(-1)).with_port(-1).with_error_code(error.code()),
        }
    };
    if caller.version >= SEVERAL_SINCE {
        let coordinators = request.coordinator_keys.iter().map(find).collect();
        return Answer::Now(FindCoordinatorResponse::default().with_coordinators(coordinators));
    }
    let found = find(&request.key);
    Answer::Now(
        FindCoordinatorResponse::default()
            .with_error_code(found.error_code)
            .with_error_message(found.error_message)
            .with_node_id(found.node_id)
            .with_host(found.host)
            .with_port(found.port),
    )
}

fn found(cluster: &Cluster, key: &str, kind: i8) -> Result<(i32, u16), ResponseError> {
    match kind {
        GROUP | TRANSACTION if key.is_empty() => Err(ResponseError::InvalidGroupId),
        GROUP | TRANSACTION => {
            let id = cluster.coordinator(key).ok_or(ResponseError::CoordinatorNotAvailable)?;
            let port = cluster.broker(id).map(|broker| broker.port);
            port.map(|port| (id, port)).ok_or(ResponseError::CoordinatorNotAvailable)
        }
        _ => Err(ResponseError::InvalidRequest),
    }
}
