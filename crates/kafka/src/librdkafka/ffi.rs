//! librdkafka's functions and types, with error codes as integers.
//!
//! The generated bindings return error codes as a Rust enum. A newer broker may send a code that this enum does not
//! know, and such a value would be undefined behaviour. The functions declared here hide the generated ones of the same
//! name.

use std::ffi::{c_char, c_int, c_void};

pub use rdkafka_sys::*;

/// A client has been made.
pub type OnNew = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        conf: *const rd_kafka_conf_t,
        opaque: *mut c_void,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> c_int,
>;

/// A request has been written.
pub type OnRequestSent = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        socket: c_int,
        broker: *const c_char,
        broker_id: i32,
        api_key: i16,
        api_version: i16,
        correlation_id: i32,
        size: usize,
        opaque: *mut c_void,
    ) -> c_int,
>;

/// A response has come, or none will.
pub type OnResponseReceived = Option<
    unsafe extern "C" fn(
        rk: *mut rd_kafka_t,
        socket: c_int,
        broker: *const c_char,
        broker_id: i32,
        api_key: i16,
        api_version: i16,
        correlation_id: i32,
        size: usize,
        rtt: i64,
        err: c_int,
        opaque: *mut c_void,
    ) -> c_int,
>;

unsafe extern "C" {
    pub fn rd_kafka_err2name(code: c_int) -> *const c_char;
    pub fn rd_kafka_err2str(code: c_int) -> *const c_char;
    pub fn rd_kafka_last_error() -> c_int;
    pub fn rd_kafka_fatal_error(rk: *mut rd_kafka_t, errstr: *mut c_char, errstr_size: usize) -> c_int;
    pub fn rd_kafka_error_code(error: *const rd_kafka_error_t) -> c_int;
    pub fn rd_kafka_header_add(
        hdrs: *mut rd_kafka_headers_t,
        name: *const c_char,
        name_size: isize,
        value: *const c_void,
        value_size: isize,
    ) -> c_int;
    pub fn rd_kafka_header_get_last(
        hdrs: *const rd_kafka_headers_t,
        name: *const c_char,
        valuep: *mut *const c_void,
        sizep: *mut usize,
    ) -> c_int;
    pub fn rd_kafka_header_get_all(
        hdrs: *const rd_kafka_headers_t,
        idx: usize,
        namep: *mut *const c_char,
        valuep: *mut *const c_void,
        sizep: *mut usize,
    ) -> c_int;
    pub fn rd_kafka_message_headers(rkmessage: *const rd_kafka_message_t, hdrsp: *mut *mut rd_kafka_headers_t)
    -> c_int;
    pub fn rd_kafka_query_watermark_offsets(
        rk: *mut rd_kafka_t,
        topic: *const c_char,
        partition: i32,
        low: *mut i64,
        high: *mut i64,
        timeout_ms: c_int,
    ) -> c_int;
    pub fn rd_kafka_get_watermark_offsets(
        rk: *mut rd_kafka_t,
        topic: *const c_char,
        partition: i32,
        low: *mut i64,
        high: *mut i64,
    ) -> c_int;
    pub fn rd_kafka_offsets_for_times(
        rk: *mut rd_kafka_t,
        offsets: *mut rd_kafka_topic_partition_list_t,
        timeout_ms: c_int,
    ) -> c_int;
    pub fn rd_kafka_subscribe(rk: *mut rd_kafka_t, topics: *const rd_kafka_topic_partition_list_t) -> c_int;
    pub fn rd_kafka_unsubscribe(rk: *mut rd_kafka_t) -> c_int;
    pub fn rd_kafka_assign(rk: *mut rd_kafka_t, partitions: *const rd_kafka_topic_partition_list_t) -> c_int;
    pub fn rd_kafka_commit_queue(
        rk: *mut rd_kafka_t,
        offsets: *const rd_kafka_topic_partition_list_t,
        rkqu: *mut rd_kafka_queue_t,
        cb: Option<
            unsafe extern "C" fn(
                rk: *mut rd_kafka_t,
                err: c_int,
                offsets: *mut rd_kafka_topic_partition_list_t,
                commit_opaque: *mut c_void,
            ),
        >,
        commit_opaque: *mut c_void,
    ) -> c_int;
    pub fn rd_kafka_committed(
        rk: *mut rd_kafka_t,
        partitions: *mut rd_kafka_topic_partition_list_t,
        timeout_ms: c_int,
    ) -> c_int;
    pub fn rd_kafka_position(rk: *mut rd_kafka_t, partitions: *mut rd_kafka_topic_partition_list_t) -> c_int;
    pub fn rd_kafka_flush(rk: *mut rd_kafka_t, timeout_ms: c_int) -> c_int;
    pub fn rd_kafka_purge(rk: *mut rd_kafka_t, purge_flags: c_int) -> c_int;
    pub fn rd_kafka_metadata(
        rk: *mut rd_kafka_t,
        all_topics: c_int,
        only_rkt: *mut rd_kafka_topic_t,
        metadatap: *mut *const rd_kafka_metadata,
        timeout_ms: c_int,
    ) -> c_int;
    pub fn rd_kafka_poll_set_consumer(rk: *mut rd_kafka_t) -> c_int;
    pub fn rd_kafka_event_error(rkev: *mut rd_kafka_event_t) -> c_int;
    pub fn rd_kafka_conf_interceptor_add_on_new(
        conf: *mut rd_kafka_conf_t,
        ic_name: *const c_char,
        on_new: OnNew,
        opaque: *mut c_void,
    ) -> c_int;
    pub fn rd_kafka_interceptor_add_on_request_sent(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_request_sent: OnRequestSent,
        opaque: *mut c_void,
    ) -> c_int;
    pub fn rd_kafka_interceptor_add_on_response_received(
        rk: *mut rd_kafka_t,
        ic_name: *const c_char,
        on_response_received: OnResponseReceived,
        opaque: *mut c_void,
    ) -> c_int;
    pub fn rd_kafka_topic_result_error(topicres: *const rd_kafka_topic_result_t) -> c_int;
    pub fn rd_kafka_NewTopic_set_config(
        new_topic: *mut rd_kafka_NewTopic_t,
        name: *const c_char,
        value: *const c_char,
    ) -> c_int;
    pub fn rd_kafka_AdminOptions_set_request_timeout(
        options: *mut rd_kafka_AdminOptions_t,
        timeout_ms: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> c_int;
    pub fn rd_kafka_AdminOptions_set_operation_timeout(
        options: *mut rd_kafka_AdminOptions_t,
        timeout_ms: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> c_int;
    pub fn rd_kafka_oauthbearer_set_token(
        rk: *mut rd_kafka_t,
        token_value: *const c_char,
        md_lifetime_ms: i64,
        md_principal_name: *const c_char,
        extensions: *mut *const c_char,
        extension_size: usize,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> c_int;
    pub fn rd_kafka_oauthbearer_set_token_failure(rk: *mut rd_kafka_t, errstr: *const c_char) -> c_int;
    pub fn rd_kafka_ConfigResource_new(restype: c_int, resname: *const c_char) -> *mut rd_kafka_ConfigResource_t;
    pub fn rd_kafka_ConfigResource_error(config: *const rd_kafka_ConfigResource_t) -> c_int;
    pub fn rd_kafka_ConfigEntry_source(entry: *const rd_kafka_ConfigEntry_t) -> c_int;
    pub fn rd_kafka_consumer_group_state_name(state: c_int) -> *const c_char;
    pub fn rd_kafka_consumer_group_type_name(kind: c_int) -> *const c_char;
    pub fn rd_kafka_ConsumerGroupListing_state(grplist: *const rd_kafka_ConsumerGroupListing_t) -> c_int;
    pub fn rd_kafka_ConsumerGroupListing_type(grplist: *const rd_kafka_ConsumerGroupListing_t) -> c_int;
    pub fn rd_kafka_ConsumerGroupDescription_state(grpdesc: *const rd_kafka_ConsumerGroupDescription_t) -> c_int;
    pub fn rd_kafka_ConsumerGroupDescription_type(grpdesc: *const rd_kafka_ConsumerGroupDescription_t) -> c_int;
    pub fn rd_kafka_AclBinding_new(
        restype: c_int,
        name: *const c_char,
        resource_pattern_type: c_int,
        principal: *const c_char,
        host: *const c_char,
        operation: c_int,
        permission_type: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> *mut rd_kafka_AclBinding_t;
    pub fn rd_kafka_AclBindingFilter_new(
        restype: c_int,
        name: *const c_char,
        resource_pattern_type: c_int,
        principal: *const c_char,
        host: *const c_char,
        operation: c_int,
        permission_type: c_int,
        errstr: *mut c_char,
        errstr_size: usize,
    ) -> *mut rd_kafka_AclBindingFilter_t;
    pub fn rd_kafka_AclBinding_restype(acl: *const rd_kafka_AclBinding_t) -> c_int;
    pub fn rd_kafka_AclBinding_resource_pattern_type(acl: *const rd_kafka_AclBinding_t) -> c_int;
    pub fn rd_kafka_AclBinding_operation(acl: *const rd_kafka_AclBinding_t) -> c_int;
    pub fn rd_kafka_AclBinding_permission_type(acl: *const rd_kafka_AclBinding_t) -> c_int;
    pub fn rd_kafka_ElectLeaders_new(
        election_type: c_int,
        partitions: *mut rd_kafka_topic_partition_list_t,
    ) -> *mut rd_kafka_ElectLeaders_t;
}
