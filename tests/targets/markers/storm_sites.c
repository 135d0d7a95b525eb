/*
 * 1,000 sites of the marker `storm`. In the program itself, and in objects that are copies of each other.
 */
#include <kymo/marker.h>

#include "storm.h"

/* Sums go through general and vector registers; the compiler keeps them there across the sites. */
#define SITE(i) \
	MARK(storm, "site=%d count=%lu half=%f word=%s mixed=%lu", (i), count, (double)count / 2, words[count % 4], \
	     mix(count + (i))); \
	sum += mix((i)); \
	real += (double)(i); \
	other ^= sum;
#define TEN(i) \
	SITE(i) \
	SITE(i + 1) SITE(i + 2) SITE(i + 3) SITE(i + 4) SITE(i + 5) SITE(i + 6) SITE(i + 7) SITE(i + 8) SITE(i + 9)
#define HUNDRED(i) \
	TEN(i) \
	TEN(i + 10) TEN(i + 20) TEN(i + 30) TEN(i + 40) TEN(i + 50) TEN(i + 60) TEN(i + 70) TEN(i + 80) TEN(i + 90)

#define PART(name, first) \
	__attribute__((noinline)) static struct sums name(unsigned long count, struct sums sums) \
	{ \
		uint64_t sum = sums.sum, other = sums.other; \
		double real = sums.real; \
		HUNDRED(first) \
		return (struct sums){ sum, other, real }; \
	}

PART(part0, 0)
PART(part1, 100)
PART(part2, 200)
PART(part3, 300)
PART(part4, 400)
PART(part5, 500)
PART(part6, 600)
PART(part7, 700)
PART(part8, 800)
PART(part9, 900)

__attribute__((visibility("default"))) storm_part *const storm_parts[N_PARTS] = {
	part0, part1, part2, part3, part4, part5, part6, part7, part8, part9,
};
