//! Hands admin requests to librdkafka, which copies all that it is given.

use std::ffi::{CString, c_char};
use std::ptr::null;

use super::super::{Position, TopicPartition, TopicPartitionList, c_string, ffi, text_of};
use super::request::{Acl, AdminRequest, ConfigChanges, NewTopic, OffsetOf, PartitionOf};
use crate::{Code, Error, Result};

/// The longest reason that librdkafka gives for refusing an argument, in bytes.
const REASON_BYTES: usize = 256;

/// Where a request goes, and where its answer comes: all of it alive.
pub(super) struct Target {
    pub(super) handle: *mut ffi::rd_kafka_t,
    pub(super) options: *const ffi::rd_kafka_AdminOptions_t,
    pub(super) queue: *mut ffi::rd_kafka_queue_t,
}

/// Returns the kind of a request, as librdkafka's options want it.
pub(super) const fn operation_of(request: &AdminRequest) -> ffi::rd_kafka_admin_op_t {
    use ffi::rd_kafka_admin_op_t as op;
    match request {
        AdminRequest::CreateTopics(_) => op::RD_KAFKA_ADMIN_OP_CREATETOPICS,
        AdminRequest::DeleteTopics(_) => op::RD_KAFKA_ADMIN_OP_DELETETOPICS,
        AdminRequest::CreatePartitions(_) => op::RD_KAFKA_ADMIN_OP_CREATEPARTITIONS,
        AdminRequest::DescribeConfigs(_) => op::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS,
        AdminRequest::AlterConfigs(_) => op::RD_KAFKA_ADMIN_OP_INCREMENTALALTERCONFIGS,
        AdminRequest::ListGroups => op::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS,
        AdminRequest::DescribeGroups(_) => op::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS,
        AdminRequest::DeleteGroups(_) => op::RD_KAFKA_ADMIN_OP_DELETEGROUPS,
        AdminRequest::GroupOffsets(_) => op::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS,
        AdminRequest::AlterGroupOffsets(_) => op::RD_KAFKA_ADMIN_OP_ALTERCONSUMERGROUPOFFSETS,
        AdminRequest::DeleteGroupOffsets(_) => op::RD_KAFKA_ADMIN_OP_DELETECONSUMERGROUPOFFSETS,
        AdminRequest::ListOffsets(_) | AdminRequest::ListStableOffsets(_) => op::RD_KAFKA_ADMIN_OP_LISTOFFSETS,
        AdminRequest::DeleteRecords(_) => op::RD_KAFKA_ADMIN_OP_DELETERECORDS,
        AdminRequest::CreateAcls(_) => op::RD_KAFKA_ADMIN_OP_CREATEACLS,
        AdminRequest::DescribeAcls(_) => op::RD_KAFKA_ADMIN_OP_DESCRIBEACLS,
        AdminRequest::DeleteAcls(_) => op::RD_KAFKA_ADMIN_OP_DELETEACLS,
        AdminRequest::ElectLeaders(_) => op::RD_KAFKA_ADMIN_OP_ELECTLEADERS,
    }
}

