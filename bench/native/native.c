/* The native contestants: consume, produce and produce-and-wait on librdkafka, without a language between.
 *
 * native consume      BOOTSTRAP TOPIC GROUP MESSAGES [property=value ...]
 * native produce      BOOTSTRAP TOPIC -     MESSAGES [property=value ...]
 * native sync-produce BOOTSTRAP TOPIC -     MESSAGES [property=value ...]
 * native sync-beside  BOOTSTRAP TOPIC -     MESSAGES [property=value ...]
 *   as sync-produce, alone and then beside a thread that sends 100,000 messages/s with a client of its own and librdkafka's defaults;
 *   also prints "alone_seconds" and "asynchronous_per_s".
 * native round-trip   BOOTSTRAP TOPIC -     MESSAGES [producer.property=value ...]
 *   produces to partition 0, consumes it, produces what came to partition 1, and consumes that; also prints median and p99.
 *
 * Prints one line of JSON: {"seconds": 0.25, "messages": 1000000}. An error goes to standard error with exit code 1.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rdkafka.h"

enum { VALUE_BYTES = 100, VALUE_BYTES_MAX = 1 << 20, BATCH_MESSAGES = 10000, WARM_UP_MESSAGES = 20, DEADLINE_S = 300 };

/* Of the clients that the thread polls. */
static _Thread_local int64_t reported;
static _Thread_local int64_t refused;
static volatile uint64_t checksum; /* Keeps the compiler from leaving out that the values are read. */

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static double monotonic_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        fail(name, why);
}

static void on_report(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    (void)opaque;
    reported++;
    refused += message->err != RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_t *make_client(
    rd_kafka_type_t type, const char *bootstrap, const char *group, char **properties, int count) {
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bootstrap);
    if (group != NULL)
        set(conf, "group.id", group);
    for (int i = 0; i < count; i++) {
        char *value = strchr(properties[i], '=');
        if (value == NULL)
            fail(properties[i], "is no property=value");
        *value = '\0';
        set(conf, properties[i], value + 1);
    }
    if (type == RD_KAFKA_PRODUCER)
        rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_t *client = rd_kafka_new(type, conf, why, sizeof why);
    if (client == NULL)
        fail("client", why);
    return client;
}

static void print_result(double seconds, int64_t messages) {
    printf("{\"seconds\": %.9f, \"messages\": %lld}\n", seconds, (long long)messages);
}

/* From the first batch seen to the last message read; joining the group is not counted. */
static void consume(rd_kafka_t *client, const char *topic, int64_t messages) {
    static rd_kafka_message_t *batch[BATCH_MESSAGES];
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_resp_err_t error = rd_kafka_subscribe(client, topics);
    if (error)
        fail("subscribe", rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(topics);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(client);
    double first = 0, deadline = monotonic_s() + DEADLINE_S;
    int64_t seen = 0;
    while (seen < messages) {
        /* Never more than are left: the call would wait out its timeout for them, inside the measurement. */
        size_t wanted = messages - seen < BATCH_MESSAGES ? (size_t)(messages - seen) : BATCH_MESSAGES;
        ssize_t count = rd_kafka_consume_batch_queue(queue, 10, batch, wanted);
        if (count > 0 && first == 0)
            first = monotonic_s();
        for (ssize_t i = 0; i < count; i++) {
            if (batch[i]->err)
                fail("consume", rd_kafka_message_errstr(batch[i]));
            checksum += ((const unsigned char *)batch[i]->payload)[0] + batch[i]->len;
            rd_kafka_message_destroy(batch[i]);
            seen++;
        }
        if (monotonic_s() > deadline)
            fail("consume", "deadline passed");
    }
    print_result(monotonic_s() - first, seen);
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(client);
}

/* The same values as the other contestants': bench/produce.py. */
static size_t value_bytes = VALUE_BYTES;

static void fill_value(char *value) {
    static const char pattern[] = "{\"sku\": \"A1\", \"quantity\": 3, \"price\": 9.5, \"text\": \"hello\"}";
    const char *said = getenv("BENCH_BYTES");
    if (said != NULL)
        value_bytes = strtoul(said, NULL, 10);
    if (value_bytes == 0 || value_bytes > VALUE_BYTES_MAX)
        fail("BENCH_BYTES", "is no size");
    for (size_t i = 0; i < value_bytes; i++)
        value[i] = pattern[i % (sizeof pattern - 1)];
}

static void produce_one(rd_kafka_t *client, rd_kafka_topic_t *topic, char *value) {
    while (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, value, value_bytes, NULL, 0, NULL)) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(client, 100);
    }
}

