#include "base/large.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/page.h"

#define LARGE_PAGE ((size_t)2 << 20)
#define LEAST (LARGE_PAGE / 2) /* so much of a large page is worth it */
#define LEAST_SPARSE ((size_t)64 << 10)
#define HEAP_STEP (4 * LARGE_PAGE)
#define HEAP_HEAD KYMO_PAGE_SIZE /* in small pages: it is written to before large pages are asked for */
#define HEAP_KEPT (8 * LARGE_PAGE)

/* A last part that is smaller than that is in small pages. */
static size_t mapped_size(size_t size)
{
	return size % LARGE_PAGE < LEAST ? size : (size + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
}

void *kymo_large_alloc(size_t size)
{
	const size_t own = mapped_size(size), all = own + LARGE_PAGE;
	size_t before;
	uint8_t *at;

	if (size < LEAST)
		return calloc(1, size ? size : 1);
	if (own < size || all < own)
		return NULL;
	at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) { /* there may be room for it in small pages */
		at = mmap(NULL, own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return at == MAP_FAILED ? NULL : at;
	}
	before = -(uintptr_t)at & (LARGE_PAGE - 1);
	if (before)
		munmap(at, before);
	at += before;
	/* `own` may end within a small page, which is mapped. */
	before += kymo_page_up(own);
	if (before < all)
		munmap(at + kymo_page_up(own), all - before);
	madvise(at, own, MADV_HUGEPAGE);
	return at;
}

void kymo_large_free(void *memory, size_t size)
{
	if (size < LEAST)
		free(memory);
	else if (memory)
		munmap(memory, mapped_size(size));
}

void *kymo_sparse_alloc(size_t size)
{
	void *at;

	if (size < LEAST_SPARSE)
		return calloc(1, size ? size : 1);
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

void *kymo_sparse_alloc_to_end(size_t size)
{
	const size_t own = kymo_page_up(size), all = own + LARGE_PAGE;
	size_t after;
	uint8_t *at;

	if (size < LARGE_PAGE || own < size || all < own)
		return kymo_sparse_alloc(size);
	at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return kymo_sparse_alloc(size);
	after = (uintptr_t)(at + all) & (LARGE_PAGE - 1);
	if (after)
		munmap(at + all - after, after);
	munmap(at, LARGE_PAGE - after);
	at += LARGE_PAGE - after;
	madvise(at + own - LARGE_PAGE, LARGE_PAGE, MADV_HUGEPAGE);
	return at;
}

void kymo_sparse_free(void *memory, size_t size)
{
	if (size < LEAST_SPARSE)
		free(memory);
	else if (memory)
		munmap(memory, size);
}

/* The heap takes some MB more address space by that, so none is taken where that is limited. */
static bool is_limited(int resource)
{
	struct rlimit limit;

	return getrlimit(resource, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

void kymo_large_heap(void)
{
	uintptr_t begin = (uintptr_t)sbrk(0) + HEAP_HEAD, end;
	void *volatile first;

	if (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA))
		return;
	begin = (begin + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
	if (sbrk((intptr_t)(begin - HEAP_HEAD - (uintptr_t)sbrk(0))) == (void *)-1)
		return;
	mallopt(M_TOP_PAD, HEAP_STEP);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	mallopt(M_MMAP_THRESHOLD, LARGE_PAGE);
	first = malloc(1); /* now the step is taken, and its first page is in use */
	free(first);
	end = (uintptr_t)sbrk(0);
	if (end > begin)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}
