//! The settings of topics and brokers: their names, types and defaults, and what is wrong with a value.
//!
//! Kafka's `LogConfig`, `KafkaConfig` and `ConfigDef`. Of the brokers' settings only those are here that clients read.

use kafka_protocol::ResponseError;

use crate::admin::Refusal;

/// The type of a setting, with Kafka's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean = 1,
    Text = 2,
    Int = 3,
    Long = 5,
    Double = 6,
    List = 7,
    Password = 9,
}

/// A setting.
#[derive(Debug)]
pub(crate) struct Setting {
    pub name: &'static str,
    pub kind: Kind,
    pub default: &'static str,
    /// The values that it may have; empty for any of its type.
    allowed: &'static [&'static str],
    /// The least number that it may be.
    least: i64,
    /// It can be changed while brokers run.
    pub is_dynamic: bool,
}

const fn setting(name: &'static str, kind: Kind, default: &'static str, least: i64) -> Setting {
    Setting { name, kind, default, allowed: &[], least, is_dynamic: true }
}

const fn one_of(name: &'static str, kind: Kind, default: &'static str, allowed: &'static [&'static str]) -> Setting {
    Setting { name, kind, default, allowed, least: i64::MIN, is_dynamic: true }
}

const fn fixed(name: &'static str, kind: Kind, default: &'static str) -> Setting {
    Setting { name, kind, default, allowed: &[], least: i64::MIN, is_dynamic: false }
}

const NEVER: &str = "9223372036854775807";
const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];

/// The settings of topics, by name.
pub(crate) const OF_TOPICS: &[Setting] = &[
    one_of("cleanup.policy", Kind::List, "delete", &["compact", "delete"]),
    setting("compression.gzip.level", Kind::Int, "-1", -1),
    setting("compression.lz4.level", Kind::Int, "9", 1),
    one_of("compression.type", Kind::Text, "producer", CODECS),
    setting("compression.zstd.level", Kind::Int, "3", -131_072),
    setting("delete.retention.ms", Kind::Long, "86400000", 0),
    setting("file.delete.delay.ms", Kind::Long, "60000", 0),
    setting("flush.messages", Kind::Long, NEVER, 1),
    setting("flush.ms", Kind::Long, NEVER, 0),
    setting("follower.replication.throttled.replicas", Kind::List, "", i64::MIN),
    setting("index.interval.bytes", Kind::Int, "4096", 0),
    setting("leader.replication.throttled.replicas", Kind::List, "", i64::MIN),
    setting("local.retention.bytes", Kind::Long, "-2", -2),
    setting("local.retention.ms", Kind::Long, "-2", -2),
    setting("max.compaction.lag.ms", Kind::Long, NEVER, 1),
    setting("max.message.bytes", Kind::Int, "1048588", 0),
    setting("message.timestamp.after.max.ms", Kind::Long, "3600000", 0),
    setting("message.timestamp.before.max.ms", Kind::Long, NEVER, 0),
    one_of("message.timestamp.type", Kind::Text, "CreateTime", &["CreateTime", "LogAppendTime"]),
    setting("min.cleanable.dirty.ratio", Kind::Double, "0.5", 0),
    setting("min.compaction.lag.ms", Kind::Long, "0", 0),
    setting("min.insync.replicas", Kind::Int, "1", 1),
    setting("preallocate", Kind::Boolean, "false", i64::MIN),
    setting("remote.log.copy.disable", Kind::Boolean, "false", i64::MIN),
    setting("remote.log.delete.on.disable", Kind::Boolean, "false", i64::MIN),
    setting("remote.storage.enable", Kind::Boolean, "false", i64::MIN),
    setting("retention.bytes", Kind::Long, "-1", -1),
    setting("retention.ms", Kind::Long, "604800000", -1),
    setting("segment.bytes", Kind::Int, "1073741824", 1_048_576),
    setting("segment.index.bytes", Kind::Int, "10485760", 4),
    setting("segment.jitter.ms", Kind::Long, "0", 0),
    setting("segment.ms", Kind::Long, "604800000", 1),
    setting("unclean.leader.election.enable", Kind::Boolean, "false", i64::MIN),
];