static void wait_reported(rd_kafka_t *client, int64_t wanted) {
    double deadline = monotonic_s() + DEADLINE_S;
    while (reported < wanted) {
        rd_kafka_poll(client, 1000);
        if (monotonic_s() > deadline)
            fail("produce", "deadline passed");
    }
    if (refused)
        fail("produce", "a message was not delivered");
}

static void sync_produce(rd_kafka_t *client, rd_kafka_topic_t *topic, char *value, int64_t messages) {
    for (int64_t i = 0; i < messages; i++) {
        int64_t wanted = reported + 1;
        produce_one(client, topic, value);
        wait_reported(client, wanted);
    }
}

static void async_produce(rd_kafka_t *client, rd_kafka_topic_t *topic, char *value, int64_t messages) {
    int64_t wanted = reported + messages;
    for (int64_t i = 0; i < messages; i++) {
        produce_one(client, topic, value);
        if (i % 1000 == 0)
            rd_kafka_poll(client, 0);
    }
    rd_kafka_resp_err_t error = rd_kafka_flush(client, DEADLINE_S * 1000);
    if (error)
        fail("flush", rd_kafka_err2str(error));
    wait_reported(client, wanted);
}

static void produce(rd_kafka_t *client, const char *name, int64_t messages, int is_sync) {
    static char value[VALUE_BYTES_MAX];
    fill_value(value);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    if (topic == NULL)
        fail("topic", rd_kafka_err2str(rd_kafka_last_error()));
    sync_produce(client, topic, value, WARM_UP_MESSAGES);
    double first = monotonic_s();
    if (is_sync)
        sync_produce(client, topic, value, messages);
    else
        async_produce(client, topic, value, messages);
    print_result(monotonic_s() - first, messages);
    rd_kafka_topic_destroy(topic);
}

enum { FLOOD_BURST = 1000, FLOOD_BURST_US = 10000 };

struct flood {
    const char *bootstrap, *name;
    atomic_int is_over;
    int64_t sent;
};

static void *run_flood(void *argument) {
    struct flood *flood = argument;
    static char value[VALUE_BYTES_MAX];
    fill_value(value);
    rd_kafka_t *client = make_client(RD_KAFKA_PRODUCER, flood->bootstrap, NULL, NULL, 0);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, flood->name, NULL);
    double began = monotonic_s();
    while (!flood->is_over) {
        for (int i = 0; i < FLOOD_BURST; i++)
            produce_one(client, topic, value);
        rd_kafka_poll(client, 0);
        flood->sent += FLOOD_BURST;
        double ahead = began + (double)flood->sent * FLOOD_BURST_US / FLOOD_BURST / 1e6 - monotonic_s();
        if (ahead > 0)
            usleep((useconds_t)(ahead * 1e6));
    }
    rd_kafka_flush(client, DEADLINE_S * 1000);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    return NULL;
}

static void produce_beside(rd_kafka_t *client, const char *bootstrap, const char *name, int64_t messages) {
    static char value[VALUE_BYTES_MAX];
    fill_value(value);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    sync_produce(client, topic, value, WARM_UP_MESSAGES);
    double alone = monotonic_s();
    sync_produce(client, topic, value, messages);
    alone = monotonic_s() - alone;
    struct flood flood = {.bootstrap = bootstrap, .name = name};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_flood, &flood))
        fail("flood", "no thread");
    while (flood.sent < 10 * FLOOD_BURST)
        usleep(FLOOD_BURST_US);
    int64_t before = flood.sent;
    double first = monotonic_s();
    sync_produce(client, topic, value, messages);
    double beside = monotonic_s() - first;
    double rate = (double)(flood.sent - before) / beside;
    flood.is_over = 1;
    pthread_join(thread, NULL);
    printf(
        "{\"seconds\": %.9f, \"messages\": %lld, \"alone_seconds\": %.9f, \"asynchronous_per_s\": %.1f}\n", beside,
        (long long)messages, alone, rate);
    rd_kafka_topic_destroy(topic);
}

