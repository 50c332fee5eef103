//! One librdkafka handle: made from settings, stamped with its process, destroyed once, and heard through one event box.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{ClientConfig, Code, EndTxns, ffi, text_of};
use crate::events::{Event, EventBox, What};
use crate::fork_guard::{Birthplace, ForkGuard};
use crate::{Error, Result};

/// Which half of librdkafka a handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Producer,
    /// A producer that its owner replaces when it can't go on: what ends it is no end of anything else.
    Transactional,
    Consumer,
}

/// What librdkafka's callbacks get: owned by the client, alive until the handle is destroyed.
struct Context {
    name: Arc<str>,
    events: Arc<EventBox>,
    /// What librdkafka said last about a broker, so that a time-out can say why.
    last_error: Mutex<Option<String>>,
    kind: Kind,
    /// Lines of librdkafka's log above this level are not for others: they come for the sake of `on_renewed` only.
    log_level_max: c_int,
    on_renewed: OnceLock<OnRenewed>,
}

/// Called with the name of a topic that was deleted and made again, by a thread of librdkafka's that has not fetched from the new
/// topic yet. It must not block, nor call librdkafka.
pub(crate) type OnRenewed = Box<dyn Fn(&str) + Send + Sync>;

/// librdkafka's default for `log_level`.
const LOG_LEVEL: c_int = 6;
const LOG_LEVEL_DEBUG: c_int = 7;

/// One librdkafka handle.
pub(crate) struct Client {
    handle: *mut ffi::rd_kafka_t,
    context: *mut Context,
    guard: ForkGuard,
    kind: Kind,
    /// What interceptors write to: dropped after the handle is destroyed.
    _end_txns: Option<Arc<EndTxns>>,
}

// SAFETY: a rd_kafka_t may be used from any thread, and the context is only read.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

/// Makes librdkafka hand delivery reports to `callback`, from whichever thread serves the producer's queue.
pub(crate) type Deliverer = unsafe extern "C" fn(*mut ffi::rd_kafka_t, *const ffi::rd_kafka_message_t, *mut c_void);

/// Sets the delivery callback of a producer's configuration, which is valid while the client is being made.
pub(crate) fn set_deliverer(conf: *mut ffi::rd_kafka_conf_t, callback: Deliverer) {
    // SAFETY: as said.
    unsafe { ffi::rd_kafka_conf_set_dr_msg_cb(conf, Some(callback)) };
}

impl Client {
    /// Makes a handle; `prepare` may set what has no property (callbacks, event mask), and interceptors that write to `end_txns`.
    ///
    /// # Errors
    /// [`Error::Config`]: librdkafka refuses a property, or cannot use what a property names (a certificate file, say).
    pub(crate) fn new(
        kind: Kind,
        what: &'static str,
        config: &ClientConfig,
        events: Arc<EventBox>,
        end_txns: Option<Arc<EndTxns>>,
        prepare: impl FnOnce(*mut ffi::rd_kafka_conf_t),
    ) -> Result<Arc<Self>> {
        if end_txns.is_some() {
            try_out(kind, what, config)?;
        }
        let is_debugged = config.get("debug").is_some();
        let mut with_debug = config.clone();
        if kind == Kind::Consumer {
            // librdkafka (2.12.1) says only there that a topic was made again, and reads on as if it were the old one.
            let contexts = config.get("debug").map_or_else(String::new, |contexts| format!("{contexts},"));
            with_debug.set("debug", contexts + "metadata");
        }
        let log_level = config.get("log_level").and_then(|level| level.parse().ok()).unwrap_or(LOG_LEVEL);
        let conf = with_debug.to_native()?;
        let name = config.get("group.id").or_else(|| config.get("client.id")).unwrap_or("rdkafka");
        let context = Box::into_raw(Box::new(Context {
            name: name.into(),
            events,
            last_error: Mutex::default(),
            kind,
            log_level_max: if is_debugged { LOG_LEVEL_DEBUG } else { log_level },
            on_renewed: OnceLock::new(),
        }));
        let has_interceptors = end_txns.is_some();
        let mut reason = [0 as c_char; 512];
        // SAFETY: the callbacks only read the context, which lives until the handle is destroyed. On success librdkafka owns the
        // configuration. On failure it is ours again, but its lists of interceptors are freed already: see `try_out`.
        let handle = unsafe {
            ffi::rd_kafka_conf_set_opaque(conf.as_ptr(), context.cast());
            ffi::rd_kafka_conf_set_log_cb(conf.as_ptr(), Some(on_log));
            ffi::rd_kafka_conf_set_error_cb(conf.as_ptr(), Some(on_error));
            ffi::rd_kafka_conf_set_stats_cb(conf.as_ptr(), Some(on_statistics));
            prepare(conf.as_ptr());
            ffi::rd_kafka_new(kind.native(), conf.as_ptr(), reason.as_mut_ptr(), reason.len())
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
        Ok(Arc::new(Self { handle, context, guard: ForkGuard::new(what), kind, _end_txns: end_txns }))
    }

    /// The handle, for calls of this process only.
    pub(crate) const fn handle(&self) -> *mut ffi::rd_kafka_t {
        self.handle
    }

    /// Refuses use in another process than the handle's own.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.guard.check()
    }