/// Sends a request. An error means that nothing was sent.
pub(super) fn send(request: &AdminRequest, to: &Target) -> Result<()> {
    // SAFETY: the target is alive. Each function takes the objects that were made for it, and copies them.
    unsafe {
        match request {
            AdminRequest::CreateTopics(topics) => {
                let mut topics = Objects::new(ffi::rd_kafka_NewTopic_destroy, topics, new_topic)?;
                topics.send(ffi::rd_kafka_CreateTopics, to);
            }
            AdminRequest::DeleteTopics(topics) => {
                let make = |name: &String| Ok(ffi::rd_kafka_DeleteTopic_new(c_string("a topic", name)?.as_ptr()));
                Objects::new(ffi::rd_kafka_DeleteTopic_destroy, topics, make)?.send(ffi::rd_kafka_DeleteTopics, to);
            }
            AdminRequest::CreatePartitions(topics) => {
                Objects::new(ffi::rd_kafka_NewPartitions_destroy, topics, new_partitions)?
                    .send(ffi::rd_kafka_CreatePartitions, to);
            }
            AdminRequest::DescribeConfigs(resources) => {
                let make = |(kind, name): &(i32, String)| resource(*kind, name, &Vec::new());
                Objects::new(ffi::rd_kafka_ConfigResource_destroy, resources, make)?
                    .send(ffi::rd_kafka_DescribeConfigs, to);
            }
            AdminRequest::AlterConfigs(resources) => {
                let make = |(kind, name, changes): &(i32, String, ConfigChanges)| resource(*kind, name, changes);
                Objects::new(ffi::rd_kafka_ConfigResource_destroy, resources, make)?
                    .send(ffi::rd_kafka_IncrementalAlterConfigs, to);
            }
            AdminRequest::ListOffsets(wanted) | AdminRequest::ListStableOffsets(wanted) => {
                ffi::rd_kafka_ListOffsets(to.handle, offset_list(wanted)?.as_ptr(), to.options, to.queue);
            }
            AdminRequest::DeleteRecords(before) => {
                let make = |list: &TopicPartitionList| Ok(ffi::rd_kafka_DeleteRecords_new(list.as_ptr()));
                Objects::new(ffi::rd_kafka_DeleteRecords_destroy, &[offset_list(before)?], make)?
                    .send(ffi::rd_kafka_DeleteRecords, to);
            }
            AdminRequest::CreateAcls(acls) => {
                let make = |acl: &Acl| binding(acl, ffi::rd_kafka_AclBinding_new);
                Objects::new(ffi::rd_kafka_AclBinding_destroy, acls, make)?.send(ffi::rd_kafka_CreateAcls, to);
            }
            AdminRequest::DescribeAcls(filter) => {
                let filter = binding(filter, ffi::rd_kafka_AclBindingFilter_new)?;
                ffi::rd_kafka_DescribeAcls(to.handle, filter, to.options, to.queue);
                ffi::rd_kafka_AclBinding_destroy(filter);
            }
            AdminRequest::DeleteAcls(filters) => {
                let make = |filter: &Acl| binding(filter, ffi::rd_kafka_AclBindingFilter_new);
                Objects::new(ffi::rd_kafka_AclBinding_destroy, filters, make)?.send(ffi::rd_kafka_DeleteAcls, to);
            }
            AdminRequest::ElectLeaders((is_unclean, partitions)) => {
                let election = i32::from(*is_unclean);
                let request = ffi::rd_kafka_ElectLeaders_new(election, partition_list(partitions)?.as_ptr());
                ffi::rd_kafka_ElectLeaders(to.handle, request, to.options, to.queue);
                ffi::rd_kafka_ElectLeaders_destroy(request);
            }
            _ => send_of_group(request, to)?,
        }
    }
    Ok(())
}

/// Sends a request about groups.
///
/// # Safety
/// The target is alive.
unsafe fn send_of_group(request: &AdminRequest, to: &Target) -> Result<()> {
    // SAFETY: as in `send`.
    unsafe {
        match request {
            AdminRequest::DescribeGroups(groups) => {
                let names = groups.iter().map(|name| c_string("a group", name)).collect::<Result<Vec<CString>>>()?;
                let mut raw: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
                ffi::rd_kafka_DescribeConsumerGroups(to.handle, raw.as_mut_ptr(), raw.len(), to.options, to.queue);
            }
            AdminRequest::DeleteGroups(groups) => {
                let make = |name: &String| Ok(ffi::rd_kafka_DeleteGroup_new(c_string("a group", name)?.as_ptr()));
                Objects::new(ffi::rd_kafka_DeleteGroup_destroy, groups, make)?.send(ffi::rd_kafka_DeleteGroups, to);
            }
            AdminRequest::GroupOffsets(group) => {
                // Null partitions mean all.
                let make = |name: &&String| {
                    Ok(ffi::rd_kafka_ListConsumerGroupOffsets_new(c_string("a group", name)?.as_ptr(), null()))
                };
                Objects::new(ffi::rd_kafka_ListConsumerGroupOffsets_destroy, &[group], make)?
                    .send(ffi::rd_kafka_ListConsumerGroupOffsets, to);
            }
            AdminRequest::AlterGroupOffsets((group, offsets)) => {
                let list = offset_list(offsets)?;
                let make = |name: &&String| {
                    let name = c_string("a group", name)?;
                    Ok(ffi::rd_kafka_AlterConsumerGroupOffsets_new(name.as_ptr(), list.as_ptr()))
                };
                Objects::new(ffi::rd_kafka_AlterConsumerGroupOffsets_destroy, &[group], make)?
                    .send(ffi::rd_kafka_AlterConsumerGroupOffsets, to);
            }
            AdminRequest::DeleteGroupOffsets((group, partitions)) => {
                let list = partition_list(partitions)?;
                let make = |name: &&String| {
                    let name = c_string("a group", name)?;
                    Ok(ffi::rd_kafka_DeleteConsumerGroupOffsets_new(name.as_ptr(), list.as_ptr()))
                };
                Objects::new(ffi::rd_kafka_DeleteConsumerGroupOffsets_destroy, &[group], make)?
                    .send(ffi::rd_kafka_DeleteConsumerGroupOffsets, to);
            }
            // `send` has the requests that are about no group.
            _ => ffi::rd_kafka_ListConsumerGroups(to.handle, to.options, to.queue),
        }
    }
    Ok(())
}

