//! Brokers for the engine's own tests: embedded, or Apache Kafka through the repository's script.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use awoke_embedded::Server;
use awoke_engine::events::{EventBox, event_box};
use awoke_engine::kafka::{Admin, AdminOutcome, AdminRequest, ClientConfig};

/// The time after which a wait of a test fails.
pub const WITHIN: Duration = Duration::from_secs(30);

/// Brokers for a test. They stop when it is dropped.
pub enum Cluster {
    Embedded(Server),
    Real { process: Child, bootstrap_servers: String },
}

impl Cluster {
    pub fn embedded() -> Self {
        Self::Embedded(Server::start(1).expect("embedded brokers start"))
    }

    /// Starts a broker of Apache Kafka; it stops when its standard input ends.
    pub fn real() -> Self {
        let mut process = Command::new("python3")
            .args(["-m", "tests.support.kafka_broker", "run"])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs the brokers");
        let output = process.stdout.take().expect("piped");
        let ready = BufReader::new(output)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("READY ").map(|(_, servers)| servers.to_owned()));
        let bootstrap_servers = ready.expect("the broker says that it is ready");
        Self::Real { process, bootstrap_servers }
    }

    pub fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set(
            "bootstrap.servers",
            match self {
                Self::Embedded(cluster) => cluster.bootstrap_servers(),
                Self::Real { bootstrap_servers, .. } => bootstrap_servers,
            },
        );
        config
    }

    pub fn create_topic(&self, name: &str, partitions: i32) {
        match self {
            Self::Embedded(cluster) => cluster.create_topic(name, partitions, 1).expect("created"),
            Self::Real { .. } => {
                let admin = Admin::new(&self.config(), events()).expect("an admin");
                let request = AdminRequest::CreateTopics(vec![(name.to_owned(), partitions, 1, Vec::new())]);
                let call = admin.request(&request, WITHIN).expect("sent");
                let deadline = awoke_engine::clock::Deadline::after(Some(WITHIN));
                match call.wait(&deadline).expect("answered").expect("answered well") {
                    AdminOutcome::Entries(topics) => assert!(topics[0].1.is_none(), "{topics:?}"),
                    _ => unreachable!("topics were asked for"),
                }
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Self::Real { process, .. } = self {
            drop(process.stdin.take());
            process.wait().expect("the broker script ends");
        }
    }
}

/// Returns a box for events, which no test reads.
pub fn events() -> Arc<EventBox> {
    event_box().expect("a descriptor")
}
