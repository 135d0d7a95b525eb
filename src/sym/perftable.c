/*
 * Functions are sorted by their start, and those of one start by their lines. Functions may overlap, as the map never
 * says that code is gone. So a search goes back from the last one that begins at or before the address. It stops where
 * no function is long enough to have the address, and after LOOKS_MAX in any case.
 */
#include "sym/perftable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"
#include "sym/perfmap.h"

#define BYTES_MAX ((off_t)64 << 20)
#define CHUNK ((size_t)256 << 10)
#define FUNCTIONS_MAX 262144u
#define LOOKS_MAX 256u

struct function {
	uint64_t start, size;
	uint32_t line; /* the number of its line */
	char *name;
};

struct kymo_perf_table {
	int fd;
	off_t at;         /* what was read */
	uint32_t n_lines; /* of functions */
	uint64_t longest; /* of all sizes */
	KYMO_VEC(struct function) functions;
};

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
	for (size_t i = 0; i < table->functions.n; i++)
		free(table->functions.items[i].name);
	kymo_vec_deinit(&table->functions);
	close(table->fd);
	free(table);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
				    : (x->line > y->line) - (x->line < y->line);
}

static void add_line(struct kymo_perf_table *table, const char *line, size_t length)
{
	struct kymo_perf_function found;
	struct function function;

	if (table->functions.n == FUNCTIONS_MAX || !kymo_perf_map_parse(line, length, &found))
		return;
	function = (struct function){ found.start, found.size, table->n_lines++, strdup(found.name) };
	if (!function.name || !kymo_vec_push(&table->functions, function)) {
		free(function.name);
		return;
	}
	if (function.size > table->longest)
		table->longest = function.size;
}

/* The whole lines of `text`; how many bytes those are. */
static size_t add_lines(struct kymo_perf_table *table, const char *text, size_t size)
{
	size_t done = 0;

	for (const char *end; (end = memchr(text + done, '\n', size - done)); done = (size_t)(end - text) + 1)
		add_line(table, text + done, (size_t)(end - text) - done);
	return done;
}

bool kymo_perf_table_read(struct kymo_perf_table *table)
{
	const size_t before = table->functions.n;
	kymo_cleanup_free char *text = NULL;
	struct stat st;

	if (fstat(table->fd, &st) || st.st_size <= table->at)
		return false;
	text = malloc(CHUNK);
	while (text && table->at < BYTES_MAX) {
		ssize_t n = pread(table->fd, text, CHUNK, table->at);
		size_t done;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done = add_lines(table, text, (size_t)n);
		if (!done && (size_t)n < CHUNK)
			break; /* a line that is being written */
		table->at += (off_t)(done ? done : (size_t)n);
	}
	if (table->functions.n == before)
		return false;
	qsort(table->functions.items, table->functions.n, sizeof(*table->functions.items), by_start);
	return true;
}

/* ---- finding --------------------------------------------------------------------------------- */

const char *kymo_perf_table_at(const struct kymo_perf_table *table, uint64_t address, uint64_t *start_ret)
{
	const struct function *functions = table->functions.items, *found = NULL;
	size_t at = kymo_partition_point(i, table->functions.n, functions[i].start <= address);

	for (size_t i = 0; i < LOOKS_MAX && at && address - functions[at - 1].start < table->longest; i++) {
		const struct function *function = &functions[--at];

		if (address - function->start < function->size && (!found || function->line > found->line))
			found = function;
	}
	if (found)
		*start_ret = found->start;
	return found ? found->name : NULL;
}