/// Objects of librdkafka's that a request is made of. They are destroyed once it is sent.
struct Objects<T> {
    natives: Vec<*mut T>,
    destroy: unsafe extern "C" fn(*mut T),
}

impl<T> Objects<T> {
    /// Makes an object of each item.
    fn new<Item>(
        destroy: unsafe extern "C" fn(*mut T),
        items: &[Item],
        make: impl Fn(&Item) -> Result<*mut T>,
    ) -> Result<Self> {
        let mut objects = Self { natives: Vec::with_capacity(items.len()), destroy };
        for item in items {
            objects.natives.push(make(item)?);
        }
        Ok(objects)
    }

    /// # Safety
    /// The target is alive, and the function takes such objects and copies them.
    unsafe fn send(
        &mut self,
        function: unsafe extern "C" fn(
            *mut ffi::rd_kafka_t,
            *mut *mut T,
            usize,
            *const ffi::rd_kafka_AdminOptions_t,
            *mut ffi::rd_kafka_queue_t,
        ),
        to: &Target,
    ) {
        // SAFETY: the caller's promise.
        unsafe { function(to.handle, self.natives.as_mut_ptr(), self.natives.len(), to.options, to.queue) };
    }
}

impl<T> Drop for Objects<T> {
    fn drop(&mut self) {
        for native in &self.natives {
            // SAFETY: each was made for this list, which destroys it once.
            unsafe { (self.destroy)(*native) };
        }
    }
}

fn new_topic((name, partitions, replicas, config): &NewTopic) -> Result<*mut ffi::rd_kafka_NewTopic_t> {
    let topic = c_string("a topic", name)?;
    let native = made(&format!("topic {name:?}"), |reason| {
        // SAFETY: librdkafka copies the name.
        unsafe { ffi::rd_kafka_NewTopic_new(topic.as_ptr(), *partitions, *replicas, reason, REASON_BYTES) }
    })?;
    for (property, value) in config {
        let set = c_string("a topic setting", property).and_then(|property| {
            let value = c_string("a topic setting's value", value)?;
            // SAFETY: the topic is ours; librdkafka copies both strings.
            Code::of(unsafe { ffi::rd_kafka_NewTopic_set_config(native, property.as_ptr(), value.as_ptr()) })
                .check(format!("configure topic {name}"))
        });
        if let Err(error) = set {
            // SAFETY: it was made above, and is used no more.
            unsafe { ffi::rd_kafka_NewTopic_destroy(native) };
            return Err(error);
        }
    }
    Ok(native)
}

fn new_partitions((name, total): &(String, usize)) -> Result<*mut ffi::rd_kafka_NewPartitions_t> {
    let topic = c_string("a topic", name)?;
    made(&format!("topic {name:?}"), |reason| {
        // SAFETY: librdkafka copies the name.
        unsafe { ffi::rd_kafka_NewPartitions_new(topic.as_ptr(), *total, reason, REASON_BYTES) }
    })
}

