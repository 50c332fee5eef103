//! Hostile records: random ones (the number of cases is `PROPTEST_CASES`, 64 where that is not set), and attacks
//! that were measured.
//!
//! No decoder panics, every bound holds, and a record that is accepted has the same meaning when it is encoded again.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::prelude::*;

use super::protocol::{self, RequestHead};
use super::responder::testing::{self, Named, named};
use super::{
    Admission, AdmissionOptions, Admitted, Arrival, CallId, InvalidRequest, MethodRules, RejectReason, ReplyKind,
    RequestRecord, SigningKey,
};
use crate::fuzzing::cases;
use crate::kafka::Fetched;

type Owned = Vec<(String, Option<Vec<u8>>)>;

const NOW_MS: f64 = 1_700_000_000_000.0;
const DEADLINE: &[u8] = b"1700000005000";
const TOPIC: &str = "shop.rpc.calls";

const NAMES: [&str; 14] = [
    protocol::KIND,
    protocol::ID,
    protocol::METHOD,
    protocol::CALLER,
    protocol::DEADLINE,
    protocol::BUDGET,
    protocol::REPLY_TOPIC,
    protocol::REPLY_PARTITION,
    protocol::IDEMPOTENCY,
    protocol::CREDIT,
    protocol::SEQUENCE,
    protocol::SIGNED_NAMES,
    protocol::SIGNATURE,
    "tenant",
];

fn value_of(name: &str) -> BoxedStrategy<Vec<u8>> {
    let likely = match name {
        protocol::KIND => "call|cast|cancel|more|reply|item|end|error".boxed(),
        protocol::DEADLINE | protocol::BUDGET | protocol::CREDIT | protocol::SEQUENCE => "[0-9]{1,18}".boxed(),
        protocol::REPLY_PARTITION => "[0-9]{1,9}".boxed(),
        protocol::REPLY_TOPIC => "replies|.{1,9}".boxed(),
        protocol::METHOD => "quote|.{0,9}".boxed(),
        protocol::SIGNED_NAMES => "(tenant|,|rpc-id|x){0,4}".boxed(),
        _ => ".{1,16}".boxed(),
    };
    let likely = likely.prop_map(String::into_bytes);
    prop_oneof![60 => likely, 1 => "[0-9]{17,20}".prop_map(String::into_bytes), 2 => vec(any::<u8>(), 0..300)].boxed()
}

fn header() -> impl Strategy<Value = (String, Option<Vec<u8>>)> {
    let named = prop_oneof![9 => proptest::sample::select(&NAMES[..]).prop_map(str::to_owned), 1 => ".{0,9}"];
    named.prop_flat_map(|name| {
        let value = proptest::option::weighted(0.9, value_of(&name));
        (Just(name), value)
    })
}

/// Headers of the protocol in any order, missing, repeated, or too many.
fn headers() -> impl Strategy<Value = Owned> {
    let each = NAMES.map(|name| (Just(name.to_owned()), proptest::option::weighted(0.95, value_of(name))));
    let whole = each.to_vec().prop_shuffle();
    prop_oneof![
        3 => (whole, vec(header(), 0..3)).prop_map(|(all, more)| [all, more].concat()),
        1 => vec(header(), 0..90)
    ]
}

fn lent(owned: &Owned) -> Vec<(Cow<'_, str>, Option<&[u8]>)> {
    owned.iter().map(|(name, value)| (Cow::from(name), value.as_deref())).collect()
}

fn check_bounds(head: &RequestHead<'_>) {
    assert!([protocol::CALL, protocol::CAST, protocol::CANCEL, protocol::MORE].contains(&head.kind));
    assert!(head.id.len() <= 64 && (head.kind == protocol::CAST || !head.id.is_empty()));
    assert!(head.method.len() <= 128 && head.caller.len() <= 128);
    assert!(head.idempotency_key.is_none_or(|key| key.len() <= 256));
    assert!(head.reply_to.is_none_or(|(topic, partition)| topic.len() <= 249 && partition >= 0));
    assert_eq!(head.reply_to.is_some(), head.kind == protocol::CALL);
    assert!(head.signed_names.len() <= 4_096);
}

fn admission(key: Option<SigningKey>) -> Admission<Named> {
    let options = AdmissionOptions {
        bytes_max: 1_000_000,
        key,
        waiting_max: 100,
        waiting_bytes_max: 100_000,
        results_max: 100,
        results_bytes_max: 50_000,
        ..testing::options()
    };
    testing::admission_with(options, vec![MethodRules { name: "quote".into(), ..MethodRules::default() }])
}

