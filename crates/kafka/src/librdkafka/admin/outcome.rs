//! The answers to admin requests, as plain tuples.

use std::ffi::c_char;

use super::super::{Code, QueueEvent, TopicPartitionList, ffi, text_of};
use super::request::{Acl, PartitionOf};

/// Why one entry of a request failed: code, its name, and the broker's text, which may be empty.
pub type Refusal = (i32, String, String);
/// A setting: name, value (`None` where it is unset or secret), the number of its source in Kafka's protocol, and
/// whether it is the default, sensitive, and read-only.
pub type ConfigEntry = (String, Option<String>, i32, bool, bool, bool);
/// A group: name, state, kind (classic or consumer), and whether it only keeps offsets.
pub type GroupListing = (String, String, String, bool);
/// A member of a group: its id, client id, host, static id, and its partitions.
pub type GroupMember = (String, String, String, Option<String>, Vec<PartitionOf>);
/// A broker: id, host, port.
pub type Coordinator = (i32, String, u16);
/// A described group: name, why it could not be described, state, kind, protocol, coordinator, members.
pub type GroupDescription = (String, Option<Refusal>, String, String, String, Option<Coordinator>, Vec<GroupMember>);

/// The outcome of an admin request. Each entry has its own error.
#[derive(Clone, Debug)]
pub enum AdminOutcome {
    /// The created, deleted or changed things, by name.
    Entries(Vec<(String, Option<Refusal>)>),
    /// Offsets of partitions; negative where there is none.
    Offsets(Vec<(String, i32, i64, Option<Refusal>)>),
    /// Settings of resources, by the resource's name.
    Configs(Vec<(String, Option<Refusal>, Vec<ConfigEntry>)>),
    /// All groups, and the errors of brokers that did not tell theirs.
    GroupList((Vec<GroupListing>, Vec<Refusal>)),
    /// Described groups.
    Groups(Vec<GroupDescription>),
    /// ACLs by filter.
    Acls(Vec<(Option<Refusal>, Vec<Acl>)>),
}

impl AdminOutcome {
    /// Writes into the errors of groups that no broker answered, and which were asked.
    pub(super) fn explain(mut self, unreachable: &str) -> Self {
        let refusals: Vec<&mut Refusal> = match &mut self {
            Self::Entries(entries) => entries.iter_mut().filter_map(|entry| entry.1.as_mut()).collect(),
            Self::GroupList((_, refusals)) => refusals.iter_mut().collect(),
            Self::Groups(groups) => groups.iter_mut().filter_map(|group| group.1.as_mut()).collect(),
            Self::Offsets(_) | Self::Configs(_) | Self::Acls(_) => Vec::new(),
        };
        for (code, _, text) in refusals {
            if matches!(Code(*code), Code::TIMED_OUT | Code::TRANSPORT) {
                unreachable.clone_into(text);
            }
        }
        self
    }
}

