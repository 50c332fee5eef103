//! `DescribeConfigs`, `AlterConfigs` and `IncrementalAlterConfigs`, for topics and brokers.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse as Replaced;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::incremental_alter_configs_request::AlterableConfig;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse as Changed;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};
use kafka_protocol::protocol::StrBytes;

use crate::admin::Refusal;
use crate::admin::settings::{Kind, OF_BROKERS, OF_TOPICS, Setting, find};
use crate::cluster::{Answer, Caller, Cluster};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

const FROM_TOPIC: i8 = 1;
const FROM_BROKER: i8 = 2;
const FROM_DEFAULT: i8 = 5;
/// Since this version the type of a setting is told.
const TYPES_SINCE: i16 = 3;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

type Settings = BTreeMap<String, String>;

/// A topic or a broker whose settings are asked for.
struct Resource<'a> {
    table: &'static [Setting],
    set: &'a mut Settings,
    source: i8,
}

/// Finds a resource. All settings of brokers are those of the cluster.
fn resource<'a>(cluster: &'a mut Cluster, caller: &Caller, kind: i8, name: &str) -> Result<Resource<'a>, Refusal> {
    match kind {
        TOPIC => {
            let topic = cluster.topics.get_mut(name).ok_or_else(|| {
                let text = format!("The topic '{name}' does not exist.");
                Refusal::new(ResponseError::UnknownTopicOrPartition, text)
            })?;
            Ok(Resource { table: OF_TOPICS, set: &mut topic.settings, source: FROM_TOPIC })
        }
        BROKER if name.is_empty() || name == caller.broker.to_string() => {
            Ok(Resource { table: OF_BROKERS, set: &mut cluster.settings, source: FROM_BROKER })
        }
        BROKER => {
            let text = format!("Unexpected broker id, expected {} or empty string, but received {name}", caller.broker);
            Err(Refusal::new(ResponseError::InvalidRequest, text))
        }
        kind => {
            let text =
                format!("Unsupported resource type: {kind}: embedded brokers have settings of topics and brokers");
            Err(Refusal::new(ResponseError::InvalidRequest, text))
        }
    }
}

pub(crate) fn describe(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DescribeConfigsRequest,
) -> Answer<DescribeConfigsResponse> {
    let fault = cluster.fault(caller);
    let results = request.resources.iter().map(|asked| {
        let result = DescribeConfigsResult::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name.clone());
        let found = fault.map_or_else(
            || resource(cluster, caller, asked.resource_type, &asked.resource_name),
            |error| Err(error.into()),
        );
        match found {
            Ok(found) => result.with_configs(entries(&found, caller, asked, request.include_synonyms)),
            Err(refusal) => result.with_error_code(refusal.error.code()).with_error_message(refusal.told()),
        }
    });
    let results = results.collect();
    Answer::Now(DescribeConfigsResponse::default().with_results(results))
}

fn entries(
    found: &Resource<'_>,
    caller: &Caller,
    asked: &DescribeConfigsResource,
    synonyms: bool,
) -> Vec<DescribeConfigsResourceResult> {
    let is_wanted = |setting: &&Setting| {
        let keys = asked.configuration_keys.as_ref().filter(|keys| !keys.is_empty());
        keys.is_none_or(|keys| keys.iter().any(|key| key.as_str() == setting.name))
    };
    let own = |setting: &Setting| match setting.name {
        "node.id" => Some(caller.broker.to_string()),
        _ => found.set.get(setting.name).cloned(),
    };
    let entry = |setting: &Setting| {
        let set = own(setting);
        let is_secret = setting.kind == Kind::Password;
        let shown = |value: &str| (!is_secret).then(|| StrBytes::from_string(value.to_owned()));
        let source = if set.is_some() { found.source } else { FROM_DEFAULT };
        let synonym = |value: &str, source: i8| {
            let name = StrBytes::from_static_str(setting.name);
            DescribeConfigsSynonym::default().with_name(name).with_value(shown(value)).with_source(source)
        };
        let mut known = Vec::new();
        if synonyms {
            known.extend(set.as_deref().map(|value| synonym(value, found.source)));
            known.push(synonym(setting.default, FROM_DEFAULT));
        }
        DescribeConfigsResourceResult::default()
            .with_name(StrBytes::from_static_str(setting.name))
            .with_value(shown(set.as_deref().unwrap_or(setting.default)))
            .with_read_only(!setting.is_dynamic)
            .with_config_source(source)
            .with_is_sensitive(is_secret)
            .with_synonyms(known)
            .with_config_type(if caller.version < TYPES_SINCE { 0 } else { setting.kind as i8 })
    };
    found.table.iter().filter(is_wanted).map(entry).collect()
}