fn key() -> SigningKey {
    SigningKey::new(b"secret", TOPIC)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn fuzz_a_request_is_refused_or_means_the_same_when_it_is_encoded_again(owned in headers()) {
        let all = lent(&owned);
        let Ok(head) = RequestHead::read(&all) else { return Ok(()) };
        check_bounds(&head);
        let encoded = head.encode();
        let again: Vec<_> = encoded.iter().map(|(name, value)| (Cow::from(*name), Some(&**value))).collect();
        prop_assert_eq!(RequestHead::read(&again).expect("it was read before"), head);
        let times = head.times(0, NOW_MS, 0.0, 100.0);
        prop_assert!((0.0..=100.0).contains(&times.queued_s) && (0.0..=100.0).contains(&times.budget_s));
        prop_assert!(head.names_signed().count() <= head.signed_names.len());
    }

    #[test]
    fn fuzz_a_responder_survives_any_record(
        owned in headers(), key in proptest::option::of(vec(any::<u8>(), 0..9)), body in vec(any::<u8>(), 0..99),
        is_signed: bool,
    ) {
        let all = lent(&owned);
        let admission = admission(is_signed.then(self::key));
        let record =
            RequestRecord { key: key.as_deref(), value: Some(&body), ..self::record(&all) };
        match admission.read(&record, NOW_MS) {
            Ok(Arrival::Call(head, times)) => {
                prop_assert!(!is_signed, "the secret is unknown to the sender");
                check_bounds(&head);
                admission.check(&head, &times);
                admission.admit(&named(&admission, "any", &head, record.size_bytes()));
            }
            Ok(Arrival::Cancel(head, times)) => prop_assert!(admission.cancel(&head, &times).is_none()),
            Ok(Arrival::More(head)) => admission.grant(&head),
            Err(_) => (),
        }
    }

    #[test]
    fn fuzz_a_signed_request_is_accepted_and_no_other(
        owned in headers(), body in vec(any::<u8>(), 0..99), place in any::<prop::sample::Index>(), byte in 1u8..,
    ) {
        let mut all = lent(&owned);
        all.retain(|(name, _)| name != protocol::SIGNATURE);
        let signature = key().sign_request(Some(b"key"), &all, &body);
        all.push((protocol::SIGNATURE.into(), Some(&signature)));
        prop_assert!(key().is_request_signed(Some(b"key"), &all, &body));
        prop_assert!(!SigningKey::new(b"secret", "bank.rpc.calls").is_request_signed(Some(b"key"), &all, &body));
        let mut forged = signature.clone();
        forged[place.index(signature.len())] ^= byte;
        all.pop();
        all.push((protocol::SIGNATURE.into(), Some(&forged)));
        prop_assert!(!key().is_request_signed(Some(b"key"), &all, &body));
    }

    #[test]
    fn fuzz_a_reply_is_none_or_means_the_same_when_it_is_encoded_again(
        owned in headers(), body in vec(any::<u8>(), 0..99),
    ) {
        let all = owned.iter().map(|(name, value)| (Cow::from(name), Cow::from(value.clone().unwrap_or_default())));
        let fetched = Fetched { value: Cow::from(&body), headers: all.collect() };
        if let Some(id) = protocol::header(&fetched.headers, protocol::ID).and_then(CallId::of) {
            prop_assert_eq!(CallId::of(&id.to_bytes()), Some(id));
        }
        prop_assert!(!key().is_reply_signed(&fetched));
        let Some(reply) = protocol::read_reply(&fetched) else { return Ok(()) };
        let sequence = reply.sequence.to_string();
        let headers = vec![
            (Cow::from(protocol::KIND), Cow::from(reply.kind.name().as_bytes())),
            (Cow::from(protocol::SEQUENCE), Cow::from(sequence.as_bytes())),
        ];
        let again = protocol::read_reply(&Fetched { value: Cow::from(&reply.body), headers }).expect("read before");
        prop_assert_eq!((again.kind, again.sequence, again.body), (reply.kind, reply.sequence, reply.body));
    }
}

fn call<'a>(more: &[(&'a str, &'a [u8])]) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
    let plain: [(&str, &[u8]); 6] = [
        (protocol::KIND, b"call"),
        (protocol::ID, b"1"),
        (protocol::METHOD, b"quote"),
        (protocol::REPLY_TOPIC, b"replies"),
        (protocol::REPLY_PARTITION, b"0"),
        (protocol::DEADLINE, DEADLINE),
    ];
    plain.iter().chain(more).map(|(name, value)| (Cow::from(*name), Some(*value))).collect()
}

fn record<'a>(headers: &'a protocol::HeaderList<'a>) -> RequestRecord<'a> {
    RequestRecord { headers, key: None, value: Some(b"{}"), place: (0, 1), sent_ms: NOW_MS as i64 }
}

#[test]
fn headers_of_900_kilobytes_are_refused_unheld() {
    let (admission, long) = (admission(None), vec![b'x'; 900_000]);
    for name in [protocol::ID, protocol::IDEMPOTENCY, protocol::CALLER, protocol::METHOD, protocol::REPLY_TOPIC] {
        for kind in [&b"call"[..], b"cast", b"cancel", b"more"] {
            let all = call(&[(protocol::KIND, kind), (name, &long)]);
            assert_eq!(admission.read(&record(&all), NOW_MS).err(), Some(InvalidRequest::Undecodable), "{name}");
        }
    }
    let all = call(&[("x", &long), ("y", &long)]);
    assert_eq!(admission.read(&record(&all), NOW_MS).err(), Some(InvalidRequest::TooLarge), "headers count as bytes");
}