/// Returns the answer in an event; `None` for events of another kind.
pub(super) fn outcome_of(event: &QueueEvent) -> Option<AdminOutcome> {
    let raw = event.as_ptr();
    let mut count = 0;
    // SAFETY: each accessor is called for its own kind of event. Its array has the length that it writes, belongs to
    // the event, and is read at once.
    unsafe {
        match event.number() {
            ffi::RD_KAFKA_EVENT_CREATETOPICS_RESULT => {
                let result = ffi::rd_kafka_event_CreateTopics_result(raw);
                let topics = ffi::rd_kafka_CreateTopics_result_topics(result, &raw mut count);
                Some(AdminOutcome::Entries(each(topics, count, |topic| topic_result(topic))))
            }
            ffi::RD_KAFKA_EVENT_DELETETOPICS_RESULT => {
                let result = ffi::rd_kafka_event_DeleteTopics_result(raw);
                let topics = ffi::rd_kafka_DeleteTopics_result_topics(result, &raw mut count);
                Some(AdminOutcome::Entries(each(topics, count, |topic| topic_result(topic))))
            }
            ffi::RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT => {
                let result = ffi::rd_kafka_event_CreatePartitions_result(raw);
                let topics = ffi::rd_kafka_CreatePartitions_result_topics(result, &raw mut count);
                Some(AdminOutcome::Entries(each(topics, count, |topic| topic_result(topic))))
            }
            ffi::RD_KAFKA_EVENT_DESCRIBECONFIGS_RESULT => {
                let result = ffi::rd_kafka_event_DescribeConfigs_result(raw);
                let resources = ffi::rd_kafka_DescribeConfigs_result_resources(result, &raw mut count);
                Some(AdminOutcome::Configs(each(resources, count, |resource| {
                    let (name, refusal) = resource_result(resource);
                    let mut entries = 0;
                    let first = ffi::rd_kafka_ConfigResource_configs(resource, &raw mut entries);
                    (name, refusal, each(first, entries, |entry| config_entry(entry)))
                })))
            }
            ffi::RD_KAFKA_EVENT_INCREMENTALALTERCONFIGS_RESULT => {
                let result = ffi::rd_kafka_event_IncrementalAlterConfigs_result(raw);
                let resources = ffi::rd_kafka_IncrementalAlterConfigs_result_resources(result, &raw mut count);
                Some(AdminOutcome::Entries(each(resources, count, |resource| resource_result(resource))))
            }
            ffi::RD_KAFKA_EVENT_LISTOFFSETS_RESULT => {
                let result = ffi::rd_kafka_event_ListOffsets_result(raw);
                let infos = ffi::rd_kafka_ListOffsets_result_infos(result, &raw mut count);
                Some(AdminOutcome::Offsets(each(infos, count, |info| {
                    let entry = ffi::rd_kafka_ListOffsetsResultInfo_topic_partition(info);
                    let code = Code((&raw const (*entry).err).cast::<i32>().read());
                    (text_of((*entry).topic), (*entry).partition, (*entry).offset, refusal_of_code(code))
                })))
            }
            ffi::RD_KAFKA_EVENT_DELETERECORDS_RESULT => {
                let result = ffi::rd_kafka_event_DeleteRecords_result(raw);
                let list = TopicPartitionList::copy_of(ffi::rd_kafka_DeleteRecords_result_offsets(result));
                Some(AdminOutcome::Offsets(offsets_of(&list)))
            }
            ffi::RD_KAFKA_EVENT_ELECTLEADERS_RESULT => {
                let result = ffi::rd_kafka_event_ElectLeaders_result(raw);
                let partitions = ffi::rd_kafka_ElectLeaders_result_partitions(result, &raw mut count);
                Some(AdminOutcome::Offsets(each(partitions, count, |one| {
                    let entry = ffi::rd_kafka_topic_partition_result_partition(one);
                    let refusal = refusal_of(ffi::rd_kafka_topic_partition_result_error(one));
                    (text_of((*entry).topic), (*entry).partition, -1, refusal)
                })))
            }
            _ => group_outcome_of(event).or_else(|| acl_outcome_of(event)),
        }
    }
}

fn group_outcome_of(event: &QueueEvent) -> Option<AdminOutcome> {
    let raw = event.as_ptr();
    let mut count = 0;
    // SAFETY: as in `outcome_of`.
    unsafe {
        match event.number() {
            ffi::RD_KAFKA_EVENT_LISTCONSUMERGROUPS_RESULT => {
                let result = ffi::rd_kafka_event_ListConsumerGroups_result(raw);
                let groups = ffi::rd_kafka_ListConsumerGroups_result_valid(result, &raw mut count);
                let groups = each(groups, count, |group| group_listing(group));
                let errors = ffi::rd_kafka_ListConsumerGroups_result_errors(result, &raw mut count);
                let errors = each(errors, count, |error| refusal_of(error)).into_iter().flatten();
                Some(AdminOutcome::GroupList((groups, errors.collect())))
            }
            ffi::RD_KAFKA_EVENT_DESCRIBECONSUMERGROUPS_RESULT => {
                let result = ffi::rd_kafka_event_DescribeConsumerGroups_result(raw);
                let groups = ffi::rd_kafka_DescribeConsumerGroups_result_groups(result, &raw mut count);
                Some(AdminOutcome::Groups(each(groups, count, |group| group_description(group))))
            }
            ffi::RD_KAFKA_EVENT_DELETEGROUPS_RESULT => {
                let result = ffi::rd_kafka_event_DeleteGroups_result(raw);
                let groups = ffi::rd_kafka_DeleteGroups_result_groups(result, &raw mut count);
                Some(AdminOutcome::Entries(each(groups, count, |group| {
                    let refusal = refusal_of(ffi::rd_kafka_group_result_error(group));
                    (text_of(ffi::rd_kafka_group_result_name(group)), refusal)
                })))
            }
            ffi::RD_KAFKA_EVENT_LISTCONSUMERGROUPOFFSETS_RESULT => {
                let result = ffi::rd_kafka_event_ListConsumerGroupOffsets_result(raw);
                let groups = ffi::rd_kafka_ListConsumerGroupOffsets_result_groups(result, &raw mut count);
                Some(group_offsets(groups, count))
            }
            ffi::RD_KAFKA_EVENT_ALTERCONSUMERGROUPOFFSETS_RESULT => {
                let result = ffi::rd_kafka_event_AlterConsumerGroupOffsets_result(raw);
                let groups = ffi::rd_kafka_AlterConsumerGroupOffsets_result_groups(result, &raw mut count);
                Some(group_offsets(groups, count))
            }
            ffi::RD_KAFKA_EVENT_DELETECONSUMERGROUPOFFSETS_RESULT => {
                let result = ffi::rd_kafka_event_DeleteConsumerGroupOffsets_result(raw);
                let groups = ffi::rd_kafka_DeleteConsumerGroupOffsets_result_groups(result, &raw mut count);
                Some(group_offsets(groups, count))
            }
            _ => None,
        }
    }
}