/* A consumer of one partition, from its end on. */
static rd_kafka_t *follow(const char *bootstrap, const char *topic, int32_t partition) {
    rd_kafka_t *client = make_client(RD_KAFKA_CONSUMER, bootstrap, "native", NULL, 0);
    rd_kafka_poll_set_consumer(client);
    int64_t low = 0, high = 0;
    if (rd_kafka_query_watermark_offsets(client, topic, partition, &low, &high, DEADLINE_S * 1000))
        fail("watermarks", "no answer");
    rd_kafka_topic_partition_list_t *places = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(places, topic, partition)->offset = high;
    if (rd_kafka_assign(client, places))
        fail("assign", "refused");
    rd_kafka_topic_partition_list_destroy(places);
    return client;
}

static rd_kafka_message_t *next_message(rd_kafka_t *client) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(client, DEADLINE_S * 1000);
    if (message == NULL || message->err)
        fail("consume", message == NULL ? "deadline passed" : rd_kafka_message_errstr(message));
    return message;
}

static void send_to(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition, const void *value, size_t size) {
    if (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, (void *)value, size, NULL, 0, NULL))
        fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_poll(client, 0);
}

static int by_size(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static void round_trip(rd_kafka_t *producer, const char *bootstrap, const char *name, int64_t messages) {
    static char value[VALUE_BYTES_MAX];
    fill_value(value);
    rd_kafka_t *calls = follow(bootstrap, name, 0), *replies = follow(bootstrap, name, 1);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, name, NULL);
    double *times = calloc((size_t)messages, sizeof *times), total = 0;
    for (int64_t i = -5 * WARM_UP_MESSAGES; i < messages; i++) {
        double began = monotonic_s();
        send_to(producer, topic, 0, value, value_bytes);
        rd_kafka_message_t *call = next_message(calls);
        send_to(producer, topic, 1, call->payload, call->len);
        rd_kafka_message_destroy(call);
        rd_kafka_message_destroy(next_message(replies));
        if (i >= 0)
            total += times[i] = monotonic_s() - began;
    }
    qsort(times, (size_t)messages, sizeof *times, by_size);
    printf(
        "{\"seconds\": %.9f, \"messages\": %lld, \"call_median_us\": %.1f, \"call_p99_us\": %.1f}\n", total,
        (long long)messages, times[messages / 2] * 1e6, times[messages * 99 / 100] * 1e6);
    free(times);
    rd_kafka_topic_destroy(topic);
    rd_kafka_consumer_close(calls);
    rd_kafka_consumer_close(replies);
    rd_kafka_destroy(calls);
    rd_kafka_destroy(replies);
}

int main(int argc, char **argv) {
    if (argc < 6)
        fail("native", "MODE BOOTSTRAP TOPIC GROUP MESSAGES [property=value ...]");
    int is_consumer = strcmp(argv[1], "consume") == 0;
    int is_round_trip = strcmp(argv[1], "round-trip") == 0;
    int is_beside = strcmp(argv[1], "sync-beside") == 0;
    int is_producer = strcmp(argv[1], "produce") == 0 || strcmp(argv[1], "sync-produce") == 0;
    if (!is_consumer && !is_producer && !is_round_trip && !is_beside)
        fail(argv[1], "is no mode");
    int64_t messages = atoll(argv[5]);
    rd_kafka_type_t type = is_consumer ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER;
    rd_kafka_t *client = make_client(type, argv[2], is_consumer ? argv[4] : NULL, argv + 6, argc - 6);
    if (is_consumer)
        consume(client, argv[3], messages);
    else if (is_round_trip)
        round_trip(client, argv[2], argv[3], messages);
    else if (is_beside)
        produce_beside(client, argv[2], argv[3], messages);
    else
        produce(client, argv[3], messages, strcmp(argv[1], "sync-produce") == 0);
    rd_kafka_destroy(client);
    return 0;
}
