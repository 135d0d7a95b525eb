/*
 * All streams of a trace directory, merged by a binary heap of the streams' next records.
 */
#include "ctf/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "ctf/input.h"
#include "ctf/parse.h"
#include "ctf/trace.h"

#define MAX_METADATA (512u << 20)
#define MAX_STREAMS 4096u

/* Windows of all streams together stay within tens of megabytes, unless there are hundreds of streams, and one is
 * larger than a record. */
#define MIN_WINDOW (128u << 10)
#define MAX_WINDOW (512u << 10)
#define WINDOWS_TOTAL (32u << 20)

/* A stream and its next record. */
struct ctf_input_stream {
	struct input input;
	struct kymo_ctf_record next;
};

struct kymo_ctf_reader {
	struct kymo_ctf_trace trace;
	struct layout *layouts; /* by id */
	uint32_t n_layouts;
	KYMO_VEC(struct ctf_input_stream) sources;
	struct ctf_input_stream **heap; /* room for all sources */
	size_t n_heap;
	bool merging;              /* the heap is filled, its top was returned last */
	size_t current;            /* of the unordered way */
	struct findings *findings; /* apart, as sorting losses changes what a const reader points to */
};

void kymo_ctf_close(struct kymo_ctf_reader *reader)
{
	if (!reader)
		return;
	for (size_t i = 0; i < reader->sources.n; i++)
		kymo_input_deinit(&reader->sources.items[i].input);
	kymo_vec_deinit(&reader->sources);
	if (reader->findings) {
		for (size_t i = 0; i < reader->findings->warnings.n; i++)
			free(reader->findings->warnings.items[i]);
		kymo_vec_deinit(&reader->findings->warnings);
		kymo_vec_deinit(&reader->findings->losses);
		kymo_error_destroy(reader->findings->error);
		free(reader->findings);
	}
	kymo_ctf_trace_deinit(&reader->trace);
	free(reader->layouts);
	free(reader->heap);
	free(reader);
}

static void close_cleanup(struct kymo_ctf_reader **reader)
{
	kymo_ctf_close(*reader);
}

static struct kymo_error *make_layouts(struct kymo_ctf_reader *reader)
{
	for (size_t i = 0; i < reader->trace.n_events; i++)
		if (reader->trace.events[i].id >= reader->n_layouts)
			reader->n_layouts = reader->trace.events[i].id + 1;
	reader->layouts = calloc(reader->n_layouts + 1, sizeof(*reader->layouts));
	if (!reader->layouts)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < reader->trace.n_events; i++) {
		const struct kymo_ctf_event *event = &reader->trace.events[i];
		struct layout *layout = &reader->layouts[event->id];

		layout->event = event;
		layout->size = event->size;
		layout->n_fields = (uint8_t)kymo_ctf_n_values(event);
		layout->has_faults = event->has_faults;
		layout->varies = !event->is_fixed;
		for (uint32_t field = 0; field < layout->n_fields; field++)
			layout->types[field] = (uint8_t)event->fields[field].type;
	}
	return NULL;
}

static struct kymo_error *read_metadata(int dirfd, const char *dir, struct kymo_ctf_reader *reader)
{
	kymo_cleanup_free char *text = NULL;
	size_t size;
	int err = kymo_read_file(dirfd, "metadata", MAX_METADATA, &text, &size);

	if (err == -ENOENT)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s is not a trace: there is no file 'metadata' in it",
					 dir);
	if (err)
		return kymo_error_errno(err, "cannot read %s/metadata", dir);
	return kymo_error_prefix(kymo_ctf_parse_metadata(text, size, &reader->trace), "%s", dir);
}

/* A name from the directory with control characters replaced: it stands in sentences. */
static char *safe_name(const char *name)
{
	char *safe = strdup(name);

	for (char *c = safe; c && *c; c++)
		if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
			*c = '?';
	return safe;
}

static struct kymo_error *add_stream(struct kymo_ctf_reader *reader, int dirfd, const char *name)
{
	/* Without O_NONBLOCK a FIFO in the directory would be waited for. */
	kymo_cleanup_close int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	kymo_cleanup_free char *safe = safe_name(name);
	struct stat status;
	struct ctf_input_stream *source;

	if (!safe)
		return &kymo_error_no_memory;
	if (fd < 0 && (errno == ELOOP || errno == ENXIO || errno == ENOENT))
		return NULL;
	if (fd < 0 || fstat(fd, &status))
		return kymo_error_errno(errno, "cannot open %s", safe);
	if (!S_ISREG(status.st_mode))
		return NULL;
	if (reader->sources.n == MAX_STREAMS)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "there are more than %u streams", MAX_STREAMS);
	if (!kymo_vec_push(&reader->sources, (struct ctf_input_stream){ 0 }))
		return &kymo_error_no_memory;
	source = &reader->sources.items[reader->sources.n - 1];
	kymo_input_init(&source->input, kymo_take(safe), kymo_take_fd(fd), (uint64_t)status.st_size, 0);
	source->input.is_packed = reader->trace.is_packed;
	return kymo_input_check(&source->input, reader->trace.uuid);
}

static int is_stream(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strcmp(entry->d_name, "metadata") != 0;
}

static struct kymo_error *add_streams(struct kymo_ctf_reader *reader, int dirfd)
{
	struct dirent **entries;
	struct kymo_error *error = NULL;
	int n = scandirat(dirfd, ".", &entries, is_stream, alphasort);
	size_t window;

