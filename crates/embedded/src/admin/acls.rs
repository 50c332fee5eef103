//! ACLs: the brokers have no authoriser, and say so as Kafka does without one.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::create_acls_response::AclCreationResult;
use kafka_protocol::messages::delete_acls_response::DeleteAclsFilterResult;
use kafka_protocol::messages::{
    CreateAclsRequest, CreateAclsResponse, DeleteAclsRequest, DeleteAclsResponse, DescribeAclsRequest,
    DescribeAclsResponse,
};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::{Answer, Caller, Cluster};

const TEXT: Option<StrBytes> = Some(StrBytes::from_static_str("No Authorizer is configured."));

fn error(cluster: &mut Cluster, caller: &Caller) -> i16 {
    cluster.fault(caller).unwrap_or(ResponseError::SecurityDisabled).code()
}

pub(crate) fn describe(cluster: &mut Cluster, caller: &Caller, _: DescribeAclsRequest) -> Answer<DescribeAclsResponse> {
    let error = error(cluster, caller);
    Answer::Now(DescribeAclsResponse::default().with_error_code(error).with_error_message(TEXT))
}

pub(crate) fn create(cluster: &mut Cluster, caller: &Caller, request: CreateAclsRequest) -> Answer<CreateAclsResponse> {
    let error = error(cluster, caller);
    let result = AclCreationResult::default().with_error_code(error).with_error_message(TEXT);
    Answer::Now(CreateAclsResponse::default().with_results(vec![result; request.creations.len()]))
}

pub(crate) fn delete(cluster: &mut Cluster, caller: &Caller, request: DeleteAclsRequest) -> Answer<DeleteAclsResponse> {
    let error = error(cluster, caller);
    let result = DeleteAclsFilterResult::default().with_error_code(error).with_error_message(TEXT);
    Answer::Now(DeleteAclsResponse::default().with_filter_results(vec![result; request.filters.len()]))
}
