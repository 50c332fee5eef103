/* The allocating functions that the C libraries of this extension, such as librdkafka, are linked with: mimalloc's.
 * They are hidden, so that the rest of the process keeps its own; see allocator.rs. */

#define _GNU_SOURCE
#include <mimalloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OURS __attribute__((visibility("hidden")))

OURS void *malloc(size_t size) { return mi_malloc(size); }
OURS void *calloc(size_t count, size_t size) { return mi_calloc(count, size); }
OURS void *realloc(void *memory, size_t size) { return mi_realloc(memory, size); }
OURS void *reallocarray(void *memory, size_t count, size_t size) { return mi_reallocarray(memory, count, size); }
OURS void free(void *memory) { mi_free(memory); }
OURS char *strdup(const char *text) { return mi_strdup(text); }
OURS char *strndup(const char *text, size_t size) { return mi_strndup(text, size); }
OURS char *realpath(const char *path, char *resolved) { return mi_realpath(path, resolved); }
OURS int posix_memalign(void **memory, size_t alignment, size_t size) { return mi_posix_memalign(memory, alignment, size); }
OURS void *aligned_alloc(size_t alignment, size_t size) { return mi_aligned_alloc(alignment, size); }
OURS void *memalign(size_t alignment, size_t size) { return mi_memalign(alignment, size); }

/* The beginnings of two structures of mimalloc 3 (include/mimalloc/types.h). */
struct of_thread { size_t thread_id; };
struct heap_of_thread { struct of_thread *of_thread; };
extern __thread struct heap_of_thread *__mi_theap_default OURS;

static _Alignas(64) char no_thread;

/* Mimalloc takes the thread that loads it for the one that lives as long as the process, and its heap for the main one.
 * Where that thread ends, a later one may get its address: it would count as the main thread and use a heap that is
 * gone. So the heap is given to no thread, where another than the process's first one loads the extension. It then
 * outlives its thread, which frees its memory as other threads do. */
__attribute__((constructor)) static void keep_main_heap(void) {
    mi_free(mi_malloc(1)); /* Mimalloc is initialised now, in whatever order constructors run. */
    if (syscall(SYS_gettid) != getpid()) __mi_theap_default->of_thread->thread_id = (size_t)&no_thread;
}
