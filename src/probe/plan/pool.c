#include "probe/plan/pool.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "base/search.h"

#define PAGES_TRIED 64 /* in use, for one trampoline */

struct pool_page {
	uint64_t address;
	uint32_t used;                       /* bytes */
	uint64_t taken[KYMO_PAGE_SIZE / 64]; /* a bit each */
};

void probe_pool_deinit(struct probe_pool *pool)
{
	for (size_t i = 0; i < pool->pages.n; i++)
		free(pool->pages.items[i]);
	kymo_vec_deinit(&pool->pages);
	kymo_vec_deinit(&pool->holes);
}

bool probe_pool_add_hole(struct probe_pool *pool, uint64_t low, uint64_t high)
{
	struct pool_hole hole = { kymo_page_up(low), kymo_page_down(high) };

	return hole.low >= hole.high || kymo_vec_push(&pool->holes, hole);
}

/* The first hole that ends after `address`. */
static size_t hole_at(const struct probe_pool *pool, uint64_t address)
{
	return kymo_partition_point(i, pool->holes.n, pool->holes.items[i].high <= address);
}

/* The first page that ends after `address`. */
static size_t page_at(const struct probe_pool *pool, uint64_t address)
{
	return kymo_partition_point(i, pool->pages.n, pool->pages.items[i]->address + KYMO_PAGE_SIZE <= address);
}

static struct pool_page *page_of(const struct probe_pool *pool, uint64_t address)
{
	size_t at = page_at(pool, address);

	return at < pool->pages.n && pool->pages.items[at]->address <= address ? pool->pages.items[at] : NULL;
}

static bool is_taken(const struct probe_pool *pool, uint64_t address)
{
	const struct pool_page *page = page_of(pool, address);
	uint64_t at = address & (KYMO_PAGE_SIZE - 1);

	return page && page->taken[at / 64] >> at % 64 & 1;
}

static bool add_page(struct probe_pool *pool, uint64_t address)
{
	size_t at = page_at(pool, address);
	struct pool_page *page;

	if (at < pool->pages.n && pool->pages.items[at]->address <= address)
		return true;
	if (!kymo_vec_reserve(&pool->pages, pool->pages.n + 1))
		return false;
	page = calloc(1, sizeof(*page));
	if (!page)
		return false;
	page->address = kymo_page_down(address);
	memmove(&pool->pages.items[at + 1], &pool->pages.items[at], (pool->pages.n - at) * sizeof(page));
	pool->pages.items[at] = page;
	pool->pages.n++;
	return true;
}

static bool take_bytes(struct probe_pool *pool, uint64_t address, size_t size)
{
	if (!add_page(pool, address) || !add_page(pool, address + size - 1))
		return false;
	for (size_t i = 0; i < size; i++) {
		struct pool_page *page = page_of(pool, address + i);
		uint64_t at = (address + i) & (KYMO_PAGE_SIZE - 1);

		page->taken[at / 64] |= (uint64_t)1 << at % 64;
		page->used++;
	}
	return true;
}

void probe_pool_release(struct probe_pool *pool, uint64_t address, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		struct pool_page *page = page_of(pool, address + i);
		uint64_t at = (address + i) & (KYMO_PAGE_SIZE - 1);

		if (!page || !(page->taken[at / 64] >> at % 64 & 1))
			continue;
		page->taken[at / 64] &= ~((uint64_t)1 << at % 64);
		page->used--;
	}
}

/* The first of [low, high] where `size` bytes are free, or 0; the whole range, with the bytes after it, lies in one
 * hole. One that lies on two pages, which no other recording can share, is the last choice. */
static uint64_t first_free(const struct probe_pool *pool, uint64_t low, uint64_t high, size_t size)
{
	uint64_t n_free = 0, crossing = 0;

	for (uint64_t at = low; at < high + size; at++) {
		n_free = is_taken(pool, at) ? 0 : n_free + 1;
		if (n_free < size)
			continue;
		if (kymo_page_has(at - size + 1, size))
			return at - size + 1;
		if (!crossing)
			crossing = at - size + 1;
	}
	return crossing;
}

