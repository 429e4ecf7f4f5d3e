// An allocator that ends the process when memory is used beyond what was asked for: `tests/helpers/operator_search.py`
// preloads it. While `guarded_malloc_on` is set, each block lies at the end of pages of its own, between pages that
// nobody may touch; what its last page has before and after the block is filled, and looked at when it is freed.
// Blocks of before are left to the C library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, GUARD = 64 * PAGE, FILLED = 0xA5 };
static const size_t ARENA = (size_t)1 << 42, LARGEST = (size_t)1 << 30;

int guarded_malloc_on = 0;

typedef struct {
  size_t size, pages;  // bytes of the block; bytes of its pages, this header's among them
} Header;

static unsigned char *arena, *next;
static void *(*libc_malloc)(size_t), *(*libc_calloc)(size_t, size_t), *(*libc_realloc)(void *, size_t);
static int (*libc_posix_memalign)(void **, size_t, size_t);
static void (*libc_free)(void *);

extern void *__libc_calloc(size_t, size_t);

__attribute__((constructor)) static void prepare(void) {
  libc_malloc = dlsym(RTLD_NEXT, "malloc");
  libc_calloc = dlsym(RTLD_NEXT, "calloc");
  libc_realloc = dlsym(RTLD_NEXT, "realloc");
  libc_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
  libc_free = dlsym(RTLD_NEXT, "free");
  arena = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  next = arena == MAP_FAILED ? NULL : arena;
}

static int is_guarded(const void *block) {
  return next && (const unsigned char *)block >= arena && (const unsigned char *)block < arena + ARENA;
}

// Pages, from low to high: a guard, the header's page, a guard, the block's pages, a guard (which is the next one's).
static void *guarded(size_t size, size_t alignment) {
  size += size == 0;
  if (size > LARGEST) return NULL;
  const size_t pages = (size + PAGE - 1) / PAGE * PAGE;
  unsigned char *const start = __sync_fetch_and_add(&next, GUARD + PAGE + GUARD + pages);
  if (start + 3 * GUARD + PAGE + pages > arena + ARENA) return NULL;
  unsigned char *const head = start + GUARD, *const body = head + PAGE + GUARD;
  if (mprotect(head, PAGE, PROT_READ | PROT_WRITE) || mprotect(body, pages, PROT_READ | PROT_WRITE)) return NULL;
  *(Header *)head = (Header){size, pages};
  memset(body, FILLED, pages < 16 * PAGE ? pages : 16 * PAGE);
  unsigned char *const block = body + (pages - size) / alignment * alignment;
  memset(block + size, FILLED, (size_t)(body + pages - block) - size);
  return block;
}

static Header *header_of(unsigned char *block) {
  unsigned char *const body = (unsigned char *)((uintptr_t)block / PAGE * PAGE);
  Header *const header = (Header *)(body - GUARD - PAGE);
  return header;
}

static void release(unsigned char *block) {
  const Header header = *header_of(block);
  unsigned char *const body = (unsigned char *)((uintptr_t)block / PAGE * PAGE);
  for (unsigned char *at = body; at < block; ++at) {
    if (*at != FILLED) abort();
  }
  for (unsigned char *at = block + header.size; at < body + header.pages; ++at) {
    if (*at != FILLED) abort();
  }
  // Mapped anew, so that the pages go back and nobody may touch them.
  mmap(body - GUARD - PAGE, GUARD + PAGE + header.pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
       -1, 0);
}

void *malloc(size_t size) { return guarded_malloc_on && next ? guarded(size, 16) : libc_malloc(size); }

void *calloc(size_t count, size_t size) {
  if (!libc_calloc) return __libc_calloc(count, size);  // dlsym asks for some
  if (!guarded_malloc_on || !next) return libc_calloc(count, size);
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  void *const block = guarded(bytes, 16);
  if (block) memset(block, 0, bytes);
  return block;
}

void free(void *block) {
  const int saved = errno;
  if (is_guarded(block)) {
    release(block);
  } else {
    libc_free(block);
  }
  errno = saved;
}

void *realloc(void *block, size_t size) {
  if (!is_guarded(block)) return libc_realloc(block, size);
  void *const larger = malloc(size);
  if (!larger) return NULL;
  const size_t old = header_of(block)->size;
  memcpy(larger, block, old < size ? old : size);
  release(block);
  return larger;
}

// Tensors are aligned to 64 bytes, which would leave room behind most of them: they are aligned to what divides them.
int posix_memalign(void **block, size_t alignment, size_t size) {
  if (!guarded_malloc_on || !next) return libc_posix_memalign(block, alignment, size);
  size_t fitting = alignment;
  while (fitting > 1 && size % fitting) fitting /= 2;
  *block = guarded(size, fitting);
  return *block ? 0 : ENOMEM;
}
