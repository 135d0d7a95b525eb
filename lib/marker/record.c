/*
 * Recording in place: kymo_marker_record(), kymo_marker_record_end(), and what else begins and ends it.
 *
 *	begin	look at the directory; rings; slots and sites; the directory; the writer. What fails is taken back
 *	end	slots and sites; then the writer seals the rings, writes what is in them, and ends
 *	exit()	the writer alone: sites are on to the end, and threads that pass them find no room
 *	fork()	the child's slots get rings of nothing. Its sites stay on until something is changed there: most
 *		children call exec next
 *
 * A recording has three parts. Its rings (record_rings.h) are in a mapping whose first page is for ever: threads may
 * have been interrupted in a cold block since any time, and go on with what they have loaded. Its trace (struct
 * recording) is the writer's, until the writer has ended. Its events (record_events.h) outlive it: a marker has the
 * same id in all recordings of a process. The writer never takes the library's lock: it gets events through a list, and
 * gives and takes the words of struct record_rings.
 */
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "connect.h"
#include "marker/fields.h"
#include "marker/format.h"
#include "marker/match.h"
#include "modules.h"
#include "record_events.h"
#include "record_rings.h"
#include "record_slow.h"
#include "record_writer.h"
#include "registry.h"
#include "trace/directory.h"
#include "update.h"

#define DIRECTORY "kymo.data"

struct globs {
	char *text;
	const char **items;
	size_t n;
};

/* With the lock; `live` is also read at exit(), without. */
static struct self_recording *running;
static struct self_recording *left; /* by the parents of this process; no thread works on them here */
static struct globs wanted;
static uint64_t serial;           /* of the recording */
static bool is_finishing;         /* one has ended, and its writer is not done; set with the lock, cleared without */
static struct record_rings *live; /* of the writer that there is, or was last */
static struct self_recording *unjoined; /* the thread that takes it joins its writer */

/* ---- what is asked for ----------------------------------------------------------------------- */

static void globs_deinit(struct globs *globs)
{
	free(globs->text);
	free(globs->items);
	*globs = (struct globs){ .n = 0 };
}

/* -EINVAL: an empty one; -ENOMEM */
static int globs_init(const char *text, struct globs *ret)
{
	struct globs globs = { .text = strdup(text), .items = calloc(strlen(text) + 1, sizeof(*globs.items)) };
	char *rest = globs.text, *glob;
	int status = globs.text && globs.items ? 0 : -ENOMEM;

	while (status == 0 && (glob = strsep(&rest, ","))) {
		globs.items[globs.n++] = glob;
		if (!*glob)
			status = -EINVAL;
	}
	if (status < 0)
		globs_deinit(&globs);
	else
		*ret = globs;
	return status;
}

static bool is_meant(const struct globs *globs, const struct lib_marker *marker)
{
	for (size_t i = 0; i < globs->n; i++)
		if (kymo_marker_matches(globs->items[i], marker->module->path, NULL, marker->provider, marker->name))
			return true;
	return false;
}

/* "65536", "64K", "4M", "1G"; false where it is no size, or out of range. */
static bool parse_buffer(const char *text, uint64_t *ret)
{
	unsigned int shift = 0;
	uint64_t size;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	size = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	end += shift > 0;
	if (errno || *end || size > RECORD_BUFFER_MAX >> shift || size << shift < RECORD_BUFFER_MIN)
		return false;
	*ret = size << shift;
	return true;
}

/* -EINVAL */
static int find_buffer(uint64_t *ret)
{
	const char *text = secure_getenv("KYMO_MARKERS_BUFFER");

	*ret = RECORD_BUFFER_DEFAULT;
	return !text || !*text || parse_buffer(text, ret) ? 0 : -EINVAL;
}

static int errno_of(struct kymo_error *error)
{
	/* The one sentence of its own: something else is in the way. */
	int err = error->err ? error->err : error->code == KYMO_ERROR_NO_MEMORY ? ENOMEM : EEXIST;

	kymo_error_destroy(error);
	return -err;
}

/* ---- one marker (the lock is held) ----------------------------------------------------------- */

/* marker->record is a number: how many want it. */
static uintptr_t n_wants(const struct lib_marker *marker)
{
	return (uintptr_t)marker->record;
}