    /// The process that the handle belongs to.
    pub(crate) const fn birthplace(&self) -> Birthplace {
        self.guard.birthplace()
    }

    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.context().name)
    }

    pub(crate) fn emit(&self, what: What) {
        self.context().emit(what);
    }

    /// Has this called for topics that are deleted and made again; of a consumer, once.
    pub(crate) fn on_topic_renewed(&self, on_renewed: OnRenewed) {
        drop(self.context().on_renewed.set(on_renewed));
    }

    /// What librdkafka said last about a broker; empty when it had nothing to say.
    pub(crate) fn last_error(&self) -> String {
        self.context().last_error.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    /// The error that made the client unusable, if one did.
    pub(crate) fn fatal_error(&self) -> Option<(Code, String)> {
        let mut text = [0 as c_char; 512];
        // SAFETY: librdkafka writes at most 512 bytes and ends them with a zero.
        unsafe {
            let code = Code::of(ffi::rd_kafka_fatal_error(self.handle, text.as_mut_ptr(), text.len()));
            (code != Code::NONE).then(|| (code, text_of(text.as_ptr())))
        }
    }

    const fn context(&self) -> &Context {
        // SAFETY: the context lives as long as the client.
        unsafe { &*self.context }
    }
}

impl Kind {
    const fn native(self) -> ffi::rd_kafka_type_t {
        match self {
            Self::Producer | Self::Transactional => ffi::rd_kafka_type_t::RD_KAFKA_PRODUCER,
            Self::Consumer => ffi::rd_kafka_type_t::RD_KAFKA_CONSUMER,
        }
    }
}

/// Makes a handle without interceptors or brokers, and destroys it: refuses what the real one would be refused for.
///
/// librdkafka 2.12.1 frees a configuration's interceptors when `rd_kafka_new` fails, and `rd_kafka_conf_destroy` frees them again
/// (librdkafka #5240). A configuration with interceptors must therefore not fail.
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
            // The threads that destroying would wait for are not in this process: leaving the memory is the only safe thing.
            return;
        }
        // A consumer was closed by its owner before; closing it again here would wait for rebalances that nobody serves.
        let flags = if self.kind == Kind::Consumer { ffi::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE as c_int } else { 0 };
        // SAFETY: the last reference goes here, so nobody uses the handle any more, and after it no callback reads the context.
        unsafe {
            ffi::rd_kafka_destroy_flags(self.handle, flags);
            drop(Box::from_raw(self.context));
        }
    }
}

/// The context of a callback.
///
/// # Safety
/// `opaque` is the pointer that `Client::new` gave to librdkafka, and its client is alive.
unsafe fn context_of<'a>(opaque: *mut c_void) -> &'a Context {
    // SAFETY: the caller's promise.
    unsafe { &*opaque.cast::<Context>() }
}

unsafe extern "C" fn on_log(rk: *const ffi::rd_kafka_t, level: c_int, facility: *const c_char, text: *const c_char) {
    // SAFETY: librdkafka calls with a live handle, whose opaque is our context, and two strings.
    unsafe {
        let opaque = ffi::rd_kafka_opaque(rk);
        if !opaque.is_null() {
            let (context, facility, text) = (context_of(opaque), text_of(facility), text_of(text));
            if let (LOG_LEVEL_DEBUG, Some(topic), Some(on_renewed)) =
                (level, renewed_topic(&text), context.on_renewed.get())
            {
                on_renewed(topic);
            }
            if level > context.log_level_max {
                return;
            }
            if facility == "FAIL" {
                *context.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.clone());
            }
            context.emit(What::Log { level, facility, text });
        }
    }
}

/// The topic of a line like `[thrd:main]: Topic orders changed id from 4Xw… to pQz…`, unless its id was not known before.
fn renewed_topic(text: &str) -> Option<&str> {
    const NO_ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";
    let (topic, ids) = text.split_once("Topic ")?.1.split_once(" changed id from ")?;
    (!ids.starts_with(NO_ID)).then_some(topic)
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

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_topic_that_was_made_again_is_known_by_its_new_id() {
        let line = "[thrd:main]: Topic orders.v2 changed id from 0u8Yw_fRQk2Uxx to 5jS2aQ";
        assert_eq!(renewed_topic(line), Some("orders.v2"));
        let first = "[thrd:main]: Topic orders changed id from AAAAAAAAAAAAAAAAAAAAAA to 5jS2aQ";
        assert_eq!(renewed_topic(first), None);
        assert_eq!(renewed_topic("[thrd:main]: Topic orders [0] Leader 1 Epoch 0"), None);
    }
}
