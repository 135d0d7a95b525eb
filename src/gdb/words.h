/* Reading a packet, which comes from anywhere. Each call takes what it names from the front of the words, or takes
 * nothing and returns false. No byte at or after `end` is read. */
#ifndef KYMO_GDB_WORDS_H
#define KYMO_GDB_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gdb_words {
	const char *at, *end;
};

static inline size_t gdb_words_left(const struct gdb_words *words)
{
	return (size_t)(words->end - words->at);
}

bool gdb_words_are_over(const struct gdb_words *words);
bool gdb_take_char(struct gdb_words *words, char c);
bool gdb_take_text(struct gdb_words *words, const char *text);

/* A number of 1 to 16 digits, which fits. */
bool gdb_take_number(struct gdb_words *words, uint64_t *ret);

/* A number that fits an int, not negative. */
bool gdb_take_int(struct gdb_words *words, int *ret);

/* Exactly `n` bytes, two digits each. */
bool gdb_take_hex(struct gdb_words *words, void *ret, size_t n);

/* As many bytes as there are pairs of digits, at most `max` - 1; a NUL is put after them. False: there are more, or a
 * NUL among them. */
bool gdb_take_hex_string(struct gdb_words *words, char *ret, size_t max);

/* Up to `c`, which is taken too, or to the end. */
struct gdb_words gdb_take_until(struct gdb_words *words, char c);

/* The id of a thread. -1 is all, 0 any. Without "p": of no process in particular (pid 0). */
struct gdb_id {
	pid_t pid, tid;
};
bool gdb_take_id(struct gdb_words *words, struct gdb_id *ret);

#endif