static void publish(struct record_news *news)
{
	struct record_news *last = news;

	if (!news)
		return;
	while (last->next)
		last = last->next;
	last->next = __atomic_load_n(&running->news, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&running->news, &last->next, news, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* In place, and its strings are strings. */
static bool is_recordable(const struct lib_marker *marker)
{
	struct kymo_marker_fields fields;

	return marker->n_locations && marker->locations[0].code &&
	       kymo_marker_fields(marker->types, marker->format, &fields) == 0 && !fields.why_not;
}

static int begin_marker(struct lib_marker *marker)
{
	struct record_news *news = NULL;
	uint32_t id;
	int status;

	if (!running || !is_recordable(marker))
		return -ENODEV;
	status = kymo_record_event_ids(marker, serial, &news, &id);
	if (status < 0)
		return status;
	publish(news);
	return kymo_lib_record(marker, &running->memory.shared->rings, id);
}

static void end_marker(struct lib_marker *marker)
{
	marker->record = NULL;
	kymo_lib_record_end(marker, kymo_record_idle());
}

int kymo_record_add(struct lib_marker *marker)
{
	int status = n_wants(marker) ? 0 : begin_marker(marker);

	if (status == 0)
		marker->record = (void *)(n_wants(marker) + 1);
	return status;
}

void kymo_record_remove(struct lib_marker *marker)
{
	if (!running || !n_wants(marker))
		return;
	marker->record = (void *)(n_wants(marker) - 1);
	if (!n_wants(marker))
		end_marker(marker);
}

void kymo_record_marker_comes(struct lib_marker *marker)
{
	const struct lib_module *module = marker->module;

	if (running && is_meant(&wanted, marker))
		kymo_record_add(marker);
	/* Its module is read anew: it may have been recorded before. */
	if (!n_wants(marker) && marker->n_locations &&
	    __atomic_load_n(&marker->locations[0].slots->rings, __ATOMIC_RELAXED))
		kymo_lib_record_end(marker, kymo_record_idle());
	if (marker == &module->markers[module->n_markers - 1])
		kymo_record_events_settle();
}

void kymo_record_marker_goes(struct lib_marker *marker)
{
	kymo_record_events_settle();
	if (n_wants(marker))
		end_marker(marker);
}

bool kymo_record_is_running(void)
{
	return running != NULL;
}

/* ---- begin and end (the lock is held) -------------------------------------------------------- */

static void destroy_recording(struct self_recording *recording)
{
	if (!recording)
		return;
	kymo_record_news_destroy(recording->news);
	if (recording->output.path)
		kymo_trace_deinit(&recording->output);
	kymo_error_destroy(recording->error);
	free(recording);
}

/* No marker is to be recorded any more. The modules that can't be touched now find out when they can. */
static void want_no_markers(void)
{
	kymo_lib_each_marker(marker)
	{
		if (n_wants(marker))
			end_marker(marker);
	}
	kymo_lib_drop_inline();
	globs_deinit(&wanted);
	running = NULL;
}

static void end_all_markers(void)
{
	want_no_markers();
	kymo_lib_update(false);
}

/* Turn on the markers that match. `n_ret` is how many. All or none. */
static int begin_all_markers(size_t *n_ret)
{
	int status = 0;
	size_t n = 0;

	kymo_lib_each_marker(marker)
	{
		int one = is_meant(&wanted, marker) ? kymo_record_add(marker) : -ENODEV;

		n += one == 0;
		if (one < 0 && one != -ENODEV)
			status = one;
	}
	kymo_record_events_settle();
	if (status == 0)
		status = kymo_lib_update(true);
	*n_ret = n;
	return status;
}

static bool is_any_meant(const struct globs *globs)
{
	kymo_lib_each_marker(marker)
	{
		if (is_meant(globs, marker) && is_recordable(marker))
			return true;
	}
	return false;
}

/* The directory is looked at first, and touched last. */
static int begin_recording(struct self_recording *recording, const char *directory)
{
	struct kymo_error *error = kymo_directory_check(directory);
	int status;
	size_t n;

	if (error)
		return errno_of(error);
	recording->begin = kymo_clock_sample();
	status = kymo_record_memory_create(recording->buffer_size, &recording->memory);
	if (status < 0)
		return status;
	running = recording;
	serial++;
	status = begin_all_markers(&n);
	if (status == 0) {
		error = kymo_trace_init(directory, &recording->output);
		status = error ? errno_of(error) : kymo_record_writer_start(recording);
	}
	if (status == 0) {
		__atomic_store_n(&live, recording->memory.shared, __ATOMIC_RELEASE);
		__atomic_store_n(&unjoined, recording, __ATOMIC_RELEASE);
		return 0;
	}
	end_all_markers();
	kymo_record_memory_release(&recording->memory, kymo_record_memory_seal(&recording->memory));
	return status;
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int record(const char *globs, const char *directory, uint64_t buffer_size, bool may_come)
{
	struct self_recording *recording = calloc(1, sizeof(*recording));
	struct globs asked = { .n = 0 };
	int status = recording ? globs_init(globs, &asked) : -ENOMEM;

	if (status == 0)
		status = kymo_lib_enter();
	if (status < 0) {
		globs_deinit(&asked);
		free(recording);
		return status;
	}
	recording->buffer_size = buffer_size;
	if (running || __atomic_load_n(&is_finishing, __ATOMIC_ACQUIRE))
		status = -EBUSY;
	else if (!may_come && !is_any_meant(&asked))
		status = -ENOENT;
	if (status == 0) {
		wanted = asked;
		asked = (struct globs){ .n = 0 };
		status = begin_recording(recording, directory);
		if (status < 0)
			globs_deinit(&wanted);
	}
	kymo_lib_leave(false);
	globs_deinit(&asked);
	if (status < 0)
		destroy_recording(recording);
	return status;
}

KYMO_LIB_API int kymo_marker_record(const char *globs, const char *directory)
{
	uint64_t buffer_size;
	int status = find_buffer(&buffer_size);

	if (!globs || (directory && !*directory))
		return -EINVAL;
	return status < 0 ? status : record(globs, directory ? directory : DIRECTORY, buffer_size, false);
}

/* Threads may have been in a cold block when its sites were turned off: the writer sees to them. */
static int finish_recording(struct self_recording *recording, unsigned long *lost)
{
	struct record_rings *rings = __atomic_load_n(&live, __ATOMIC_ACQUIRE);
	int status;

	kymo_record_writer_end(rings);
	if (!__atomic_exchange_n(&unjoined, NULL, __ATOMIC_ACQ_REL)) {
		kymo_record_writer_wait(rings);
		return 0; /* another thread is in exit(), and all of it is left to that */
	}
	pthread_join(recording->thread, NULL);
	if (lost)
		*lost = recording->lost;
	status = recording->error ? errno_of(recording->error) : 0;
	recording->error = NULL;
	destroy_recording(recording);
	return status;
}

KYMO_LIB_API int kymo_marker_record_end(unsigned long *lost)
{
	struct self_recording *recording;
	int status, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	status = kymo_lib_enter();
	if (status == 0) {
		recording = running;
		if (recording) {
			is_finishing = true;
			end_all_markers();
		}
		kymo_lib_leave(recording != NULL);
		status = recording ? finish_recording(recording, lost) : -ENOENT;
		if (recording)
			__atomic_store_n(&is_finishing, false, __ATOMIC_RELEASE);
	}
	pthread_setcancelstate(state, NULL);
	return status;
}

/* ---- fork and exit --------------------------------------------------------------------------- */

/* What the writer was working on may be in any state, and is left. */
void kymo_record_forked(void)
{
	struct self_recording *recording = running;

	if (live)
		kymo_record_memory_forked(live);
	kymo_record_tid = 0;
	is_finishing = false;
	live = NULL;
	unjoined = NULL;
	if (!recording)
		return;
	want_no_markers();
	recording->before = left;
	left = recording;
}

/* After the destructors of all modules that are linked to this library. No lock is taken: its holder may have been
 * interrupted by the handler that calls exit(). */
__attribute__((destructor)) static void finish_at_exit(void)
{
	struct record_rings *rings = __atomic_load_n(&live, __ATOMIC_ACQUIRE);
	struct self_recording *recording;

	/* A child that no fork handler has heard of has no writer to wait for. */
	if (!rings || rings->pid != getpid())
		return;
	__atomic_store_n(&rings->is_at_exit, 1, __ATOMIC_RELAXED);
	kymo_record_writer_end(rings);
	recording = __atomic_exchange_n(&unjoined, NULL, __ATOMIC_ACQ_REL);
	if (recording && !pthread_equal(recording->thread, pthread_self()))
		pthread_join(recording->thread, NULL);
	else
		kymo_record_writer_wait(rings);
}

/* ---- the environment ------------------------------------------------------------------------- */

static void complain(const char *what)
{
	dprintf(STDERR_FILENO, "kymo: markers are not recorded: %s\n", what);
}

/*
 * Here, and not when the first module tells that it comes: all modules of the program are mapped by now, and the
 * markers in their constructors are recorded, too. What this program runs would move the trace away that is being
 * written, if it recorded itself into the same directory: it does not inherit the request.
 */
static void record_as_environment_says(void)
{
	const char *globs = secure_getenv("KYMO_MARKERS"), *directory = secure_getenv("KYMO_MARKERS_DIR");
	kymo_cleanup_free char *what = NULL;
	uint64_t buffer_size;
	int status;

	if (!globs || !*globs)
		return;
	if (!directory || !*directory)
		directory = DIRECTORY;
	if (find_buffer(&buffer_size) < 0) {
		complain("KYMO_MARKERS_BUFFER is no size from 64K to 4G");
		return;
	}
	status = record(globs, directory, buffer_size, true);
	if (status == -EINVAL)
		complain("KYMO_MARKERS has an empty name between its commas");
	else if (status < 0 && asprintf(&what, "cannot record into %s: %s", directory, strerror(-status)) >= 0)
		complain(what);
	if (status == 0)
		unsetenv("KYMO_MARKERS");
}

__attribute__((constructor)) static void begin_at_start(void)
{
	kymo_record_find_threads();
	record_as_environment_says();
}
