//! `DescribeTransactions`, `ListTransactions` and `DescribeProducers`.

use std::collections::BTreeMap;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::describe_producers_response::{PartitionResponse, ProducerState, TopicResponse};
use kafka_protocol::messages::describe_transactions_response::{TopicData, TransactionState};
use kafka_protocol::messages::list_transactions_response::TransactionState as Listed;
use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse, DescribeTransactionsRequest, DescribeTransactionsResponse,
    ListTransactionsRequest, ListTransactionsResponse, ProducerId, TopicName, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;
use regex_lite::Regex;

use crate::cluster::{Answer, Caller, Cluster};
use crate::topics::Partition;
use crate::transactions::{State, Transaction};

pub(crate) fn transactions(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DescribeTransactionsRequest,
) -> Answer<DescribeTransactionsResponse> {
    let fault = cluster.fault(caller);
    let described = |id: TransactionalId| {
        let told = TransactionState::default().with_transactional_id(id.clone());
        let checked = fault.map_or_else(|| cluster.check_coordinator(caller, &id), Err);
        let found = checked.and_then(|()| cluster.transactions.get(&id).ok_or(ResponseError::TransactionalIdNotFound));
        match found {
            Ok(transaction) => with_transaction(told, transaction),
            Err(error) => told.with_error_code(error.code()).with_producer_id(ProducerId(-1)),
        }
    };
    let states = request.transactional_ids.into_iter().map(described).collect();
    Answer::Now(DescribeTransactionsResponse::default().with_transaction_states(states))
}

fn with_transaction(told: TransactionState, transaction: &Transaction) -> TransactionState {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in &transaction.partitions {
        topics.entry(topic).or_default().push(*partition);
    }
    let topic = |(name, partitions): (&str, Vec<i32>)| {
        TopicData::default().with_topic(TopicName(StrBytes::from_string(name.to_owned()))).with_partitions(partitions)
    };
    told.with_transaction_state(StrBytes::from_static_str(transaction.state.name()))
        .with_transaction_timeout_ms(transaction.timeout.as_millis() as i32)
        .with_transaction_start_time_ms(transaction.started_ms)
        .with_producer_id(ProducerId(transaction.producer_id))
        .with_producer_epoch(transaction.epoch)
        .with_topics(topics.into_iter().map(topic).collect())
}

pub(crate) fn list(
    cluster: &mut Cluster,
    caller: &Caller,
    request: ListTransactionsRequest,
) -> Answer<ListTransactionsResponse> {
    let response = ListTransactionsResponse::default();
    let pattern = request.transactional_id_pattern.as_ref().filter(|pattern| !pattern.is_empty());
    let pattern = pattern.map(|pattern| Regex::new(&format!("^(?:{pattern})$"))).transpose();
    let (fault, pattern) = match pattern {
        Ok(pattern) => (cluster.fault(caller), pattern),
        Err(_) => (Some(ResponseError::InvalidRegularExpression), None),
    };
    if let Some(error) = fault {
        return Answer::Now(response.with_error_code(error.code()));
    }
    let is_state = |name: &StrBytes| State::ALL.iter().any(|state| state.name() == name.as_str());
    let unknown = request.state_filters.iter().filter(|name| !is_state(name)).cloned().collect();
    let is_wanted = |id: &str, transaction: &Transaction| {
        let (states, producers) = (&request.state_filters, &request.producer_id_filters);
        let age_ms = if transaction.started_ms < 0 { -1 } else { cluster.now.wall_ms - transaction.started_ms };
        cluster.coordinator(id) == Some(caller.broker)
            && (states.is_empty() || states.iter().any(|name| name.as_str() == transaction.state.name()))
            && (producers.is_empty() || producers.contains(&ProducerId(transaction.producer_id)))
            && (request.duration_filter < 0 || age_ms > request.duration_filter)
            && pattern.as_ref().is_none_or(|pattern| pattern.is_match(id))
    };
    let listed = cluster.transactions.iter().filter(|(id, transaction)| is_wanted(id, transaction));
    let listed = listed.map(|(id, transaction)| {
        Listed::default()
            .with_transactional_id(TransactionalId(StrBytes::from_string(id.to_owned())))
            .with_producer_id(ProducerId(transaction.producer_id))
            .with_transaction_state(StrBytes::from_static_str(transaction.state.name()))
    });
    Answer::Now(response.with_unknown_state_filters(unknown).with_transaction_states(listed.collect()))
}

pub(crate) fn producers(
    cluster: &mut Cluster,
    caller: &Caller,
    request: DescribeProducersRequest,
) -> Answer<DescribeProducersResponse> {
    let fault = cluster.fault(caller);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for index in topic.partition_indexes {
            let told = PartitionResponse::default().with_partition_index(index);
            let led = fault.map_or_else(|| cluster.led(caller, &topic.name, index, -1).map(|each| active(each)), Err);
            partitions.push(match led {
                Ok(producers) => told.with_active_producers(producers),
                Err(error) => told.with_error_code(error.code()),
            });
        }
        topics.push(TopicResponse::default().with_name(topic.name).with_partitions(partitions));
    }
    Answer::Now(DescribeProducersResponse::default().with_topics(topics))
}

fn active(partition: &Partition) -> Vec<ProducerState> {
    let producers = partition.log.producers.iter().map(|(id, known)| {
        ProducerState::default()
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(i32::from(known.epoch))
            .with_last_sequence(known.last_sequence())
            .with_last_timestamp(known.timestamp)
            .with_coordinator_epoch(-1)
            .with_current_txn_start_offset(known.transaction_start.unwrap_or(-1))
    });
    producers.collect()
}
