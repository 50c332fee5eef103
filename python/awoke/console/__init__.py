"""The console: reports and errors of running processes in two topics of Kafka, and the state that is read from them."""
