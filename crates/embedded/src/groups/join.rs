//! `JoinGroup`: a member comes, comes back or changes; it gets the generation when all have joined.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};

use crate::cluster::{Answer, Caller, Cluster, Timer};
use crate::groups::classic::{self, ClassicGroup, Due, Member, State};
use crate::groups::{GroupTimer, new_member_id};

/// Kafka takes 6 s to 30 min (`group.min.session.timeout.ms`); a test may want less.
const SESSION_TIMEOUTS_MS: std::ops::RangeInclusive<i32> = 1..=1_800_000;
/// Since this version a new member first gets its id (KIP-394).
const IDS_FIRST_SINCE: i16 = 4;
/// Since this version a leader may be told that no assignment is needed (KIP-814).
const SKIPS_SINCE: i16 = 9;

/// The consequence for the member that asked.
enum Next {
    Waits,
    Now(JoinGroupResponse),
}

pub(crate) fn join(cluster: &mut Cluster, caller: &Caller, request: JoinGroupRequest) -> Answer<JoinGroupResponse> {
    let name = request.group_id.to_string();
    let checked = match cluster.fault(caller) {
        Some(error) => Err(error),
        None if name.is_empty() => Err(ResponseError::InvalidGroupId),
        None if !SESSION_TIMEOUTS_MS.contains(&request.session_timeout_ms) => Err(ResponseError::InvalidSessionTimeout),
        None => cluster.check_coordinator(caller, &name),
    };
    let now = cluster.now.at;
    let creates = request.member_id.is_empty();
    let mut asked = Asked::new(caller, request);
    let next = checked.and_then(|()| {
        classic::change(cluster, &name, creates, |group, due| {
            let next = enter(group, &mut asked, now, due)?;
            group.complete(false, now, due);
            Ok(next)
        })
    });
    let id = asked.id.clone();
    if let Some(due) = asked.starts_session {
        let timer = GroupTimer::Session { group: name.clone(), member: id.clone() };
        cluster.remind(due, Timer::Group(timer));
    }
    let answer = match next {
        Ok(Next::Waits) => return Answer::Later,
        Ok(Next::Now(answer)) => answer,
        Err(error) => {
            if error == ResponseError::MemberIdRequired {
                let timer = GroupTimer::Pending { group: name, member: id.clone() };
                cluster.remind(now + asked.session_timeout, Timer::Group(timer));
            }
            classic::refused_join(error, &id)
        }
    };
    Answer::Now(classic::for_version(answer, caller.version))
}

/// The content of a request.
struct Asked<'a> {
    caller: &'a Caller,
    /// The member's id: asked for or new.
    id: String,
    instance_id: Option<String>,
    protocol_type: String,
    protocols: Vec<(String, Bytes)>,
    session_timeout: Duration,
    rebalance_timeout: Duration,
    is_new: bool,
    /// When the session of a member that came is over.
    starts_session: Option<std::time::Instant>,
}

impl<'a> Asked<'a> {
    fn new(caller: &'a Caller, request: JoinGroupRequest) -> Self {
        let ms = |ms: i32| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        let protocols = request.protocols.into_iter().map(|each| (each.name.to_string(), each.metadata));
        let instance_id = request.group_instance_id.map(|id| id.to_string());
        let is_new = request.member_id.is_empty();
        let prefix = instance_id.as_deref().unwrap_or(&caller.client_id);
        let id = if is_new { new_member_id(prefix) } else { request.member_id.to_string() };
        let session_timeout = ms(request.session_timeout_ms);
        Self {
            caller,
            id,
            instance_id,
            protocol_type: request.protocol_type.to_string(),
            protocols: protocols.collect(),
            session_timeout,
            // The oldest version has one time-out for both.
            rebalance_timeout: if caller.version == 0 { session_timeout } else { ms(request.rebalance_timeout_ms) },
            is_new,
            starts_session: None,
        }
    }

    fn member(&self, order: u64, now: std::time::Instant) -> Member {
        Member {
            id: self.id.clone(),
            instance_id: self.instance_id.clone(),
            client_id: self.caller.client_id.clone(),
            host: self.caller.host.clone(),
            session_timeout: self.session_timeout,
            rebalance_timeout: self.rebalance_timeout,
            protocols: self.protocols.clone(),
            assignment: Bytes::new(),
            order,
            joining: None,
            syncing: None,
            session_due: now + self.session_timeout,
        }
    }
}

