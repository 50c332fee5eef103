//! `LeaveGroup`: members go, by their ids or by their instance ids.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use crate::cluster::{Answer, Caller, Cluster};
use crate::groups::Members;
use crate::groups::classic::{self, ClassicGroup, Due};

/// Since this version several members may go at once.
const SEVERAL_SINCE: i16 = 3;

pub(crate) fn leave(cluster: &mut Cluster, caller: &Caller, request: LeaveGroupRequest) -> Answer<LeaveGroupResponse> {
    let name = request.group_id.to_string();
    let leaving = if caller.version < SEVERAL_SINCE {
        vec![MemberIdentity::default().with_member_id(request.member_id).with_group_instance_id(None)]
    } else {
        request.members
    };
    let checked = match cluster.fault(caller) {
        Some(error) => Err(error),
        None => cluster.check_coordinator(caller, &name),
    };
    let left = checked.and_then(|()| gone(cluster, &name, &leaving));
    let answer = match left {
        Err(error) => LeaveGroupResponse::default().with_error_code(error.code()),
        Ok(results) if caller.version < SEVERAL_SINCE => {
            LeaveGroupResponse::default().with_error_code(results.first().map_or(0, |each| each.error_code))
        }
        Ok(results) => LeaveGroupResponse::default().with_members(results),
    };
    Answer::Now(answer)
}

fn gone(cluster: &mut Cluster, name: &str, leaving: &[MemberIdentity]) -> Result<Vec<MemberResponse>, ResponseError> {
    if let Some(Members::Consumer(_)) = cluster.groups.get(name).map(|group| &group.members) {
        return Ok(leaving.iter().map(|member| from_consumer(cluster, name, member)).collect());
    }
    let now = cluster.now.at;
    classic::change(cluster, name, false, |group, due| {
        let results = leaving.iter().map(|member| from_classic(group, member, due)).collect();
        group.rebalance_without(now, due);
        Ok(results)
    })
}

fn told(member: &MemberIdentity, result: Result<(), ResponseError>) -> MemberResponse {
    MemberResponse::default()
        .with_member_id(member.member_id.clone())
        .with_group_instance_id(member.group_instance_id.clone())
        .with_error_code(result.err().map_or(0, |error| error.code()))
}

fn from_classic(group: &mut ClassicGroup, leaving: &MemberIdentity, due: &mut Vec<Due>) -> MemberResponse {
    let id = leaving.member_id.to_string();
    let result = match &leaving.group_instance_id {
        // An administrator removes a static member by its instance id alone.
        Some(instance) if id.is_empty() => match group.member_of(instance).map(str::to_owned) {
            Some(known) => {
                group.remove(&known, ResponseError::UnknownMemberId, due);
                Ok(())
            }
            None => Err(ResponseError::UnknownMemberId),
        },
        instance => group
            .check_member(&id, instance.as_ref())
            .or_else(|error| if group.pending.remove(&id) { Ok(()) } else { Err(error) })
            .map(|()| {
                group.remove(&id, ResponseError::UnknownMemberId, due);
            }),
    };
    told(leaving, result)
}

/// Removes a member of the new protocol, as an administrator does.
fn from_consumer(cluster: &mut Cluster, name: &str, leaving: &MemberIdentity) -> MemberResponse {
    let topics = &cluster.topics;
    let result = cluster.groups.consumer_mut(name, false).and_then(|group| {
        let id = match &leaving.group_instance_id {
            Some(instance) => group.member_of(instance).map(str::to_owned),
            None => Some(leaving.member_id.to_string()),
        };
        id.and_then(|id| group.remove(&id)).ok_or(ResponseError::UnknownMemberId)?;
        group.refresh(topics);
        Ok(())
    });
    told(leaving, result)
}