/* The same on one page: [low, high] and the `size` bytes after lie on it. */
static uint64_t first_on_page(const struct pool_page *page, uint64_t low, uint64_t high, size_t size)
{
	uint64_t n_free = 0, from = low - page->address, to = high - page->address + size;

	for (uint64_t at = from; at < to; at++) {
		n_free = page->taken[at / 64] >> at % 64 & 1 ? 0 : n_free + 1;
		if (n_free >= size)
			return page->address + at + 1 - size;
	}
	return 0;
}

/* An address on a page that is in use, between low and high, which lie in one hole with `size` bytes behind. */
static uint64_t on_used_page(const struct probe_pool *pool, uint64_t low, uint64_t high, size_t size)
{
	size_t tried = 0;

	for (size_t i = page_at(pool, low); i < pool->pages.n && tried < PAGES_TRIED; i++, tried++) {
		const struct pool_page *page = pool->pages.items[i];
		uint64_t from = page->address > low ? page->address : low, to = page->address + KYMO_PAGE_SIZE - size,
			 found;

		if (page->address > high)
			break;
		if (to > high)
			to = high;
		if (page->used + size > KYMO_PAGE_SIZE || from > to)
			continue;
		found = first_on_page(page, from, to, size);
		if (found)
			return found;
	}
	return 0;
}

static uint64_t in_hole(const struct probe_pool *pool, const struct pool_hole *hole, uint64_t low, uint64_t high,
			size_t size)
{
	uint64_t found;

	if (low < hole->low)
		low = hole->low;
	if (high > hole->high - size)
		high = hole->high - size;
	if (low > high)
		return 0;
	found = on_used_page(pool, low, high, size);
	if (found)
		return found;
	/* A page of its own, if the range has a whole unused one; so that later ones find it empty. */
	if (high - low < 2 * KYMO_PAGE_SIZE)
		return first_free(pool, low, high, size);
	low = kymo_page_up(low);
	for (size_t i = page_at(pool, low); i < pool->pages.n && pool->pages.items[i]->address == low; i++)
		low += KYMO_PAGE_SIZE;
	return low <= high ? low : 0;
}

static uint64_t in_range(struct probe_pool *pool, uint64_t low, uint64_t high, size_t size)
{
	uint64_t found = 0;

	for (size_t i = hole_at(pool, low); i < pool->holes.n && !found && pool->holes.items[i].low <= high; i++)
		found = in_hole(pool, &pool->holes.items[i], low, high, size);
	return found;
}

uint64_t probe_pool_reserve(struct probe_pool *pool, uint64_t low, uint64_t high, size_t size)
{
	uint64_t found;

	if (low <= high) {
		found = in_range(pool, low, high, size);
	} else {
		found = in_range(pool, low, UINT64_MAX - size, size);
		if (!found)
			found = in_range(pool, 0, high, size);
	}
	return found && take_bytes(pool, found, size) ? found : 0;
}

static void forget_empty(struct probe_pool *pool)
{
	size_t kept = 0;

	for (size_t i = 0; i < pool->pages.n; i++) {
		if (pool->pages.items[i]->used)
			pool->pages.items[kept++] = pool->pages.items[i];
		else
			free(pool->pages.items[i]);
	}
	pool->pages.n = kept;
}

size_t probe_pool_stretches(struct probe_pool *pool, uint64_t gap, struct pool_hole *ret)
{
	struct pool_hole stretch = { 0, 0 };
	size_t n = 0;

	forget_empty(pool);
	for (size_t i = 0; i < pool->pages.n; i++) {
		uint64_t address = pool->pages.items[i]->address;
		const struct pool_hole *hole = &pool->holes.items[hole_at(pool, address)];

		if (n && address - stretch.high <= gap * KYMO_PAGE_SIZE && stretch.low >= hole->low) {
			stretch.high = address + KYMO_PAGE_SIZE;
		} else {
			stretch = (struct pool_hole){ address, address + KYMO_PAGE_SIZE };
			n++;
		}
		if (ret)
			ret[n - 1] = stretch;
	}
	return n;
}
