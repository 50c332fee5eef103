//! `CreateTopics`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::admin::Refusal;
use crate::admin::settings::{OF_TOPICS, find};
use crate::cluster::{Answer, Caller, Cluster};
use crate::topics::is_topic_name;

/// Since this version the answer tells partitions and settings (KIP-525).
const TELLS_SINCE: i16 = 5;
const DYNAMIC_TOPIC: i8 = 1;
const DEFAULT: i8 = 5;

pub(crate) fn create(
    cluster: &mut Cluster,
    caller: &Caller,
    request: CreateTopicsRequest,
) -> Answer<CreateTopicsResponse> {
    let fault = cluster.fault(caller);
    let mut named: HashMap<String, usize> = HashMap::new();
    request.topics.iter().for_each(|topic| *named.entry(topic.name.to_string()).or_default() += 1);
    let mut results: Vec<CreatableTopicResult> = Vec::with_capacity(named.len());
    let mut answered = BTreeSet::new();
    for topic in &request.topics {
        if !answered.insert(topic.name.to_string()) {
            continue;
        }
        let planned = match fault {
            Some(error) => Err(error.into()),
            None if named[topic.name.as_str()] > 1 => {
                Err(Refusal::new(ResponseError::InvalidRequest, "Duplicate topic name."))
            }
            None => plan(cluster, topic),
        };
        let created = planned.map(|plan| {
            let told = (plan.replicas.len() as i32, plan.replicas.first().map_or(0, Vec::len) as i16);
            let settings = plan.settings.clone();
            let id = if request.validate_only {
                Uuid::nil()
            } else {
                cluster.topics.create(&topic.name, plan.replicas, plan.settings)
            };
            (id, told, settings)
        });
        results.push(result(caller, topic, created));
    }
    Answer::Now(CreateTopicsResponse::default().with_topics(results))
}

/// The partitions and the settings of a topic that was asked for.
struct Plan {
    replicas: Vec<Vec<i32>>,
    settings: BTreeMap<String, String>,
}

type Created = (Uuid, (i32, i16), BTreeMap<String, String>);

fn plan(cluster: &Cluster, topic: &CreatableTopic) -> Result<Plan, Refusal> {
    check_name(cluster, &topic.name)?;
    let replicas = if topic.assignments.is_empty() { spread(cluster, topic)? } else { assigned(cluster, topic)? };
    let mut settings = BTreeMap::new();
    for config in &topic.configs {
        let unknown =
            || Refusal::new(ResponseError::InvalidConfig, format!("Unknown topic config name: {}", config.name));
        let setting = find(OF_TOPICS, &config.name).ok_or_else(unknown)?;
        let Some(value) = &config.value else {
            let text = format!("Null value not supported for topic configs: {}", config.name);
            return Err(Refusal::new(ResponseError::InvalidConfig, text));
        };
        setting.check(value)?;
        settings.insert(config.name.to_string(), value.to_string());
    }
    Ok(Plan { replicas, settings })
}

fn check_name(cluster: &Cluster, name: &str) -> Result<(), Refusal> {
    if !is_topic_name(name) {
        let text = format!(
            "Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-', is '.' or '..', is empty or has more than 249 characters"
        );
        return Err(Refusal::new(ResponseError::InvalidTopicException, text));
    }
    if cluster.topics.get(name).is_some() {
        let text = format!("Topic '{name}' already exists.");
        return Err(Refusal::new(ResponseError::TopicAlreadyExists, text));
    }
    // Metrics name both alike.
    let plain = |name: &str| name.replace('.', "_");
    match cluster.topics.iter().find(|(other, _)| plain(other) == plain(name)) {
        Some((other, _)) => {
            let text = format!("Topic '{name}' collides with existing topic: {other}");
            Err(Refusal::new(ResponseError::InvalidTopicException, text))
        }
        None => Ok(()),
    }
}

fn spread(cluster: &Cluster, topic: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    let partitions = match topic.num_partitions {
        -1 => 1,
        count if count > 0 => count as usize,
        _ => {
            let text = "Number of partitions was set to an invalid non-positive value.";
            return Err(Refusal::new(ResponseError::InvalidPartitions, text));
        }
    };
    let replicas = match topic.replication_factor {
        -1 => 1,
        count if count > 0 => count as usize,
        _ => {
            let text = "Replication factor was set to an invalid non-positive value.";
            return Err(Refusal::new(ResponseError::InvalidReplicationFactor, text));
        }
    };
    let brokers = cluster.brokers.len();
    if replicas > brokers {
        let text = format!(
            "Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} cannot \
             be reached because only {brokers} broker(s) are registered."
        );
        return Err(Refusal::new(ResponseError::InvalidReplicationFactor, text));
    }
    Ok(cluster.spread(0, partitions, replicas))
}

fn assigned(cluster: &Cluster, topic: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    let refuse = |error: ResponseError, text: &str| Err(Refusal::new(error, text));
    if topic.num_partitions != -1 || topic.replication_factor != -1 {
        let text =
            "A manual partition assignment was specified, but numPartitions or replicationFactor was not set to -1.";
        return refuse(ResponseError::InvalidRequest, text);
    }
    let mut by_index = BTreeMap::new();
    for assignment in &topic.assignments {
        let replicas: Vec<i32> = assignment.broker_ids.iter().map(|id| id.0).collect();
        let distinct: BTreeSet<i32> = replicas.iter().copied().collect();
        if replicas.is_empty() || distinct.len() < replicas.len() {
            return refuse(
                ResponseError::InvalidReplicaAssignment,
                "The manual partition assignment is empty or has duplicates.",
            );
        }
        if let Some(unknown) = replicas.iter().find(|id| cluster.broker(**id).is_none()) {
            let text =
                format!("The manual partition assignment includes broker {unknown}, but no such broker is registered.");
            return refuse(ResponseError::InvalidReplicaAssignment, &text);
        }
        by_index.insert(assignment.partition_index, replicas);
    }
    let is_whole = by_index.len() == topic.assignments.len() && by_index.keys().copied().eq(0..by_index.len() as i32);
    if !is_whole {
        let text = "partitions should be a consecutive 0-based integer sequence";
        return refuse(ResponseError::InvalidReplicaAssignment, text);
    }
    Ok(by_index.into_values().collect())
}

fn result(caller: &Caller, topic: &CreatableTopic, created: Result<Created, Refusal>) -> CreatableTopicResult {
    let result = CreatableTopicResult::default().with_name(topic.name.clone());
    match created {
        Err(refusal) => result
            .with_error_code(refusal.error.code())
            .with_error_message(refusal.told())
            .with_configs(Some(Vec::new())),
        Ok((id, _, _)) if caller.version < TELLS_SINCE => result.with_topic_id(id),
        Ok((id, (partitions, replicas), settings)) => result
            .with_topic_id(id)
            .with_num_partitions(partitions)
            .with_replication_factor(replicas)
            .with_configs(Some(configs(&settings))),
    }
}

fn configs(settings: &BTreeMap<String, String>) -> Vec<CreatableTopicConfigs> {
    let told = OF_TOPICS.iter().map(|setting| {
        let set = settings.get(setting.name);
        CreatableTopicConfigs::default()
            .with_name(StrBytes::from_static_str(setting.name))
            .with_value(Some(StrBytes::from_string(set.map_or(setting.default, String::as_str).to_owned())))
            .with_config_source(if set.is_some() { DYNAMIC_TOPIC } else { DEFAULT })
    });
    told.collect()
}