	if (n < 0)
		return kymo_error_errno(errno, "cannot list the streams");
	for (int i = 0; i < n; i++) {
		if (!error)
			error = add_stream(reader, dirfd, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	window = WINDOWS_TOTAL / (reader->sources.n + 1);
	window = window < MIN_WINDOW ? MIN_WINDOW : window > MAX_WINDOW ? MAX_WINDOW : window;
	for (size_t i = 0; i < reader->sources.n; i++)
		reader->sources.items[i].input.window_size = window;
	return error;
}

struct kymo_error *kymo_ctf_open(const char *dir, struct kymo_ctf_reader **ret)
{
	kymo_cleanup_close int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kymo_cleanup(close_cleanup) struct kymo_ctf_reader *reader = NULL;
	struct kymo_error *error;

	if (dirfd < 0 && errno == ENOTDIR)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is not a trace: it is not a directory", dir);
	if (dirfd < 0)
		return kymo_error_errno(errno, "cannot open the trace %s", dir);
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return &kymo_error_no_memory;
	reader->findings = calloc(1, sizeof(*reader->findings));
	if (!reader->findings)
		return &kymo_error_no_memory;
	reader->findings->damaged_since = UINT64_MAX;
	error = read_metadata(dirfd, dir, reader);
	if (!error)
		error = make_layouts(reader);
	if (!error)
		error = kymo_error_prefix(add_streams(reader, dirfd), "%s", dir);
	if (error)
		return error;
	reader->heap = calloc(reader->sources.n + 1, sizeof(struct ctf_input_stream *));
	if (!reader->heap)
		return &kymo_error_no_memory;
	*ret = kymo_take(reader);
	return NULL;
}

const struct kymo_ctf_trace *kymo_ctf_reader_trace(const struct kymo_ctf_reader *reader)
{
	return &reader->trace;
}

/* The order of two streams' next records; streams of equal time keep their order, so that a report is the same each
 * time. */
static bool is_before(const struct ctf_input_stream *a, const struct ctf_input_stream *b)
{
	return a->next.tsc != b->next.tsc ? a->next.tsc < b->next.tsc : a < b;
}

static void sift_down(struct kymo_ctf_reader *reader, size_t at)
{
	struct ctf_input_stream **heap = reader->heap, *moved = heap[at];

	for (;;) {
		size_t child = at * 2 + 1;

		if (child >= reader->n_heap)
			break;
		if (child + 1 < reader->n_heap && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static bool load_packet(struct kymo_ctf_reader *reader, struct ctf_input_stream *source)
{
	return kymo_input_next(&source->input, reader->trace.uuid, reader->layouts, reader->n_layouts, reader->findings,
			       &source->next);
}

static void start_merge(struct kymo_ctf_reader *reader)
{
	reader->merging = true;
	for (size_t i = 0; i < reader->sources.n; i++)
		if (load_packet(reader, &reader->sources.items[i]))
			reader->heap[reader->n_heap++] = &reader->sources.items[i];
	for (size_t i = reader->n_heap / 2; i-- > 0;)
		sift_down(reader, i);
}

/* Replace the heap's top, which has been given away, by its stream's next record. */
static void replace_top(struct kymo_ctf_reader *reader)
{
	if (!reader->n_heap)
		return;
	if (!load_packet(reader, reader->heap[0]))
		reader->heap[0] = reader->heap[--reader->n_heap];
	if (reader->n_heap)
		sift_down(reader, 0);
}

/* False, with the error that ended reading, if any. */
static bool end_reading(struct kymo_ctf_reader *reader, struct kymo_error **error_ret)
{
	*error_ret = reader->findings->error;
	reader->findings->error = NULL;
	return false;
}

bool kymo_ctf_next(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret, struct kymo_error **error_ret)
{
	if (reader->merging)
		replace_top(reader);
	else
		start_merge(reader);
	if (!reader->n_heap || reader->findings->error)
		return end_reading(reader, error_ret);
	*error_ret = NULL;
	*ret = reader->heap[0]->next;
	return true;
}

bool kymo_ctf_next_unordered(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret, struct kymo_error **error_ret)
{
	for (; reader->current < reader->sources.n; reader->current++) {
		struct input *input = &reader->sources.items[reader->current].input;

		if (kymo_input_next(input, reader->trace.uuid, reader->layouts, reader->n_layouts, reader->findings,
				    ret)) {
			*error_ret = NULL;
			return true;
		}
		if (reader->findings->error)
			break;
	}
	return end_reading(reader, error_ret);
}

static int compare_losses(const void *a, const void *b)
{
	const struct kymo_ctf_loss *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

/* Readers in the order of time ask after each record, and each new loss belongs near the end. */
static void sort_losses(struct findings *findings)
{
	struct kymo_ctf_loss *items = findings->losses.items;
	size_t n = findings->losses.n;

	if (n - findings->n_sorted > 64) {
		qsort(items, n, sizeof(*items), compare_losses);
		findings->n_sorted = n;
	}
	for (; findings->n_sorted < n; findings->n_sorted++) {
		struct kymo_ctf_loss loss = items[findings->n_sorted];
		size_t at = findings->n_sorted;

		for (; at && compare_losses(&items[at - 1], &loss) > 0; at--)
			items[at] = items[at - 1];
		items[at] = loss;
	}
}

uint64_t kymo_ctf_reader_whole_since(const struct kymo_ctf_reader *reader)
{
	return reader->findings->whole_since;
}

const struct kymo_ctf_loss *kymo_ctf_reader_losses(const struct kymo_ctf_reader *reader, size_t *n_ret)
{
	struct findings *findings = reader->findings;

	sort_losses(findings);
	*n_ret = findings->losses.n;
	return findings->losses.items;
}

uint64_t kymo_ctf_reader_damaged_since(const struct kymo_ctf_reader *reader)
{
	return reader->findings->damaged_since;
}

const char *const *kymo_ctf_reader_warnings(const struct kymo_ctf_reader *reader, size_t *n_ret)
{
	*n_ret = reader->findings->warnings.n;
	return (const char *const *)reader->findings->warnings.items;
}
