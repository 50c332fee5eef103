import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;

/**
 * Moves the partitions of a topic to other brokers and has the first of each lead it, which confluent-kafka cannot do.
 * Run with the brokers' addresses, the topic, and one or several plans: "2,3/3,2" are the brokers of two partitions.
 */
public class Reassign {
    public static void main(String[] words) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", words[0]);
        try (Admin admin = Admin.create(properties)) {
            for (int i = 2; i < words.length; i++) {
                move(admin, words[1], words[i].split("/"));
            }
        }
    }

    static void move(Admin admin, String topic, String[] plan) throws Exception {
        Map<TopicPartition, Optional<NewPartitionReassignment>> targets = new HashMap<>();
        for (int partition = 0; partition < plan.length; partition++) {
            List<Integer> brokers = new ArrayList<>();
            for (String broker : plan[partition].split(",")) {
                brokers.add(Integer.valueOf(broker));
            }
            targets.put(new TopicPartition(topic, partition), Optional.of(new NewPartitionReassignment(brokers)));
        }
        admin.alterPartitionReassignments(targets).all().get();
        Set<TopicPartition> partitions = new HashSet<>(targets.keySet());
        while (!admin.listPartitionReassignments(partitions).reassignments().get().isEmpty()) {
            Thread.sleep(100);
        }
        // The answer has an error for each partition that is led so already, and this program does not mind.
        admin.electLeaders(ElectionType.PREFERRED, partitions).partitions().get();
    }
}
