/*
 * Functions are ranges that do not overlap, sorted. A line takes what it needs of earlier ones: a program may put new
 * code where it had other code, and the map never says that code is gone. So what is kept is code that may still be
 * there, however long the program runs.
 */
#include "sym/perftable.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"
#include "sym/perfmap.h"

#define CHUNK ((size_t)256 << 10)
#define CHUNKS_MAX 4 /* of one reading */
#define FUNCTIONS_MAX 131072u
#define SEEN_MAX 64u /* bytes */

/* Parts of one function share it. */
struct name {
	uint32_t refs;
	char text[];
};

struct range {
	uint64_t start, end;
	uint64_t function; /* where that begins */
	struct name *name;
};

struct ranges {
	KYMO_VEC(struct range) all;
};

struct kymo_perf_table {
	int fd;
	off_t at;            /* what was read */
	char seen[SEEN_MAX]; /* the last bytes of that, */
	size_t n_seen;       /* and how many they are */
	struct ranges ranges;
	KYMO_VEC(struct name *) dropped; /* in the last reading */
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Where memory is out the name stays for good. */
static void drop_name(struct kymo_perf_table *table, struct name *name)
{
	if (!--name->refs)
		(void)!kymo_vec_push(&table->dropped, name);
}

static void free_dropped(struct kymo_perf_table *table)
{
	for (size_t i = 0; i < table->dropped.n; i++)
		free(table->dropped.items[i]);
	table->dropped.n = 0;
}

static void drop_all(struct kymo_perf_table *table, struct ranges *ranges)
{
	for (size_t i = 0; i < ranges->all.n; i++)
		drop_name(table, ranges->all.items[i].name);
	ranges->all.n = 0;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Append the part [start, end) of a range to `to`. */
static bool add_part(struct ranges *to, const struct range *range, uint64_t start, uint64_t end)
{
	if (start >= end)
		return true;
	if (!kymo_vec_push(&to->all, ((struct range){ start, end, range->function, range->name })))
		return false;
	range->name->refs++;
	return true;
}

/* Append what newer ranges, from `*next` on, leave of `range`. Each newer range that ends within `range`, or before it,
 * is appended at its place. */
static bool add_around(struct ranges *to, const struct range *range, const struct ranges *newer, size_t *next)
{
	uint64_t start = range->start;

	for (; *next < newer->all.n && newer->all.items[*next].start < range->end; ++*next) {
		const struct range *other = &newer->all.items[*next];

		if (!add_part(to, range, start, other->start < start ? start : other->start))
			return false;
		if (other->end > start)
			start = other->end;
		if (other->end > range->end)
			return true; /* it may cover the next one as well */
		if (!add_part(to, other, other->start, other->end))
			return false;
	}
	return add_part(to, range, start, range->end);
}

/* Both as one: where they overlap, `newer` counts. False when memory is out: nothing has changed. */
static bool overlay(struct kymo_perf_table *table, struct ranges *older, const struct ranges *newer)
{
	struct ranges both = { .all = { .n = 0 } };
	size_t next = 0;
	bool ok = true;

	for (size_t i = 0; i < older->all.n && ok; i++)
		ok = add_around(&both, &older->all.items[i], newer, &next);
	for (; next < newer->all.n && ok; next++)
		ok = add_part(&both, &newer->all.items[next], newer->all.items[next].start, newer->all.items[next].end);
	drop_all(table, ok ? older : &both);
	kymo_vec_deinit(ok ? &older->all : &both.all);
	if (ok)
		*older = both;
	return ok;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Of lines in their order: each over those before it. False when memory is out. */
static bool build(struct kymo_perf_table *table, const struct range *lines, size_t n, struct ranges *ret)
{
	struct ranges newer = { .all = { .n = 0 } };
	bool ok;

	*ret = (struct ranges){ .all = { .n = 0 } };
	if (n < 2)
		return !n || add_part(ret, lines, lines->start, lines->end);
	ok = build(table, lines, n / 2, ret) && build(table, lines + n / 2, n - n / 2, &newer) &&
	     overlay(table, ret, &newer);
	drop_all(table, &newer);
	kymo_vec_deinit(&newer.all);
	return ok;
}

/* The function of a line, without a part of it. `is_full`: it has no name, and takes that of what was there. */
static bool read_line(const char *line, size_t length, bool is_full, struct range *ret)
{
	struct kymo_perf_function found;
	size_t size;

	if (!kymo_perf_map_parse(line, length, &found))
		return false;
	if (is_full)
		*found.name = '\0';
	size = strlen(found.name) + 1;
	*ret = (struct range){ found.start, found.start + found.size, found.start, malloc(sizeof(*ret->name) + size) };
	if (!ret->name)
		return false;
	ret->name->refs = 1; /* the line's */
	memcpy(ret->name->text, found.name, size);
	return true;
}

/* The whole lines of `text`; how many bytes those are. Lines for which there is no memory are left out. */
static size_t add_lines(struct kymo_perf_table *table, const char *text, size_t size)
{
	struct ranges lines = { .all = { .n = 0 } }, fresh;
	struct range range;
	size_t done = 0;

	for (const char *end; (end = memchr(text + done, '\n', size - done)); done = (size_t)(end - text) + 1) {
		const bool is_full = table->ranges.all.n + lines.all.n >= FUNCTIONS_MAX;

		if (read_line(text + done, (size_t)(end - text) - done, is_full, &range) &&
		    !kymo_vec_push(&lines.all, range))
			free(range.name);
	}
	if (build(table, lines.all.items, lines.all.n, &fresh) && fresh.all.n)
		overlay(table, &table->ranges, &fresh);
	drop_all(table, &fresh);
	drop_all(table, &lines);
	kymo_vec_deinit(&fresh.all);
	kymo_vec_deinit(&lines.all);
	return done;
}

static bool is_as_seen(const struct kymo_perf_table *table)
{
	char now[SEEN_MAX];

	return !table->n_seen ||
	       (pread(table->fd, now, table->n_seen, table->at - (off_t)table->n_seen) == (ssize_t)table->n_seen &&
		!memcmp(now, table->seen, table->n_seen));
}

/* So many bytes of `text` have been read. */
static void note_seen(struct kymo_perf_table *table, const char *text, size_t size)
{
	table->n_seen = size < SEEN_MAX ? size : SEEN_MAX;
	memcpy(table->seen, text + size - table->n_seen, table->n_seen);
	table->at += (off_t)size;
}

bool kymo_perf_table_read(struct kymo_perf_table *table)
{
	const off_t before = table->at;
	kymo_cleanup_free char *text = NULL;
	struct stat st;
	bool is_same;

	free_dropped(table);
	if (fstat(table->fd, &st))
		return false;
	is_same = st.st_size >= table->at && is_as_seen(table);
	if (is_same && st.st_size == table->at)
		return false;
	if (!is_same) { /* it was written anew */
		drop_all(table, &table->ranges);
		table->at = 0;
		table->n_seen = 0;
	}
	text = malloc(CHUNK);
	for (int i = 0; text && i < CHUNKS_MAX; i++) {
		ssize_t n = pread(table->fd, text, CHUNK, table->at);
		size_t done;

		if (n <= 0) /* the next reading tries again */
			break;
		done = add_lines(table, text, (size_t)n);
		if (!done && (size_t)n < CHUNK)
			break; /* a line that is being written */
		note_seen(table, text, done ? done : (size_t)n);
	}
	return table->at != before;
}

/* ---- finding --------------------------------------------------------------------------------- */

const char *kymo_perf_table_at(const struct kymo_perf_table *table, uint64_t address, uint64_t *start_ret)
{
	const struct range *ranges = table->ranges.all.items;
	const size_t at = kymo_partition_point(i, table->ranges.all.n, ranges[i].start <= address);

	if (!at || address >= ranges[at - 1].end)
		return NULL;
	*start_ret = ranges[at - 1].function;
	return *ranges[at - 1].name->text ? ranges[at - 1].name->text : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct kymo_perf_table *kymo_perf_table_create(int fd)
{
	struct kymo_perf_table *table = calloc(1, sizeof(*table));

	if (table)
		table->fd = fd;
	else
		close(fd);
	return table;
}

void kymo_perf_table_destroy(struct kymo_perf_table *table)
{
	if (!table)
		return;
	drop_all(table, &table->ranges);
	free_dropped(table);
	kymo_vec_deinit(&table->ranges.all);
	kymo_vec_deinit(&table->dropped);
	close(table->fd);
	free(table);
}
