//! One librdkafka handle: made from settings, stamped with its process, destroyed once, and heard through one event
//! box.

use std::any::TypeId;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::linger::Linger;
use super::security::Security;
use super::tokens::Tokens;
use super::{AccessFailure, ClientConfig, ClientOptions, Code, EndTxns, Kind, OnRenewed, TopicId, ffi, text_of};
use crate::events::{Event, EventBox, What};
use crate::fork_guard::{Birthplace, ForkGuard};
use crate::{Error, Result};

/// The argument of librdkafka's callbacks: owned by the client, alive until the handle is destroyed.
pub(super) struct Context {
    name: Arc<str>,
    events: Arc<EventBox>,
    /// librdkafka's last text about a broker, so that a time-out can name its cause.
    last_error: Mutex<Option<String>>,
    kind: Kind,
    /// Lines of librdkafka's log above this level are not for others: they come for the sake of `on_renewed` only.
    log_level_max: c_int,
    on_renewed: OnceLock<OnRenewed>,
    /// Why brokers do not let the client in.
    security: Security,
    tokens: Tokens,
    pub(super) linger: Linger,
}

unsafe extern "C" {
    /// Patch 0014.
    fn awoke_hold_subscriptions_back(rk: *mut ffi::rd_kafka_t);
}

/// librdkafka's default for `log_level`.
const LOG_LEVEL: c_int = 6;
const LOG_LEVEL_DEBUG: c_int = 7;

/// One librdkafka handle.
pub struct Client {
    handle: *mut ffi::rd_kafka_t,
    context: *mut Context,
    guard: ForkGuard,
    kind: Kind,
    /// The type that takes the delivery reports.
    reported: Option<TypeId>,
    /// The counts that interceptors write: dropped after the handle is destroyed.
    _end_txns: Option<Arc<EndTxns>>,
}

