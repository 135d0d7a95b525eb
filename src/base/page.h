/*
 * Pages, as the targets' processors have them.
 */
#ifndef KYMO_BASE_PAGE_H
#define KYMO_BASE_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define KYMO_PAGE_SIZE ((uint64_t)4096)

/* The page that `address` is in. */
static inline uint64_t kymo_page_down(uint64_t address)
{
	return address & ~(KYMO_PAGE_SIZE - 1);
}

/* How many of `size` bytes from `address` on are on its page. */
static inline uint64_t kymo_page_part(uint64_t address, uint64_t size)
{
	const uint64_t rest = KYMO_PAGE_SIZE - (address & (KYMO_PAGE_SIZE - 1));

	return size < rest ? size : rest;
}

/* Whether all of `size` bytes, at least one, are on the page of the first one. */
static inline bool kymo_page_has(uint64_t address, uint64_t size)
{
	return kymo_page_part(address, size) == size;
}

/* The first page boundary that is not below `address`; 0 after the last one. */
static inline uint64_t kymo_page_up(uint64_t address)
{
	return kymo_page_down(address + KYMO_PAGE_SIZE - 1);
}

#endif
