//! `DescribeGroups` and `ListGroups`.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use kafka_protocol::messages::list_groups_response::ListedGroup;
use kafka_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, GroupId, ListGroupsRequest, ListGroupsResponse,
};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Answer, Caller, Cluster};
use crate::groups::Members;
use crate::groups::classic::{ClassicGroup, Member, State};

/// No authorised operations are told: the brokers have no authoriser.
const NO_OPERATIONS: i32 = i32::MIN;
/// Since this version an unknown group is an error (KIP-1043); before, it is a dead one.
const NOT_FOUND_SINCE: i16 = 6;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub(crate) fn describe(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DescribeGroupsRequest,
) -> Answer<DescribeGroupsResponse> {
    let fault = cluster.fault(caller);
    let described = |id: GroupId| {
        let checked = fault.map_or_else(|| cluster.check_coordinator(caller, &id), Err);
        let group = checked.map(|()| cluster.groups.get(&id).map(|group| &group.members));
        let described = DescribedGroup::default().with_group_id(id).with_authorized_operations(NO_OPERATIONS);
        match group {
            Err(error) => described.with_error_code(error.code()),
            Ok(Some(Members::Classic(group))) => with_group(described, group),
            Ok(_) if caller.version < NOT_FOUND_SINCE => described.with_group_state(text("Dead")),
            Ok(_) => {
                let message = format!("Group {} not found.", described.group_id.as_str());
                described
                    .with_group_state(text("Dead"))
                    .with_error_code(ResponseError::GroupIdNotFound.code())
                    .with_error_message(Some(text(&message)))
            }
        }
    };
    Answer::Now(DescribeGroupsResponse::default().with_groups(request.groups.into_iter().map(described).collect()))
}

fn with_group(described: DescribedGroup, group: &ClassicGroup) -> DescribedGroup {
    let is_stable = group.state == State::Stable;
    let protocol = group.protocol.as_deref().filter(|_| is_stable).unwrap_or("");
    let member = |member: &Member| {
        let told = DescribedGroupMember::default()
            .with_member_id(text(&member.id))
            .with_group_instance_id(member.instance_id.as_deref().map(text))
            .with_client_id(text(&member.client_id))
            .with_client_host(text(&format!("/{}", member.host)));
        if !is_stable {
            return told;
        }
        told.with_member_metadata(member.metadata(protocol)).with_member_assignment(member.assignment.clone())
    };
    described
        .with_group_state(text(group.state.name()))
        .with_protocol_type(text(group.protocol_type.as_deref().unwrap_or("")))
        .with_protocol_data(text(protocol))
        .with_members(group.members.values().map(member).collect())
}

pub(crate) fn list(cluster: &mut Cluster, caller: &Caller, request: ListGroupsRequest) -> Answer<ListGroupsResponse> {
    if let Some(error) = cluster.fault(caller) {
        return Answer::Now(ListGroupsResponse::default().with_error_code(error.code()));
    }
    let wanted = |filter: &[StrBytes], value: &str| {
        filter.is_empty() || filter.iter().any(|each| each.eq_ignore_ascii_case(value))
    };
    let own = cluster.groups.iter().filter(|(name, group)| {
        cluster.coordinator(name) == Some(caller.broker)
            && wanted(&request.states_filter, group.state())
            && wanted(&request.types_filter, group.kind())
    });
    let listed = own.map(|(name, group)| {
        ListedGroup::default()
            .with_group_id(GroupId(text(name)))
            .with_protocol_type(text(group.protocol_type()))
            .with_group_state(text(group.state()))
            .with_group_type(text(group.kind()))
    });
    Answer::Now(ListGroupsResponse::default().with_groups(listed.collect()))
}
