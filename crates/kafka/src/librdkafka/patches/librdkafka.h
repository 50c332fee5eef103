/* librdkafka's own headers, for its patches. build.rs compiles these with the folders and the configuration with which librdkafka was
 * compiled, so that the layout of each structure is that of the version which is built. */

#include "../config.h"

#include "rdkafka_int.h"
#include "rdkafka_broker.h"
#include "rdkafka_buf.h"
#include "rdkafka_cgrp.h"
#include "rdkafka_coord.h"
#include "rdkafka_offset.h"
#include "rdkafka_op.h"
#include "rdkafka_partition.h"
#include "rdkafka_request.h"
#include "rdkafka_topic.h"

#if RD_KAFKA_VERSION != 0x020c01ff
#error "The patches are for librdkafka 2.12.1. Look at each one (README.md): drop it, or change it and the version that it names."
#endif

/* Declares both functions of a wrapped one, with its type: a patch whose own signature differs does not compile. */
#define WRAPS(function) __typeof__(function) __real_##function, __wrap_##function