// SAFETY: a rd_kafka_t may be used from any thread, and the context is only read.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    /// Makes a handle. `what` names it in errors.
    ///
    /// # Errors
    /// [`Error::Config`]: librdkafka refuses a property, or cannot use what a property names (a certificate file, say).
    pub fn new(
        kind: Kind,
        what: &'static str,
        config: &ClientConfig,
        events: Arc<EventBox>,
        options: ClientOptions,
    ) -> Result<Arc<Self>> {
        if options.has_interceptors() {
            try_out(kind, what, config)?;
        }
        let tokens = Tokens::of(config)?;
        let is_debugged = config.get("debug").is_some();
        let mut with_debug = config.clone();
        if kind == Kind::Consumer {
            // librdkafka (2.12.1) says only there that a topic was made again, and reads on as if it were the old one.
            let contexts = config.get("debug").map_or_else(String::new, |contexts| format!("{contexts},"));
            with_debug.set("debug", contexts + "metadata");
        }
        let log_level = config.get("log_level").and_then(|level| level.parse().ok()).unwrap_or(LOG_LEVEL);
        if log_level < LOG_LEVEL {
            with_debug.set("log_level", LOG_LEVEL.to_string()); // `security` reads lines that others do not want.
        }
        let conf = with_debug.to_native()?;
        let name = config.get("group.id").or_else(|| config.get("client.id")).unwrap_or("rdkafka");
        let context = Box::into_raw(Box::new(Context {
            name: name.into(),
            events,
            last_error: Mutex::default(),
            kind,
            log_level_max: if is_debugged { LOG_LEVEL_DEBUG } else { log_level },
            on_renewed: OnceLock::new(),
            security: Security::of(config),
            tokens,
            linger: options.linger(),
        }));
        let (has_interceptors, reported) = (options.has_interceptors(), options.reported());
        let mut reason = [0 as c_char; 512];
        // SAFETY: the callbacks only read the context, which lives until the handle is destroyed, as do the counts. On
        // success librdkafka owns the configuration. On failure it is ours again, but its lists of interceptors are
        // freed already: see `try_out`.
        let (handle, end_txns) = unsafe {
            ffi::rd_kafka_conf_set_opaque(conf.as_ptr(), context.cast());
            ffi::rd_kafka_conf_set_log_cb(conf.as_ptr(), Some(on_log));
            ffi::rd_kafka_conf_set_error_cb(conf.as_ptr(), Some(on_error));
            ffi::rd_kafka_conf_set_stats_cb(conf.as_ptr(), Some(on_statistics));
            if config.get("enable.ssl.certificate.verification") != Some("false") {
                ffi::rd_kafka_conf_set_ssl_cert_verify_cb(conf.as_ptr(), Some(on_certificate));
            }
            (*context).tokens.prepare(conf.as_ptr());
            let end_txns = options.prepare(conf.as_ptr());
            (ffi::rd_kafka_new(kind.native(), conf.as_ptr(), reason.as_mut_ptr(), reason.len()), end_txns)
        };
        if handle.is_null() {
            if has_interceptors {
                // Destroying it would free the interceptors again. Only what changed since `try_out` leads here.
                let _leaked = conf.into_raw();
            }
            // SAFETY: no handle was made, so the context is ours again; the reason ends in zero.
            let reason = unsafe {
                drop(Box::from_raw(context));
                text_of(reason.as_ptr())
            };
            return Err(Error::Config { property: what.to_owned(), reason });
        }
        let _now_librdkafkas = conf.into_raw();
        if kind == Kind::Consumer {
            // SAFETY: the handle is alive, and nothing has subscribed yet.
            unsafe { awoke_hold_subscriptions_back(handle) };
        }
        let client =
            Arc::new(Self { handle, context, guard: ForkGuard::new(what), kind, reported, _end_txns: end_txns });
        client.context().tokens.begin(&client)?;
        Ok(client)
    }

    /// The handle, for calls of this process only.
    pub(crate) const fn handle(&self) -> *mut ffi::rd_kafka_t {
        self.handle
    }

    /// The type that takes the delivery reports.
    pub(crate) const fn reported(&self) -> Option<TypeId> {
        self.reported
    }

    /// Refuses use in another process than the handle's own.
    pub fn check_process(&self) -> Result<()> {
        Ok(self.guard.check()?)
    }

    /// The process that the handle belongs to.
    pub const fn birthplace(&self) -> Birthplace {
        self.guard.birthplace()
    }

    /// Returns the client's name, as events carry it.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.context().name)
    }

    /// Puts an event of this client into its event box.
    pub fn emit(&self, what: What) {
        self.context().emit(what);
    }

    /// Has this called for topics that are deleted and made again; of a consumer, once.
    pub fn on_topic_renewed(&self, on_renewed: OnRenewed) {
        drop(self.context().on_renewed.set(on_renewed));
    }

    /// Returns librdkafka's last text about a broker; empty when there is none.
    pub fn last_error(&self) -> String {
        self.context().last_error.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    /// After this time a waiting thread looks again whether all brokers refuse a suspect client: signs that are in
    /// doubt count later.
    pub const LOOK_AGAIN: Duration = Duration::from_millis(500);

    /// Returns whether a broker has refused to let the client in. Reads one atomic.
    pub fn is_suspect(&self) -> bool {
        self.context().security.is_suspect()
    }

    /// Why the client can't connect, if every bootstrap broker says so and none has ever let it in: waiting is no use
    /// then. Does not block. Not to be called by a callback of librdkafka's.
    pub fn access_failure(&self) -> Option<AccessFailure> {
        let failure = self.is_suspect().then(|| self.context().security.access_failure()).flatten()?;
        (!self.was_let_in()).then_some(failure)
    }

    /// The access failure that a broker gave last, if it gave one since another let the client in. Does not block.
    pub fn last_access_failure(&self) -> Option<AccessFailure> {
        let security = &self.context().security;
        self.is_suspect().then(|| security.access_failure().or_else(|| security.last_access_failure())).flatten()
    }

    /// Returns the missing permission that made the client unusable, if one did. Does not block.
    pub fn denial(&self) -> Option<AccessFailure> {
        let (code, text) = self.fatal_error().filter(|(code, _)| code.is_denied())?;
        Some(AccessFailure { code, text })
    }

    /// Notes why there is no token, or that there is one.
    pub fn note_token(&self, failure: Option<&str>) {
        self.context().security.note_token(failure);
    }

    /// Returns whether a broker has ever answered a question that only a client which was let in may ask. Does not
    /// block.
    pub fn was_let_in(&self) -> bool {
        // SAFETY: the handle is alive; the text, if any, is ours to free.
        unsafe {
            let cluster = ffi::rd_kafka_clusterid(self.handle, 0);
            if cluster.is_null() {
                return false;
            }
            ffi::rd_kafka_mem_free(self.handle, cluster.cast());
        }
        true
    }

    /// The error that made the client unusable, if one did.
    pub fn fatal_error(&self) -> Option<(Code, String)> {
        let mut text = [0 as c_char; 512];
        // SAFETY: librdkafka writes at most 512 bytes and ends them with a zero.
        unsafe {
            let code = Code::of(ffi::rd_kafka_fatal_error(self.handle, text.as_mut_ptr(), text.len()));
            (code != Code::NONE).then(|| (code, text_of(text.as_ptr())))
        }
    }

    pub(super) const fn linger(&self) -> &Linger {
        &self.context().linger
    }

    const fn context(&self) -> &Context {
        // SAFETY: the context lives as long as the client.
        unsafe { &*self.context }
    }
}

