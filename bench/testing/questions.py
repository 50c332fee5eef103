"""The questions of an engineer who wants to test an app. A tool that can has a test `test_<name>`."""

QUESTIONS = {
    "a_handler_runs_without_brokers": "Call a handler as a function, its value decoded and its arguments injected",
    "an_exception_fails_the_test": "A handler's exception fails the test, with its traceback",
    "calls_are_recorded": "See each call of a handler",
    "a_result_is_seen_on_its_topic": "See what a handler sends",
    "a_wrong_value_is_an_error": "A value that does not decode",
    "a_request_is_answered": "Request and reply",
    "a_failing_message_is_tried_again": "A failing message is tried again, as production would",
    "an_exhausted_message_is_put_aside": "A message whose retries are exhausted goes to the dead letter topic",
    "hours_pass_at_once": "A back-off of an hour, without waiting",
    "a_key_keeps_its_order": "Keys choose partitions, and keep their order",
    "committed_work_does_not_come_again": "Offsets: what is committed does not come again after a restart",
    "a_partition_is_revoked": "A rebalance revokes a partition",
    "a_refused_write_is_repeated": "Brokers refuse a write",
    "a_transaction_is_whole": "A transaction: all of it is seen, or nothing",
    "a_leaked_thread_fails_the_test": "A thread that is left behind fails the test",
    "recorded_input_meets_new_code": "Recorded input goes through new code, and results are compared",
    "it_runs_on_real_brokers": "The same test on real brokers, by a switch",
}
