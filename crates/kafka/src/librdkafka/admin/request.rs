//! The requests of an admin client. Their content is plain tuples, which any caller can convert to and from its own.

/// A topic to create: name, partitions, replicas (-1 each for the brokers' default), settings.
pub type NewTopic = (String, i32, i32, Vec<(String, String)>);
/// A topic and one of its partitions.
pub type PartitionOf = (String, i32);
/// A topic, one of its partitions, and an offset.
pub type OffsetOf = (String, i32, i64);
/// The owner of settings: the number of its kind in Kafka's protocol (2 topic, 3 group, 4 broker), and its name.
pub type Resource = (i32, String);
/// Changes of settings: name, and the new value; `None` takes the setting back to its default.
pub type ConfigChanges = Vec<(String, Option<String>)>;
/// An ACL, or a filter for ACLs: kind of resource, its name, pattern, principal, host, operation, permission. The
/// numbers are those of Kafka's protocol. In a filter, 1 and `None` stand for any.
pub type Acl = (i32, Option<String>, i32, Option<String>, Option<String>, i32, i32);

/// A request to the brokers that is neither produce nor consume.
#[derive(Clone, Debug)]
pub enum AdminRequest {
    /// Creates topics. Answer: entries.
    CreateTopics(Vec<NewTopic>),
    /// Deletes topics. Answer: entries.
    DeleteTopics(Vec<String>),
    /// Adds partitions to topics up to a total. Answer: entries.
    CreatePartitions(Vec<(String, usize)>),
    /// Asks for all settings of resources. Answer: configs. Only one of them may be a broker.
    DescribeConfigs(Vec<Resource>),
    /// Changes some settings of resources and leaves the others. Answer: entries. Only one of them may be a broker.
    AlterConfigs(Vec<(i32, String, ConfigChanges)>),
    /// Asks all brokers for their groups. Answer: a group list.
    ListGroups,
    /// Asks for the state and the members of groups. Answer: groups.
    DescribeGroups(Vec<String>),
    /// Deletes groups with their offsets. Answer: entries.
    DeleteGroups(Vec<String>),
    /// Asks for the committed offsets of a group. Answer: offsets.
    GroupOffsets(String),
    /// Commits offsets in the place of a group without members. Answer: offsets.
    AlterGroupOffsets((String, Vec<OffsetOf>)),
    /// Deletes committed offsets of a group. Answer: offsets.
    DeleteGroupOffsets((String, Vec<PartitionOf>)),
    /// Asks for offsets: -2 for the earliest, -1 for the latest, else the first at or after a time in ms. Answer:
    /// offsets.
    ListOffsets(Vec<OffsetOf>),
    /// The same for a reader that passes no open transaction: the latest is the last stable offset. Answer: offsets.
    ListStableOffsets(Vec<OffsetOf>),
    /// Deletes the records before offsets. Answer: offsets, the first ones that are still there.
    DeleteRecords(Vec<OffsetOf>),
    /// Adds ACLs. Answer: entries without a name, in order.
    CreateAcls(Vec<Acl>),
    /// Asks for the ACLs that match a filter. Answer: ACLs, one entry.
    DescribeAcls(Acl),
    /// Deletes the ACLs that match filters. Answer: ACLs, an entry for each filter.
    DeleteAcls(Vec<Acl>),
    /// Has leaders elected: unclean ones, or preferred ones; for partitions. Answer: offsets, which mean nothing.
    ElectLeaders((bool, Vec<PartitionOf>)),
}

impl AdminRequest {
    /// Returns the operation with its objects, for people: "create topic orders".
    pub(super) fn operation(&self) -> String {
        match self {
            Self::CreateTopics(topics) => format!("create topic {}", joined(topics, |topic| topic.0.clone())),
            Self::DeleteTopics(topics) => format!("delete topic {}", topics.join(", ")),
            Self::CreatePartitions(topics) => {
                format!("create partitions of {}", joined(topics, |topic| topic.0.clone()))
            }
            Self::DescribeConfigs(resources) => {
                format!("describe settings of {}", joined(resources, |(_, name)| name.clone()))
            }
            Self::AlterConfigs(resources) => {
                format!("alter settings of {}", joined(resources, |(_, name, _)| name.clone()))
            }
            Self::ListGroups => "list groups".to_owned(),
            Self::DescribeGroups(groups) => format!("describe group {}", groups.join(", ")),
            Self::DeleteGroups(groups) => format!("delete group {}", groups.join(", ")),
            Self::GroupOffsets(group) => format!("list offsets of group {group}"),
            Self::AlterGroupOffsets((group, _)) => format!("alter offsets of group {group}"),
            Self::DeleteGroupOffsets((group, _)) => format!("delete offsets of group {group}"),
            Self::ListOffsets(wanted) | Self::ListStableOffsets(wanted) => {
                format!("list offsets of {}", places(wanted))
            }
            Self::DeleteRecords(before) => format!("delete records of {}", places(before)),
            Self::CreateAcls(_) => "create ACLs".to_owned(),
            Self::DescribeAcls(_) => "describe ACLs".to_owned(),
            Self::DeleteAcls(_) => "delete ACLs".to_owned(),
            Self::ElectLeaders((_, partitions)) => {
                format!("elect leaders of {}", joined(partitions, |(topic, partition)| format!("{topic}[{partition}]")))
            }
        }
    }
}

fn joined<T>(items: &[T], name: impl Fn(&T) -> String) -> String {
    items.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn places(offsets: &[OffsetOf]) -> String {
    joined(offsets, |(topic, partition, _)| format!("{topic}[{partition}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_names_its_objects() {
        let topics = AdminRequest::CreateTopics(vec![("a".into(), 1, 1, Vec::new()), ("b".into(), 1, 1, Vec::new())]);
        assert_eq!(topics.operation(), "create topic a, b");
        let offsets = AdminRequest::ListOffsets(vec![("a".into(), 0, -1), ("a".into(), 1, -1)]);
        assert_eq!(offsets.operation(), "list offsets of a[0], a[1]");
    }
}