impl Kind {
    const fn native(self) -> ffi::rd_kafka_type_t {
        match self {
            Self::Producer | Self::Admin | Self::Transactional => ffi::rd_kafka_type_t::RD_KAFKA_PRODUCER,
            Self::Consumer => ffi::rd_kafka_type_t::RD_KAFKA_CONSUMER,
        }
    }
}

/// Makes a handle without interceptors or brokers, and destroys it: refuses what the real one would be refused for.
///
/// librdkafka 2.12.1 frees a configuration's interceptors when `rd_kafka_new` fails, and `rd_kafka_conf_destroy` frees
/// them again (librdkafka #5240). A configuration with interceptors must therefore not fail.
fn try_out(kind: Kind, what: &'static str, config: &ClientConfig) -> Result<()> {
    let mut trial = config.clone();
    trial.remove("bootstrap.servers").remove("metadata.broker.list").set("log_level", "0");
    let conf = trial.to_native()?;
    let mut reason = [0 as c_char; 512];
    // SAFETY: on success librdkafka owns the configuration, on failure it is still ours; the reason ends in zero.
    unsafe {
        ffi::rd_kafka_conf_set_log_cb(conf.as_ptr(), Some(on_log));
        let handle = ffi::rd_kafka_new(kind.native(), conf.as_ptr(), reason.as_mut_ptr(), reason.len());
        if handle.is_null() {
            return Err(Error::Config { property: what.to_owned(), reason: text_of(reason.as_ptr()) });
        }
        let _now_librdkafkas = conf.into_raw();
        ffi::rd_kafka_destroy(handle);
    }
    Ok(())
}

impl Context {
    fn emit(&self, what: What) {
        self.events.post(Event { client: Arc::clone(&self.name), what });
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.guard.is_foreign() {
            // The threads that destroying would wait for are not in this process: leaving the memory is the only safe
            // thing.
            return;
        }
        // A consumer was closed by its owner before; closing it again here would wait for rebalances that no
        // thread serves.
        let flags = if self.kind == Kind::Consumer { ffi::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE as c_int } else { 0 };
        // SAFETY: the last reference goes here, so no thread uses the handle any more, and after it no callback reads
        // the context.
        unsafe {
            ffi::rd_kafka_destroy_flags(self.handle, flags);
            drop(Box::from_raw(self.context));
        }
    }
}

/// Notes that a broker has let the client of a callback in.
///
/// # Safety
/// `opaque` is what librdkafka calls a callback of the client's with.
pub(crate) unsafe fn note_let_in(opaque: *mut c_void) {
    // SAFETY: the caller's promise.
    let security = unsafe { &context_of(opaque).security };
    if security.is_suspect() {
        security.forget();
    }
}

/// The context of a callback.
///
/// # Safety
/// `opaque` is the pointer that `Client::new` gave to librdkafka, and its client is alive.
pub(super) unsafe fn context_of<'a>(opaque: *mut c_void) -> &'a Context {
    // SAFETY: the caller's promise.
    unsafe { &*opaque.cast::<Context>() }
}

unsafe extern "C" fn on_log(rk: *const ffi::rd_kafka_t, level: c_int, facility: *const c_char, text: *const c_char) {
    // SAFETY: librdkafka calls with a live handle, whose opaque is our context, and two strings.
    unsafe {
        let opaque = ffi::rd_kafka_opaque(rk);
        if !opaque.is_null() {
            let (context, facility, text) = (context_of(opaque), text_of(facility), text_of(text));
            if let (LOG_LEVEL_DEBUG, Some((topic, id)), Some(on_renewed)) =
                (level, renewed_topic(&text), context.on_renewed.get())
            {
                on_renewed(topic, TopicId(id.into()));
            }
            if facility == "FAIL" {
                context.security.note_failure(&text);
            }
            // A certificate that was not accepted is said again, without the names in it, by the connection that fails.
            if level > context.log_level_max || facility == "SSLCERTVRFY" {
                return;
            }
            if facility == "FAIL" {
                *context.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.clone());
            }
            context.emit(What::Log { level, facility, text });
        }
    }
}

