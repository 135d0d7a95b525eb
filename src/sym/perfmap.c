/* Perf maps: tools/perf/Documentation/jit-interface.txt in Linux. The program writes them, so they may hold anything.
 */
#include "sym/perfmap.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/utf8.h"

#define CHUNK ((size_t)256 << 10)
#define MAP_MAX ((off_t)1 << 30)

/* A number with the blank after it. */
static bool take_hex_number(const char **at, const char *end, uint64_t *ret)
{
	const char *from = *at;
	uint64_t value = 0;

	if (end - from > 2 && from[0] == '0' && (from[1] == 'x' || from[1] == 'X'))
		from += 2;
	*at = from;
	for (; *at < end && kymo_hex_digit(**at) >= 0; ++*at) {
		if (value >> 60)
			return false;
		value = value << 4 | (uint64_t)kymo_hex_digit(**at);
	}
	*ret = value;
	return *at > from && *at < end && *(*at)++ == ' ';
}

static void copy_name(const char *at, const char *end, char name[KYMO_PERF_NAME_MAX])
{
	size_t used = 0;

	while (at < end) {
		size_t n;

		kymo_utf8_decode(at, (size_t)(end - at), &n);
		if (used + n >= KYMO_PERF_NAME_MAX)
			break;
		if (n == 1)
			name[used] = *at >= ' ' && *at < 0x7f ? *at : '?'; /* bytes of no character are negative */
		else
			memcpy(name + used, at, n);
		used += n;
		at += n;
	}
	name[used] = '\0';
}

bool kymo_perf_map_parse(const char *line, size_t length, struct kymo_perf_function *ret)
{
	const char *at = line, *end = line + length;
	struct kymo_perf_function found;

	if (!take_hex_number(&at, end, &found.start) || !take_hex_number(&at, end, &found.size) || at == end ||
	    !found.size || found.start + found.size < found.start)
		return false;
	copy_name(at, end, found.name);
	*ret = found;
	return true;
}

/* The whole lines of `text`; returns how many bytes those are. */
static size_t search_text(const char *text, size_t size, uint64_t address, struct kymo_perf_function *ret, bool *found)
{
	size_t done = 0;

	for (const char *end; (end = memchr(text + done, '\n', size - done)); done = (size_t)(end - text) + 1) {
		struct kymo_perf_function function;

		if (!kymo_perf_map_parse(text + done, (size_t)(end - text) - done, &function) ||
		    address - function.start >= function.size)
			continue;
		*ret = function;
		*found = true;
	}
	return done;
}

/* A line that the program is writing just now has no end yet, and is no line. */
int kymo_perf_map_find(int fd, uint64_t address, struct kymo_perf_function *ret)
{
	kymo_cleanup_free char *text = malloc(CHUNK);
	size_t kept = 0;
	bool found = false;

	if (!text)
		return -ENOMEM;
	for (off_t at = 0; at < MAP_MAX;) {
		ssize_t n = pread(fd, text + kept, CHUNK - kept, at);
		size_t done;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : found ? 0 : -ENOENT;
		at += n;
		kept += (size_t)n;
		done = search_text(text, kept, address, ret, &found);
		if (!done && kept == CHUNK)
			done = kept; /* the rest of such a line may be taken for another: the program could have written
					that as well */
		memmove(text, text + done, kept - done);
		kept -= done;
	}
	return -EFBIG;
}
