/*
 * Hashes of 64 bits for tables in memory, piece by piece: each takes the hash of the pieces before, KYMO_HASH_FIRST at
 * first. The values may change from one build to the next: write them to no file.
 */
#ifndef KYMO_BASE_HASH_H
#define KYMO_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KYMO_HASH_FIRST UINT64_C(0xcbf29ce484222325)

/* Of bytes: FNV-1a. */
static inline uint64_t kymo_hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Of the text without its NUL. */
static inline uint64_t kymo_hash_text(uint64_t hash, const char *text)
{
	return kymo_hash_bytes(hash, text, strlen(text));
}

/* Of a number, whose high bits reach the low ones of the hash. */
static inline uint64_t kymo_hash_number(uint64_t hash, uint64_t number)
{
	hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* Of two numbers, and nothing before. */
static inline uint64_t kymo_hash_pair(uint32_t a, uint32_t b)
{
	return kymo_hash_number(0, ((uint64_t)a << 32 | b) + 1);
}

#endif