fn acl_outcome_of(event: &QueueEvent) -> Option<AdminOutcome> {
    let raw = event.as_ptr();
    let mut count = 0;
    // SAFETY: as in `outcome_of`.
    unsafe {
        match event.number() {
            ffi::RD_KAFKA_EVENT_CREATEACLS_RESULT => {
                let result = ffi::rd_kafka_event_CreateAcls_result(raw);
                let acls = ffi::rd_kafka_CreateAcls_result_acls(result, &raw mut count);
                Some(AdminOutcome::Entries(each(acls, count, |acl| {
                    (String::new(), refusal_of(ffi::rd_kafka_acl_result_error(acl)))
                })))
            }
            ffi::RD_KAFKA_EVENT_DESCRIBEACLS_RESULT => {
                let result = ffi::rd_kafka_event_DescribeAcls_result(raw);
                let acls = ffi::rd_kafka_DescribeAcls_result_acls(result, &raw mut count);
                Some(AdminOutcome::Acls(vec![(None, each(acls, count, |acl| acl_of(acl)))]))
            }
            ffi::RD_KAFKA_EVENT_DELETEACLS_RESULT => {
                let result = ffi::rd_kafka_event_DeleteAcls_result(raw);
                let responses = ffi::rd_kafka_DeleteAcls_result_responses(result, &raw mut count);
                let mut found = Vec::new();
                for (refusal, acls) in each(responses, count, |response| {
                    let mut matches = 0;
                    let acls = ffi::rd_kafka_DeleteAcls_result_response_matching_acls(response, &raw mut matches);
                    let refusal = refusal_of(ffi::rd_kafka_DeleteAcls_result_response_error(response));
                    (refusal, each(acls, matches, |acl| (refusal_of(ffi::rd_kafka_AclBinding_error(acl)), acl_of(acl))))
                }) {
                    // A broker may refuse one ACL of those that a filter matches.
                    let (kept, gone): (Vec<_>, Vec<_>) = acls.into_iter().partition(|(refusal, _)| refusal.is_some());
                    found.push((refusal, gone.into_iter().map(|(_, acl)| acl).collect()));
                    found.extend(kept.into_iter().map(|(refusal, acl)| (refusal, vec![acl])));
                }
                Some(AdminOutcome::Acls(found))
            }
            _ => None,
        }
    }
}

/// Converts each element of an array of librdkafka's.
///
/// # Safety
/// `first` points to `count` pointers, or `count` is 0.
unsafe fn each<T, R>(first: *mut *const T, count: usize, convert: impl Fn(*const T) -> R) -> Vec<R> {
    // SAFETY: the caller's promise.
    (0..count).map(|index| convert(unsafe { *first.add(index) })).collect()
}

/// # Safety
/// `topic` is a live result.
unsafe fn topic_result(topic: *const ffi::rd_kafka_topic_result_t) -> (String, Option<Refusal>) {
    // SAFETY: the caller's promise; the strings belong to the result.
    unsafe {
        let code = Code::of(ffi::rd_kafka_topic_result_error(topic));
        let text = text_of(ffi::rd_kafka_topic_result_error_string(topic));
        (text_of(ffi::rd_kafka_topic_result_name(topic)), refusal(code, text))
    }
}

