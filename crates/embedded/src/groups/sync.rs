//! `SyncGroup` and `Heartbeat`: the leader assigns, members get their assignment and say that they live.

use std::collections::HashMap;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse, SyncGroupRequest, SyncGroupResponse};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Answer, Caller, Cluster, Reply};
use crate::groups::classic::{self, ClassicGroup, Due, State};

pub(crate) fn sync(cluster: &mut Cluster, caller: &Caller, request: SyncGroupRequest) -> Answer<SyncGroupResponse> {
    let name = request.group_id.to_string();
    let checked = match cluster.fault(caller) {
        Some(error) => Err(error),
        None => cluster.check_coordinator(caller, &name),
    };
    let now = cluster.now.at;
    let synced = checked.and_then(|()| {
        classic::change(cluster, &name, false, |group, due| {
            check(group, &request)?;
            let id = request.member_id.to_string();
            if let Some(member) = group.members.get_mut(&id) {
                member.session_due = now + member.session_timeout;
            }
            match group.state {
                State::Empty => Err(ResponseError::UnknownMemberId),
                State::PreparingRebalance => Err(ResponseError::RebalanceInProgress),
                State::Stable => Ok(Some(answer(group, &id))),
                State::CompletingRebalance => {
                    complete(group, &id, &request, caller.reply(), due);
                    group.begin_withdrawals(now, due);
                    Ok(None)
                }
            }
        })
    });
    match synced {
        Ok(Some(answer)) => Answer::Now(answer),
        Ok(None) => Answer::Later,
        Err(error) => Answer::Now(SyncGroupResponse::default().with_error_code(error.code())),
    }
}

fn check(group: &ClassicGroup, request: &SyncGroupRequest) -> Result<(), ResponseError> {
    group.check(&request.member_id, request.group_instance_id.as_ref(), request.generation_id)?;
    let differs = |told: Option<&StrBytes>, known: Option<&String>| {
        told.is_some_and(|told| known.is_none_or(|known| told.as_str() != known))
    };
    if differs(request.protocol_type.as_ref(), group.protocol_type.as_ref())
        || differs(request.protocol_name.as_ref(), group.protocol.as_ref())
    {
        return Err(ResponseError::InconsistentGroupProtocol);
    }
    Ok(())
}

/// Has a member wait for its assignment; the leader's request brings all of them.
fn complete(
    group: &mut ClassicGroup,
    id: &str,
    request: &SyncGroupRequest,
    reply: Reply<SyncGroupResponse>,
    due: &mut Vec<Due>,
) {
    let before = group.members.get_mut(id).and_then(|member| member.syncing.replace(reply));
    if let Some(before) = before {
        let error = ResponseError::UnknownMemberId.code();
        due.push(Due::Sync(before, SyncGroupResponse::default().with_error_code(error)));
    }
    if group.leader.as_deref() != Some(id) {
        return;
    }
    let mut assignments: HashMap<&str, &Bytes> =
        request.assignments.iter().map(|each| (each.member_id.as_str(), &each.assignment)).collect();
    for (id, member) in &mut group.members {
        member.assignment = assignments.remove(id.as_str()).cloned().unwrap_or_default();
    }
    group.withhold();
    group.state = State::Stable;
    let ids: Vec<String> = group.members.keys().cloned().collect();
    for id in ids {
        let answer = answer(group, &id);
        if let Some(reply) = group.members.get_mut(&id).and_then(|member| member.syncing.take()) {
            due.push(Due::Sync(reply, answer));
        }
    }
}

fn answer(group: &ClassicGroup, id: &str) -> SyncGroupResponse {
    let text = |text: &Option<String>| text.as_ref().map(|text| StrBytes::from_string(text.clone()));
    SyncGroupResponse::default()
        .with_protocol_type(text(&group.protocol_type))
        .with_protocol_name(text(&group.protocol))
        .with_assignment(group.members.get(id).map(|member| member.assignment.clone()).unwrap_or_default())
}

pub(crate) fn heartbeat(
    cluster: &mut Cluster,
    caller: &Caller,
    request: HeartbeatRequest,
) -> Answer<HeartbeatResponse> {
    let fault = cluster.fault(caller);
    let beaten = fault.map_or_else(|| beat(cluster, caller, &request), Err);
    Answer::Now(HeartbeatResponse::default().with_error_code(beaten.err().map_or(0, |error| error.code())))
}

fn beat(cluster: &mut Cluster, caller: &Caller, request: &HeartbeatRequest) -> Result<(), ResponseError> {
    cluster.check_coordinator(caller, &request.group_id)?;
    let now = cluster.now.at;
    let group = cluster.groups.classic_mut(&request.group_id, false)?;
    let known = group.check(&request.member_id, request.group_instance_id.as_ref(), request.generation_id);
    known.inspect_err(|_| group.end_losses(&request.member_id))?;
    if let Some(member) = group.members.get_mut(request.member_id.as_str()) {
        member.session_due = now + member.session_timeout;
    }
    match group.state {
        State::PreparingRebalance => Err(ResponseError::RebalanceInProgress),
        _ => Ok(()),
    }
}