fn enter(
    group: &mut ClassicGroup,
    asked: &mut Asked<'_>,
    now: std::time::Instant,
    due: &mut Vec<Due>,
) -> Result<Next, ResponseError> {
    let of_instance = asked.instance_id.as_ref().map(|id| group.member_of(id).map(str::to_owned));
    let except = of_instance.clone().flatten().unwrap_or_else(|| asked.id.clone());
    if !group.fits(&asked.protocol_type, &asked.protocols, &except) {
        return Err(ResponseError::InconsistentGroupProtocol);
    }
    match of_instance {
        Some(Some(known)) if asked.is_new => return Ok(replace(group, asked, &known, now, due)),
        Some(Some(known)) if known != asked.id => return Err(ResponseError::FencedInstanceId),
        Some(None) if !asked.is_new => return Err(ResponseError::UnknownMemberId),
        _ => {}
    }
    if asked.is_new && asked.instance_id.is_none() && asked.caller.version >= IDS_FIRST_SINCE {
        group.pending.insert(asked.id.clone());
        return Err(ResponseError::MemberIdRequired);
    }
    if asked.is_new || group.pending.remove(&asked.id) {
        group.came += 1;
        group.protocol_type = Some(asked.protocol_type.clone());
        group.members.insert(asked.id.clone(), asked.member(group.came, now));
        asked.starts_session = Some(now + asked.session_timeout);
        return Ok(wait(group, asked, now, due));
    }
    rejoin(group, asked, now, due)
}

/// Lets a member join again that is one already.
fn rejoin(
    group: &mut ClassicGroup,
    asked: &Asked<'_>,
    now: std::time::Instant,
    due: &mut Vec<Due>,
) -> Result<Next, ResponseError> {
    let leads = group.leader.as_deref() == Some(asked.id.as_str());
    let member = group.members.get_mut(&asked.id).ok_or(ResponseError::UnknownMemberId)?;
    let is_same = member.protocols == asked.protocols;
    member.session_due = now + asked.session_timeout;
    let knows_generation = match group.state {
        State::Stable => is_same && !leads,
        // The answer to its join was lost.
        State::CompletingRebalance => is_same,
        State::PreparingRebalance | State::Empty => false,
    };
    if knows_generation {
        return Ok(Next::Now(group.joined(&asked.id)));
    }
    Ok(wait(group, asked, now, due))
}

/// Has the member wait for the end of the join.
fn wait(group: &mut ClassicGroup, asked: &Asked<'_>, now: std::time::Instant, due: &mut Vec<Due>) -> Next {
    if group.state != State::PreparingRebalance {
        group.prepare(due);
    }
    if let Some(member) = group.members.get_mut(&asked.id) {
        classic::forget_requests(member, ResponseError::UnknownMemberId, due);
        member.protocols.clone_from(&asked.protocols);
        member.session_timeout = asked.session_timeout;
        member.rebalance_timeout = asked.rebalance_timeout;
        member.client_id.clone_from(&asked.caller.client_id);
        member.host.clone_from(&asked.caller.host);
        member.session_due = now + asked.session_timeout;
        member.joining = Some(asked.caller.reply());
    }
    Next::Waits
}

/// Replaces a static member by one with the same instance id (KIP-345). One that says the same gets its partitions
/// without a rebalance.
fn replace(
    group: &mut ClassicGroup,
    asked: &mut Asked<'_>,
    known: &str,
    now: std::time::Instant,
    due: &mut Vec<Due>,
) -> Next {
    let led = group.leader.as_deref() == Some(known);
    let leader_before = group.leader.clone();
    let Some(old) = group.remove(known, ResponseError::FencedInstanceId, due) else { return Next::Waits };
    let protocol = group.protocol.clone().unwrap_or_default();
    let mut new = asked.member(old.order, now);
    let is_same = old.metadata(&protocol) == new.metadata(&protocol);
    new.assignment = old.assignment;
    group.members.insert(asked.id.clone(), new);
    asked.starts_session = Some(now + asked.session_timeout);
    if led {
        group.leader = Some(asked.id.clone());
    }
    if group.state != State::Stable || !is_same {
        return wait(group, asked, now, due);
    }
    let answer = group.joined(&asked.id);
    if !led {
        return Next::Now(answer);
    }
    if asked.caller.version >= SKIPS_SINCE {
        return Next::Now(answer.with_skip_assignment(true));
    }
    // A client that can't skip is told the old leader, so that it takes its assignment as a follower does.
    let leader = kafka_protocol::protocol::StrBytes::from_string(leader_before.unwrap_or_default());
    Next::Now(answer.with_leader(leader).with_members(Vec::new()))
}