pub(crate) fn change(
    cluster: &mut Cluster,
    caller: &Caller,
    request: IncrementalAlterConfigsRequest,
) -> Answer<IncrementalAlterConfigsResponse> {
    let fault = cluster.fault(caller);
    let responses = request.resources.iter().map(|asked| {
        let changed = match fault {
            Some(error) => Err(error.into()),
            None => resource(cluster, caller, asked.resource_type, &asked.resource_name).and_then(|found| {
                let after =
                    asked.configs.iter().try_fold(found.set.clone(), |set, each| changed(found.table, set, each))?;
                if !request.validate_only {
                    *found.set = after;
                }
                Ok(())
            }),
        };
        let response =
            Changed::default().with_resource_type(asked.resource_type).with_resource_name(asked.resource_name.clone());
        match changed {
            Ok(()) => response,
            Err(refusal) => response.with_error_code(refusal.error.code()).with_error_message(refusal.told()),
        }
    });
    let responses = responses.collect();
    Answer::Now(IncrementalAlterConfigsResponse::default().with_responses(responses))
}

/// Returns the settings after one change.
fn changed(table: &'static [Setting], mut set: Settings, each: &AlterableConfig) -> Result<Settings, Refusal> {
    let name = each.name.as_str();
    let setting = known(table, name)?;
    if each.config_operation == DELETE {
        set.remove(name);
        return Ok(set);
    }
    let invalid = |text: String| Err(Refusal::new(ResponseError::InvalidConfig, text));
    let Some(value) = &each.value else { return invalid(format!("Null value not supported for : {name}")) };
    let before = set.get(name).map_or(setting.default, String::as_str).to_owned();
    let mut parts: Vec<&str> = before.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let named = || value.split(',').map(str::trim);
    let after = match each.config_operation {
        SET => value.to_string(),
        APPEND | SUBTRACT if setting.kind != Kind::List => {
            let word = if each.config_operation == APPEND { "APPEND to" } else { "SUBTRACT from" };
            return invalid(format!("Can't {word} key {name} because its type is not LIST."));
        }
        APPEND => {
            let new: Vec<&str> = named().filter(|part| !parts.contains(part)).collect();
            parts.extend(new);
            parts.join(",")
        }
        SUBTRACT => {
            parts.retain(|part| !named().any(|gone| gone == *part));
            parts.join(",")
        }
        operation => {
            return Err(Refusal::new(ResponseError::InvalidRequest, format!("Unknown operation type {operation}")));
        }
    };
    setting.check(&after)?;
    set.insert(name.to_owned(), after);
    Ok(set)
}

/// Returns a setting that can be changed.
fn known<'a>(table: &'a [Setting], name: &str) -> Result<&'a Setting, Refusal> {
    let setting = find(table, name).ok_or_else(|| {
        let kind = if std::ptr::eq(table, OF_TOPICS) { "topic" } else { "broker" };
        Refusal::new(ResponseError::InvalidConfig, format!("Unknown {kind} config name: {name}"))
    })?;
    if !setting.is_dynamic {
        let text = format!("Cannot update these configs dynamically: [{name}]");
        return Err(Refusal::new(ResponseError::InvalidRequest, text));
    }
    Ok(setting)
}

/// Replaces all settings of a resource.
pub(crate) fn replace(
    cluster: &mut Cluster,
    caller: &Caller,
    request: AlterConfigsRequest,
) -> Answer<AlterConfigsResponse> {
    let fault = cluster.fault(caller);
    let responses = request.resources.iter().map(|asked| {
        let replaced = match fault {
            Some(error) => Err(error.into()),
            None => resource(cluster, caller, asked.resource_type, &asked.resource_name).and_then(|found| {
                let each = asked.configs.iter().map(|config| {
                    let value = config.value.clone();
                    AlterableConfig::default()
                        .with_name(config.name.clone())
                        .with_config_operation(SET)
                        .with_value(value)
                });
                let after = each.into_iter().try_fold(Settings::new(), |set, each| changed(found.table, set, &each))?;
                if !request.validate_only {
                    *found.set = after;
                }
                Ok(())
            }),
        };
        let response =
            Replaced::default().with_resource_type(asked.resource_type).with_resource_name(asked.resource_name.clone());
        match replaced {
            Ok(()) => response,
            Err(refusal) => response.with_error_code(refusal.error.code()).with_error_message(refusal.told()),
        }
    });
    let responses = responses.collect();
    Answer::Now(AlterConfigsResponse::default().with_responses(responses))
}
