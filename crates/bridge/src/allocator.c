/* The allocating functions that the C libraries of this extension, such as librdkafka, are linked with: mimalloc's.
 * They are hidden, so that the rest of the process keeps its own; see allocator.rs. */

#include <mimalloc.h>

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