fn resource(kind: i32, name: &str, changes: &ConfigChanges) -> Result<*mut ffi::rd_kafka_ConfigResource_t> {
    let resource = c_string("the owner of settings", name)?;
    // SAFETY: librdkafka copies the name, and refuses what it can't use.
    let native = unsafe { ffi::rd_kafka_ConfigResource_new(kind, resource.as_ptr()) };
    if native.is_null() {
        return Err(Error::Invalid { reason: format!("{name:?} can't have settings") });
    }
    for (property, value) in changes {
        if let Err(error) = add_change(native, property, value.as_deref()) {
            // SAFETY: it was made above, and is used no more.
            unsafe { ffi::rd_kafka_ConfigResource_destroy(native) };
            return Err(error);
        }
    }
    Ok(native)
}

fn add_change(native: *mut ffi::rd_kafka_ConfigResource_t, property: &str, value: Option<&str>) -> Result<()> {
    use ffi::rd_kafka_AlterConfigOpType_t::{RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE, RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET};
    let name = c_string("a setting", property)?;
    let text = value.map(|value| c_string("a setting's value", value)).transpose()?;
    let change = if value.is_some() { RD_KAFKA_ALTER_CONFIG_OP_TYPE_SET } else { RD_KAFKA_ALTER_CONFIG_OP_TYPE_DELETE };
    let pointer = text.as_ref().map_or(null(), |text| text.as_ptr());
    // SAFETY: the resource is alive; librdkafka copies both strings. The error is ours to destroy.
    unsafe {
        let error = ffi::rd_kafka_ConfigResource_add_incremental_config(native, name.as_ptr(), change, pointer);
        if error.is_null() {
            return Ok(());
        }
        let reason = format!("setting {property:?}: {}", text_of(ffi::rd_kafka_error_string(error)));
        ffi::rd_kafka_error_destroy(error);
        Err(Error::Invalid { reason })
    }
}

/// The functions that make an ACL, and a filter for ACLs.
type NewBinding = unsafe extern "C" fn(
    i32,
    *const c_char,
    i32,
    *const c_char,
    *const c_char,
    i32,
    i32,
    *mut c_char,
    usize,
) -> *mut ffi::rd_kafka_AclBinding_t;

fn binding(acl: &Acl, make: NewBinding) -> Result<*mut ffi::rd_kafka_AclBinding_t> {
    let (kind, name, pattern, principal, host, operation, permission) = acl;
    let text = |text: &Option<String>| text.as_ref().map(|text| c_string("an ACL", text)).transpose();
    let (name, principal, host) = (text(name)?, text(principal)?, text(host)?);
    let pointer = |text: &Option<CString>| text.as_ref().map_or(null(), |text| text.as_ptr());
    let (name, principal, host) = (pointer(&name), pointer(&principal), pointer(&host));
    made("ACL", |reason| {
        // SAFETY: the strings live until it returns; librdkafka copies them, and refuses numbers that it does not know.
        unsafe { make(*kind, name, *pattern, principal, host, *operation, *permission, reason, REASON_BYTES) }
    })
}

/// Makes an object with a function that returns null, and writes a reason, where it refuses its arguments.
fn made<T>(what: &str, make: impl FnOnce(*mut c_char) -> *mut T) -> Result<*mut T> {
    let mut reason = [0 as c_char; REASON_BYTES];
    let native = make(reason.as_mut_ptr());
    if native.is_null() {
        // SAFETY: librdkafka ends the reason with a zero, and it had one before.
        let reason = unsafe { text_of(reason.as_ptr()) };
        return Err(Error::Invalid { reason: format!("{what}: {reason}") });
    }
    Ok(native)
}

fn offset_list(offsets: &[OffsetOf]) -> Result<TopicPartitionList> {
    let mut list = TopicPartitionList::new();
    for (topic, partition, offset) in offsets {
        let position = Position { offset: *offset, leader_epoch: -1 };
        list.add(&TopicPartition::new(topic.as_str(), *partition), Some(position))?;
    }
    Ok(list)
}

fn partition_list(partitions: &[PartitionOf]) -> Result<TopicPartitionList> {
    let partitions = partitions.iter().map(|(topic, number)| TopicPartition::new(topic.as_str(), *number));
    TopicPartitionList::of(&partitions.collect::<Vec<_>>())
}