/// The settings of brokers that clients read, by name.
pub(crate) const OF_BROKERS: &[Setting] = &[
    fixed("auto.create.topics.enable", Kind::Boolean, "true"),
    one_of("compression.type", Kind::Text, "producer", CODECS),
    fixed("default.replication.factor", Kind::Int, "1"),
    fixed("delete.topic.enable", Kind::Boolean, "true"),
    fixed("group.initial.rebalance.delay.ms", Kind::Int, "0"),
    fixed("group.max.session.timeout.ms", Kind::Int, "1800000"),
    fixed("group.min.session.timeout.ms", Kind::Int, "1"),
    fixed("listeners", Kind::List, "PLAINTEXT://127.0.0.1:0"),
    one_of("log.cleanup.policy", Kind::List, "delete", &["compact", "delete"]),
    setting("log.cleaner.threads", Kind::Int, "1", 0),
    setting("log.retention.bytes", Kind::Long, "-1", -1),
    setting("log.retention.ms", Kind::Long, "-1", -1),
    setting("log.segment.bytes", Kind::Int, "1073741824", 1_048_576),
    one_of("log.message.timestamp.type", Kind::Text, "CreateTime", &["CreateTime", "LogAppendTime"]),
    setting("message.max.bytes", Kind::Int, "1048588", 0),
    setting("min.insync.replicas", Kind::Int, "1", 1),
    fixed("node.id", Kind::Int, "1"),
    setting("num.io.threads", Kind::Int, "8", 1),
    setting("num.network.threads", Kind::Int, "3", 1),
    fixed("num.partitions", Kind::Int, "1"),
    fixed("offset.metadata.max.bytes", Kind::Int, "4096"),
    fixed("offsets.retention.minutes", Kind::Int, "10080"),
    fixed("offsets.topic.num.partitions", Kind::Int, "50"),
    fixed("offsets.topic.replication.factor", Kind::Int, "1"),
    fixed("process.roles", Kind::List, "broker,controller"),
    fixed("socket.request.max.bytes", Kind::Int, "104857600"),
    setting("ssl.key.password", Kind::Password, "", i64::MIN),
    setting("ssl.keystore.password", Kind::Password, "", i64::MIN),
    setting("ssl.truststore.password", Kind::Password, "", i64::MIN),
    fixed("transaction.max.timeout.ms", Kind::Int, "900000"),
    setting("unclean.leader.election.enable", Kind::Boolean, "false", i64::MIN),
];

/// Returns a setting of a table by its name.
pub(crate) fn find<'a>(table: &'a [Setting], name: &str) -> Option<&'a Setting> {
    table.iter().find(|setting| setting.name == name)
}

impl Setting {
    /// Checks a value.
    ///
    /// # Errors
    /// `InvalidConfig` with Kafka's text.
    pub fn check(&self, value: &str) -> Result<(), Refusal> {
        match self.fault(value) {
            None => Ok(()),
            Some(fault) => {
                let text = format!("Invalid value {value} for configuration {}: {fault}", self.name);
                Err(Refusal::new(ResponseError::InvalidConfig, text))
            }
        }
    }

    fn fault(&self, value: &str) -> Option<String> {
        let below = |is_below: bool| is_below.then(|| format!("Value must be at least {}", self.least));
        let number = |kind: &str| format!("Not a number of type {kind}");
        let is_allowed = |value: &str| self.allowed.is_empty() || self.allowed.contains(&value);
        let allowed = || self.allowed.join(", ");
        let text = value.trim();
        match self.kind {
            Kind::Boolean if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") => None,
            Kind::Boolean => Some("Expected value to be either true or false".to_owned()),
            Kind::Int => match text.parse::<i32>() {
                Ok(value) => below(i64::from(value) < self.least),
                Err(_) => Some(number("INT")),
            },
            Kind::Long => text.parse::<i64>().map_or_else(|_| Some(number("LONG")), |value| below(value < self.least)),
            Kind::Double => match text.parse::<f64>() {
                Ok(value) if (0.0..=1.0).contains(&value) => None,
                Ok(_) => Some("Value must be no more than 1".to_owned()),
                Err(_) => Some(number("DOUBLE")),
            },
            Kind::List if text.split(',').map(str::trim).all(is_allowed) => None,
            Kind::Text if is_allowed(text) => None,
            Kind::List | Kind::Text => Some(format!("String must be one of: {}", allowed())),
            Kind::Password => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_and_every_table_is_in_order() {
        for table in [OF_TOPICS, OF_BROKERS] {
            for setting in table {
                assert!(setting.check(setting.default).is_ok() || setting.default.is_empty(), "{}", setting.name);
            }
        }
        assert!(OF_TOPICS.is_sorted_by_key(|setting| setting.name));
    }

    #[test]
    fn wrong_values_are_told_in_kafkas_words() {
        let told = |name: &str, value: &str| {
            let setting = find(OF_TOPICS, name).expect("a setting of topics");
            setting.check(value).expect_err("it is wrong").text.expect("a text")
        };
        let wrong = [
            ("retention.ms", "soon", "Invalid value soon for configuration retention.ms: Not a number of type LONG"),
            ("segment.ms", "0", "Invalid value 0 for configuration segment.ms: Value must be at least 1"),
            ("preallocate", "yes", "Expected value to be either true or false"),
            ("cleanup.policy", "compact,keep", "String must be one of: compact, delete"),
            ("message.timestamp.type", "now", "String must be one of: CreateTime, LogAppendTime"),
            ("min.cleanable.dirty.ratio", "2", "Value must be no more than 1"),
        ];
        for (name, value, text) in wrong {
            assert!(told(name, value).contains(text), "{}", told(name, value));
        }
    }
}