/// # Safety
/// `resource` is a live result.
unsafe fn resource_result(resource: *const ffi::rd_kafka_ConfigResource_t) -> (String, Option<Refusal>) {
    // SAFETY: the caller's promise; the strings belong to the result.
    unsafe {
        let code = Code::of(ffi::rd_kafka_ConfigResource_error(resource));
        let text = text_of(ffi::rd_kafka_ConfigResource_error_string(resource));
        (text_of(ffi::rd_kafka_ConfigResource_name(resource)), refusal(code, text))
    }
}

/// # Safety
/// `entry` is a live entry.
unsafe fn config_entry(entry: *const ffi::rd_kafka_ConfigEntry_t) -> ConfigEntry {
    // SAFETY: the caller's promise; the strings belong to the entry.
    unsafe {
        let is_sensitive = ffi::rd_kafka_ConfigEntry_is_sensitive(entry) == 1;
        let value = optional(ffi::rd_kafka_ConfigEntry_value(entry)).filter(|_| !is_sensitive);
        (
            text_of(ffi::rd_kafka_ConfigEntry_name(entry)),
            value,
            ffi::rd_kafka_ConfigEntry_source(entry),
            ffi::rd_kafka_ConfigEntry_is_default(entry) == 1,
            is_sensitive,
            ffi::rd_kafka_ConfigEntry_is_read_only(entry) == 1,
        )
    }
}

/// # Safety
/// `group` is a live listing.
unsafe fn group_listing(group: *const ffi::rd_kafka_ConsumerGroupListing_t) -> GroupListing {
    // SAFETY: the caller's promise; the names of states and kinds are constants.
    unsafe {
        (
            text_of(ffi::rd_kafka_ConsumerGroupListing_group_id(group)),
            text_of(ffi::rd_kafka_consumer_group_state_name(ffi::rd_kafka_ConsumerGroupListing_state(group))),
            text_of(ffi::rd_kafka_consumer_group_type_name(ffi::rd_kafka_ConsumerGroupListing_type(group))),
            ffi::rd_kafka_ConsumerGroupListing_is_simple_consumer_group(group) == 1,
        )
    }
}

/// # Safety
/// `group` is a live description.
unsafe fn group_description(group: *const ffi::rd_kafka_ConsumerGroupDescription_t) -> GroupDescription {
    // SAFETY: the caller's promise; all that is read belongs to the description.
    unsafe {
        let node = ffi::rd_kafka_ConsumerGroupDescription_coordinator(group);
        let coordinator = (!node.is_null()).then(|| {
            (ffi::rd_kafka_Node_id(node), text_of(ffi::rd_kafka_Node_host(node)), ffi::rd_kafka_Node_port(node))
        });
        let members = (0..ffi::rd_kafka_ConsumerGroupDescription_member_count(group))
            .map(|index| member_of(ffi::rd_kafka_ConsumerGroupDescription_member(group, index)));
        (
            text_of(ffi::rd_kafka_ConsumerGroupDescription_group_id(group)),
            refusal_of(ffi::rd_kafka_ConsumerGroupDescription_error(group)),
            text_of(ffi::rd_kafka_consumer_group_state_name(ffi::rd_kafka_ConsumerGroupDescription_state(group))),
            text_of(ffi::rd_kafka_consumer_group_type_name(ffi::rd_kafka_ConsumerGroupDescription_type(group))),
            text_of(ffi::rd_kafka_ConsumerGroupDescription_partition_assignor(group)),
            coordinator,
            members.collect(),
        )
    }
}

/// # Safety
/// `member` is a live description.
unsafe fn member_of(member: *const ffi::rd_kafka_MemberDescription_t) -> GroupMember {
    // SAFETY: the caller's promise; all that is read belongs to the description.
    unsafe {
        let assignment = ffi::rd_kafka_MemberDescription_assignment(member);
        let partitions = if assignment.is_null() {
            TopicPartitionList::new()
        } else {
            TopicPartitionList::copy_of(ffi::rd_kafka_MemberAssignment_partitions(assignment))
        };
        let partitions = partitions.partitions().into_iter().map(|at| (at.topic.to_string(), at.partition));
        (
            text_of(ffi::rd_kafka_MemberDescription_consumer_id(member)),
            text_of(ffi::rd_kafka_MemberDescription_client_id(member)),
            text_of(ffi::rd_kafka_MemberDescription_host(member)),
            optional(ffi::rd_kafka_MemberDescription_group_instance_id(member)),
            partitions.collect(),
        )
    }
}

