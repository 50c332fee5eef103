//! `DeleteGroups`: forgets groups without members.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use crate::cluster::{Answer, Caller, Cluster};

pub(crate) fn delete(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DeleteGroupsRequest,
) -> Answer<DeleteGroupsResponse> {
    let fault = cluster.fault(caller);
    let mut results = Vec::with_capacity(request.groups_names.len());
    for name in request.groups_names {
        let deleted = fault.map_or_else(|| forget(cluster, caller, &name), Err);
        let error = deleted.err().map_or(0, |error| error.code());
        results.push(DeletableGroupResult::default().with_group_id(name).with_error_code(error));
    }
    Answer::Now(DeleteGroupsResponse::default().with_results(results))
}

fn forget(cluster: &mut Cluster, caller: &Caller, name: &str) -> Result<(), ResponseError> {
    if name.is_empty() {
        return Err(ResponseError::InvalidGroupId);
    }
    cluster.check_coordinator(caller, name)?;
    match cluster.groups.get(name) {
        None => Err(ResponseError::GroupIdNotFound),
        Some(group) if !group.is_empty() => Err(ResponseError::NonEmptyGroup),
        Some(_) => {
            cluster.groups.remove(name);
            Ok(())
        }
    }
}
