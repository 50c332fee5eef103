/* Patch 0017: a fetched message counts with its key and its headers.
 *
 * Version: librdkafka 2.12.1
 * Wraps: rd_kafka_op_new_fetch_msg
 * Systems: Linux
 * Upstream: not reported
 * Test: tests/security/test_fetched_headers.py
 *
 * librdkafka bounds a queue of fetched messages by the bytes of their values. So the queue of a partition whose messages have large headers
 * is never full: a log of 231 kB, which gzip or zstd has shrunk, took 3.3 GB. Where a message is made, the response has been read up to the
 * end of its headers, which lie behind its value. */

#include "librdkafka.h"

WRAPS(rd_kafka_op_new_fetch_msg);

/* The last response of this thread, and how far it was read: the begin of a message that has neither key nor value. */
static __thread const rd_kafka_buf_t *last_response;
static __thread size_t last_end;

/* Returns the bytes from a place in the response up to where it was read; 0 if they are not in one piece. */
static size_t bytes_since(const rd_slice_t *reader, const char *place) {
    const rd_segment_t *segment = reader->seg ? reader->seg : TAILQ_LAST(&reader->buf->rbuf_segments, rd_segment_head);
    size_t read = reader->seg ? reader->rof : reader->end - segment->seg_absof;
    const char *begin = segment->seg_p;
    if (place < begin && reader->seg && !reader->rof && (segment = TAILQ_PREV(segment, rd_segment_head, seg_link))) {
        begin = segment->seg_p; /* The message was the last one in the segment before. */
        read = segment->seg_of;
    }
    return place >= begin && place <= begin + read ? (size_t)(begin + read - place) : 0;
}

rd_kafka_op_t *__wrap_rd_kafka_op_new_fetch_msg(
    rd_kafka_msg_t **message, rd_kafka_toppar_t *partition, int32_t version, rd_kafka_buf_t *response, rd_kafka_fetch_pos_t position,
    size_t key_size, const void *key, size_t value_size, const void *value) {
    rd_kafka_op_t *operation =
        __real_rd_kafka_op_new_fetch_msg(message, partition, version, response, position, key_size, key, value_size, value);
    const rd_slice_t *reader = &response->rkbuf_reader;
    size_t end = rd_slice_abs_offset(reader), bytes = key_size + value_size;
    if (value) {
        bytes += bytes_since(reader, (const char *)value + value_size);
    } else if (key) {
        bytes += bytes_since(reader, (const char *)key + key_size);
    } else {
        size_t begin = last_response == response && last_end <= end ? last_end : reader->start;
        bytes += end - begin;
    }
    last_response = response;
    last_end = end;
    operation->rko_len = bytes < INT32_MAX ? (int32_t)bytes : INT32_MAX;
    return operation;
}