#[test]
fn callers_and_idempotency_keys_are_held_within_bounds() {
    let admission = admission(None);
    for number in 0..1_000u32 {
        let name = format!("{number:0128}");
        let key = [name.as_bytes(), name.as_bytes()].concat();
        let all = call(&[(protocol::CALLER, name.as_bytes()), (protocol::IDEMPOTENCY, &key)]);
        let Ok(Arrival::Call(head, _)) = admission.read(&record(&all), NOW_MS) else { panic!("as long as may be") };
        let call = named(&admission, "any", &head, record(&all).size_bytes());
        assert_eq!(admission.admit(&call), Admitted::Run);
        admission.end(&call, Some(ReplyKind::Result), b"1");
        admission.release(&call);
        assert!(admission.results_bytes() <= 50_000);
    }
}

#[test]
fn a_reply_address_is_judged_before_the_call() {
    let admission = admission(None);
    let judge = |topic: &[u8], partition: &[u8]| {
        let all = call(&[(protocol::REPLY_TOPIC, topic), (protocol::REPLY_PARTITION, partition)]);
        admission.read(&record(&all), NOW_MS).err()
    };
    assert_eq!(judge(b"replies", b"1"), None);
    assert_eq!(judge(b"replies", b"2"), Some(InvalidRequest::ReplyPartition));
    assert_eq!(judge(b"__consumer_offsets", b"0"), Some(InvalidRequest::ReplyTopic));
    admission.set_reply_topics([("replies".to_owned(), 3)]);
    assert_eq!(judge(b"replies", b"2"), None, "partitions were added");
}

/// The headers of a call with its signature.
fn signed<'a>(
    signature: &'a mut Vec<u8>,
    key: Option<&[u8]>,
    more: &[(&'a str, &'a [u8])],
) -> Vec<(Cow<'a, str>, Option<&'a [u8]>)> {
    let mut all = call(more);
    *signature = self::key().sign_request(key, &all, b"{}");
    all.push((protocol::SIGNATURE.into(), Some(signature)));
    all
}

#[test]
fn a_copy_of_a_signed_request_is_refused() {
    let (admission, mut signature) = (admission(Some(key())), Vec::new());
    let all = signed(&mut signature, Some(b"key"), &[]);
    let at = |place, key| RequestRecord { key, place, ..record(&all) };
    assert!(admission.read(&at((0, 1), Some(b"key")), NOW_MS).is_ok());
    assert!(admission.read(&at((0, 1), Some(b"key")), NOW_MS).is_ok(), "from its own place");
    assert_eq!(admission.read(&at((0, 2), Some(b"key")), NOW_MS).err(), Some(InvalidRequest::Replayed));
    for other in [Some(&b"other"[..]), None] {
        assert_eq!(admission.read(&at((0, 3), other), NOW_MS).err(), Some(InvalidRequest::Forged), "under another key");
    }
    let elsewhere = self::admission(Some(SigningKey::new(b"secret", "bank.rpc.calls")));
    let found = elsewhere.read(&at((0, 1), Some(b"key")), NOW_MS).err();
    assert_eq!(found, Some(InvalidRequest::Forged), "in the topic of another service");
}

#[test]
fn a_copy_that_a_restarted_responder_gets_is_bounded_by_its_deadline() {
    let mut signature = Vec::new();
    let all = signed(&mut signature, None, &[]);
    let copied = |now_ms: f64| {
        let restarted = admission(Some(key()));
        let arrival = restarted.read(&RequestRecord { place: (0, 9), ..record(&all) }, now_ms);
        let Ok(Arrival::Call(head, times)) = arrival else { panic!("it is signed") };
        restarted.check(&head, &times).1
    };
    assert_eq!(copied(NOW_MS), None, "the place of the first was forgotten with the process");
    assert_eq!(copied(NOW_MS + 5_001.0), Some(RejectReason::Expired));
}

#[test]
fn a_signed_request_needs_a_deadline_and_an_id() {
    let admission = admission(Some(key()));
    for (name, kind) in [(protocol::DEADLINE, &b"call"[..]), (protocol::DEADLINE, b"cancel"), (protocol::ID, b"cast")] {
        let mut all = call(&[(protocol::KIND, kind)]);
        all.retain(|(each, _)| each != name);
        let signature = key().sign_request(None, &all, b"{}");
        all.push((protocol::SIGNATURE.into(), Some(&signature)));
        assert_eq!(admission.read(&record(&all), NOW_MS).err(), Some(InvalidRequest::Undecodable), "without {name}");
    }
}
