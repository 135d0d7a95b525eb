/*
 * Pages, as the targets' processors have them.
 */
#ifndef KYMO_BASE_PAGE_H
#define KYMO_BASE_PAGE_H

#include <stdint.h>

#define KYMO_PAGE_SIZE ((uint64_t)4096)

/* The page that `address` is in. */
static inline uint64_t kymo_page_down(uint64_t address)
{
	return address & ~(KYMO_PAGE_SIZE - 1);
}

/* The first page boundary that is not below `address`; 0 behind the last one. */
static inline uint64_t kymo_page_up(uint64_t address)
{
	return kymo_page_down(address + KYMO_PAGE_SIZE - 1);
}

#endif