/// The topic, and its new id, of a line like `[thrd:main]: Topic orders changed id from 4Xw… to pQz…`, unless its id
/// was not known before.
fn renewed_topic(text: &str) -> Option<(&str, &str)> {
    const NO_ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";
    let (topic, ids) = text.split_once("Topic ")?.1.split_once(" changed id from ")?;
    let (_, id) = ids.split_once(" to ").filter(|(before, _)| *before != NO_ID)?;
    Some((topic, id.trim_end()))
}

unsafe extern "C" fn on_error(rk: *mut ffi::rd_kafka_t, code: c_int, reason: *const c_char, opaque: *mut c_void) {
    let code = Code(code);
    // SAFETY: librdkafka calls with a live handle, our context and a string.
    unsafe {
        let mut text = text_of(reason);
        let mut cause = code;
        if code == Code::FATAL {
            let mut fatal = [0 as c_char; 512];
            cause = Code::of(ffi::rd_kafka_fatal_error(rk, fatal.as_mut_ptr(), fatal.len()));
            text = text_of(fatal.as_ptr());
        }
        let context = context_of(opaque);
        *context.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.clone());
        let fatal = code == Code::FATAL && context.kind != Kind::Transactional;
        context.emit(What::Error { code: cause, text, fatal });
        end_poll(rk, context.kind);
    }
}

/// Ends the poll that a callback runs in, so that its thread looks whether waiting is still of use.
///
/// # Safety
/// `rk` is the live handle of a callback.
unsafe fn end_poll(rk: *mut ffi::rd_kafka_t, kind: Kind) {
    // SAFETY: the caller's promise; the reference to the queue is given back.
    unsafe {
        match kind {
            Kind::Producer | Kind::Transactional => ffi::rd_kafka_yield(rk),
            Kind::Admin => {
                let queue = ffi::rd_kafka_queue_get_main(rk);
                ffi::rd_kafka_queue_yield(queue);
                ffi::rd_kafka_queue_destroy(queue);
            }
            Kind::Consumer => (),
        }
    }
}

/// Notes OpenSSL's verify result on each certificate of a broker's chain, and keeps to it.
unsafe extern "C" fn on_certificate(
    _rk: *mut ffi::rd_kafka_t,
    broker: *const c_char,
    _broker_id: i32,
    x509_error: *mut c_int,
    _depth: c_int,
    _certificate: *const c_char,
    _size: usize,
    _reason: *mut c_char,
    _reason_size: usize,
    opaque: *mut c_void,
) -> c_int {
    // SAFETY: librdkafka calls with our context, a string and a number.
    unsafe {
        let error = *x509_error;
        if error != 0 {
            context_of(opaque).security.note_certificate(&text_of(broker), error);
        }
        c_int::from(error == 0)
    }
}

/// librdkafka wants a token. Runs on its background thread.
pub(super) unsafe extern "C" fn on_token_wanted(rk: *mut ffi::rd_kafka_t, _config: *const c_char, opaque: *mut c_void) {
    // SAFETY: librdkafka calls with a live handle and our context, and copies the text.
    unsafe {
        if context_of(opaque).tokens.fetch().is_err() {
            ffi::rd_kafka_oauthbearer_set_token_failure(rk, c"the system gives no thread to fetch it".as_ptr());
        }
    }
}

unsafe extern "C" fn on_statistics(
    _rk: *mut ffi::rd_kafka_t,
    json: *mut c_char,
    _size: usize,
    opaque: *mut c_void,
) -> c_int {
    // SAFETY: librdkafka calls with our context and a string, which stays its own because we return 0.
    unsafe { context_of(opaque).emit(What::Statistics(text_of(json))) };
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_was_made_again_is_known_by_its_new_id() {
        let line = "[thrd:main]: Topic orders.v2 changed id from 0u8Yw_fRQk2Uxx to 5jS2aQ";
        assert_eq!(renewed_topic(line), Some(("orders.v2", "5jS2aQ")));
        let first = "[thrd:main]: Topic orders changed id from AAAAAAAAAAAAAAAAAAAAAA to 5jS2aQ";
        assert_eq!(renewed_topic(first), None);
        assert_eq!(renewed_topic("[thrd:main]: Topic orders [0] Leader 1 Epoch 0"), None);
    }
}
