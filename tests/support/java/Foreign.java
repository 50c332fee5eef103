import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Kafka's own clients: run with the brokers' addresses and the name of a topic to make. Prints what came of it. */
public class Foreign {
    static Properties properties(String servers, String... pairs) {
        Properties all = new Properties();
        all.put("bootstrap.servers", servers);
        for (int i = 0; i < pairs.length; i += 2) {
            all.put(pairs[i], pairs[i + 1]);
        }
        return all;
    }

    static KafkaProducer<String, String> producer(String servers, String... pairs) {
        return new KafkaProducer<>(properties(servers, pairs), new StringSerializer(), new StringSerializer());
    }

    /** Reads as a member of a group, commits, and returns the values with the committed offset. */
    static List<String> read(String servers, String topic, String protocol, String isolation, int count) {
        Properties all = properties(servers, "group.id", topic + protocol + isolation, "group.protocol", protocol,
                "auto.offset.reset", "earliest", "isolation.level", isolation, "enable.auto.commit", "false");
        List<String> found = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(all, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (found.size() < count) { // The test has a time-out.
                consumer.poll(Duration.ofSeconds(1)).forEach(each -> found.add(each.value()));
            }
            consumer.commitSync();
            TopicPartition first = new TopicPartition(topic, 0);
            found.add("committed " + consumer.committed(Set.of(first)).get(first).offset());
        }
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0];
        String topic = arguments[1];
        try (Admin admin = Admin.create(properties(servers))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            try (var plain = producer(servers)) {
                System.out.println("found plain: " + plain.send(new ProducerRecord<>(topic, "plain")).get().offset());
            }
            try (var transactional = producer(servers, "transactional.id", topic)) {
                transactional.initTransactions();
                transactional.beginTransaction();
                transactional.send(new ProducerRecord<>(topic, "aborted")).get();
                transactional.abortTransaction();
                transactional.beginTransaction();
                transactional.send(new ProducerRecord<>(topic, "whole"));
                Map<TopicPartition, OffsetAndMetadata> sent =
                        Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1));
                transactional.sendOffsetsToTransaction(sent, new ConsumerGroupMetadata(topic));
                transactional.commitTransaction();
                System.out.println("found offsets: " + admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata()
                        .get().get(new TopicPartition(topic, 0)).offset());
            }
            for (String protocol : List.of("classic", "consumer")) {
                System.out.println("found " + protocol + ": " + read(servers, topic, protocol, "read_committed", 2));
            }
            System.out.println("found uncommitted: " + read(servers, topic, "classic", "read_uncommitted", 3));
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
            System.out.println("found partitions: "
                    + admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size());
            admin.deleteTopics(List.of(topic)).all().get();
            System.out.println("found deleted");
        }
    }
}