/// Returns the offsets of the only group in an answer. An error of the group is one of each partition, and of none
/// where the group has none.
///
/// # Safety
/// `groups` points to `count` live results.
unsafe fn group_offsets(groups: *mut *const ffi::rd_kafka_group_result_t, count: usize) -> AdminOutcome {
    // SAFETY: the caller's promise; the list is copied.
    let found = unsafe {
        each(groups, count, |group| {
            let list = TopicPartitionList::copy_of(ffi::rd_kafka_group_result_partitions(group));
            let refusal = refusal_of(ffi::rd_kafka_group_result_error(group));
            let mut offsets = offsets_of(&list);
            if refusal.is_some() && offsets.is_empty() {
                offsets.push((String::new(), -1, -1, None));
            }
            for offset in &mut offsets {
                offset.3 = offset.3.take().or_else(|| refusal.clone());
            }
            offsets
        })
    };
    AdminOutcome::Offsets(found.into_iter().flatten().collect())
}

/// # Safety
/// `acl` is live.
unsafe fn acl_of(acl: *const ffi::rd_kafka_AclBinding_t) -> Acl {
    // SAFETY: the caller's promise; the strings belong to the ACL.
    unsafe {
        (
            ffi::rd_kafka_AclBinding_restype(acl),
            optional(ffi::rd_kafka_AclBinding_name(acl)),
            ffi::rd_kafka_AclBinding_resource_pattern_type(acl),
            optional(ffi::rd_kafka_AclBinding_principal(acl)),
            optional(ffi::rd_kafka_AclBinding_host(acl)),
            ffi::rd_kafka_AclBinding_operation(acl),
            ffi::rd_kafka_AclBinding_permission_type(acl),
        )
    }
}

fn offsets_of(list: &TopicPartitionList) -> Vec<(String, i32, i64, Option<Refusal>)> {
    let entries = list.entries().into_iter();
    entries.map(|(at, offset, code)| (at.topic.to_string(), at.partition, offset, refusal_of_code(code))).collect()
}

/// librdkafka's text ends in a colon where the broker gave none.
fn refusal(code: Code, text: String) -> Option<Refusal> {
    let is_cut = text.is_empty() || text.ends_with(": ");
    (code != Code::NONE).then(|| (code.0, code.name(), if is_cut { text + &code.description() } else { text }))
}

fn refusal_of_code(code: Code) -> Option<Refusal> {
    refusal(code, String::new())
}

/// # Safety
/// `error` is null or live.
unsafe fn refusal_of(error: *const ffi::rd_kafka_error_t) -> Option<Refusal> {
    if error.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; the text belongs to the error.
    unsafe { refusal(Code::of(ffi::rd_kafka_error_code(error)), text_of(ffi::rd_kafka_error_string(error))) }
}

/// # Safety
/// `text` is null or points to a string that ends in zero.
unsafe fn optional(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { text_of(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_no_broker_answers_for_name_the_brokers() {
        let refused = |code: Code| (code.0, code.name(), "Local: Timed out".to_owned());
        let found =
            AdminOutcome::GroupList((Vec::new(), vec![refused(Code::TIMED_OUT), refused(Code::GROUP_AUTHORIZATION)]));
        let AdminOutcome::GroupList((_, refusals)) = found.explain("no broker of a:1 answered") else {
            panic!("another kind");
        };
        assert_eq!([&refusals[0].2, &refusals[1].2], ["no broker of a:1 answered", "Local: Timed out"]);
    }

    #[test]
    fn an_error_without_a_text_says_what_its_code_means() {
        let text = |text: &str| refusal(Code::UNKNOWN_TOPIC, text.to_owned()).expect("an error").2;
        assert_eq!(text("no such topic"), "no such topic");
        assert_eq!(text(""), "Broker: Unknown topic or partition");
        assert_eq!(text("Describe: "), "Describe: Broker: Unknown topic or partition");
        assert_eq!(refusal(Code::NONE, String::new()), None);
    }
}
