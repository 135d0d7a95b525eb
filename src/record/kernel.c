#include "record/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "kernel/kernel.h"
#include "probe/code/events.h"
#include "probe/offline/offline.h"
#include "probe/offline/offline_refusals.h"
#include "procfs/info.h"
#include "record/kernel_args.h"
#include "trace/kernel_stream.h"
#include "trace/kernel_threads.h"
#include "trace/ktime.h"

#define CHECK_BUFFER (UINT64_C(64) << 10)
#define MANY_PLACES 500
#define OVERWRITE_RING \
	(UINT64_C(4) << 20) /* the kernel's ring buffers do not overwrite: room for 75 ms of the fastest probe, in \
			       which the recorder comes */

struct recording_kernel {
	struct recording_kernel_options options;
	struct kymo_offline *offline;
	struct kymo_kernel *kernel;
	struct kymo_kernel_threads *threads;
	struct kymo_kernel_stream **streams; /* per ring of the kernel's */
	size_t n_streams;
	size_t n_attached; /* of the offline sites */
	size_t n_sites;
	struct kymo_ktime ktime;
	bool carries_pids;
	/* of the drain that goes on */
	struct kymo_trace *output;
	size_t n_records;
};

/* ---- begin and end --------------------------------------------------------------------------- */

static struct kymo_error *make_streams(struct recording_kernel *source)
{
	size_t n = kymo_kernel_n_rings(source->kernel);

	source->streams = calloc(n, sizeof(*source->streams));
	if (!source->streams)
		return &kymo_error_no_memory;
	source->n_streams = n;
	for (size_t i = 0; i < n; i++) {
		struct kymo_error *error =
			kymo_kernel_stream_create("kernel", i, kymo_kernel_cpu(source->kernel, i),
						  source->options.overwrite ? source->options.buffer_size : 0,
						  source->options.pool, &source->streams[i]);
		if (error)
			return error;
	}
	return NULL;
}

static void add_sample(struct recording_kernel *source)
{
	struct kymo_clock_sample sample = kymo_clock_sample();

	kymo_ktime_add(&source->ktime, &sample);
}

struct kymo_error *recording_kernel_open(const struct recording_kernel_options *options, struct recording_kernel **ret)
{
	struct recording_kernel *source = calloc(1, sizeof(*source));
	const struct kymo_kernel_options kernel = {
		.pid = options->pid,
		.thread = options->pid ? kymo_live_thread(options->pid) : 0,
		.follow = options->follow,
		.is_shut = options->is_shut,
		.names = true,
		.buffer_size = options->overwrite && options->buffer_size < OVERWRITE_RING ? OVERWRITE_RING
											   : options->buffer_size,
	};
	struct kymo_error *error;

	if (!source)
		return &kymo_error_no_memory;
	source->options = *options;
	add_sample(source);
	error = kymo_offline_create(options->specs, options->n_specs, options->events, options->warn, options->data,
				    &source->offline);
	if (!error)
		error = kymo_kernel_create(&kernel, &source->kernel);
	if (!error)
		error = make_streams(source);
	if (!error)
		error = kymo_kernel_threads_create(&source->threads);
	if (error) {
		recording_kernel_destroy(source);
		return error;
	}
	*ret = source;
	return NULL;
}

struct kymo_error *recording_kernel_check(pid_t pid, bool follow)
{
	const struct kymo_kernel_options options = {
		.pid = pid,
		.thread = kymo_live_thread(pid),
		.follow = follow,
		.names = true,
		.buffer_size = CHECK_BUFFER,
	};
	struct kymo_kernel *kernel = NULL;
	struct kymo_error *error = kymo_kernel_create(&options, &kernel);

	kymo_kernel_destroy(kernel);
	return error;
}

void recording_kernel_destroy(struct recording_kernel *source)
{
	if (!source)
		return;
	kymo_kernel_destroy(source->kernel);
	kymo_offline_destroy(source->offline);
	kymo_kernel_threads_destroy(source->threads);
	for (size_t i = 0; i < source->n_streams; i++)
		kymo_kernel_stream_destroy(source->streams[i]);
	free(source->streams);
	free(source);
}

/* ---- probes in ------------------------------------------------------------------------------- */

static const char *refusal_of(int err)
{
	return err == -EOPNOTSUPP || err == -524 /* ENOTSUPP of the kernel */ || err == -EILSEQ || err == -ENOEXEC ||
			       err == -EINVAL
		       ? "the kernel cannot set a uprobe on its instruction"
		       : strerror(-err);
}

/* What the kernel makes of the event at sites of this kind; the sites are refused where it cannot. */
static struct kymo_error *find_args(struct recording_kernel *source, const struct kymo_probe_event *event,
				    enum kymo_offline_kind kind, size_t first, size_t end,
				    struct recording_kernel_args *ret)
{
	struct kymo_error *error = recording_kernel_args_of(event, kind, ret), *refusal = NULL;
	const struct kymo_offline_site *sites;
	size_t n;

	if (!error || error->code != KYMO_ERROR_USAGE || kind != KYMO_OFFLINE_CALLER)
		return error;
	sites = kymo_offline_sites(source->offline, &n);
	for (size_t i = first; i < end && !refusal; i++)
		if (!sites[i].is_refused && sites[i].kind == kind)
			refusal = kymo_offline_refuse(source->offline, i, error->message);
	kymo_error_destroy(error);
	return refusal;
}

/* Attach the sites of this kind in [first, end). They are of one spec in one file. */
static struct kymo_error *attach_kind(struct recording_kernel *source, size_t first, size_t end,
				      enum kymo_offline_kind kind)
{
	const struct kymo_offline_site *sites;
	const struct kymo_probe_event *events;
	kymo_cleanup_free struct kymo_kernel_site *wanted = calloc(end - first, sizeof(*wanted));
	kymo_cleanup_free size_t *which = calloc(end - first, sizeof(*which));
	kymo_cleanup_free struct recording_kernel_args *args = calloc(1, sizeof(*args));
	struct kymo_kernel_probe probe = { .is_return = kind == KYMO_OFFLINE_CALLER };
	const struct kymo_probe_event *event;
	struct kymo_error *error;
	size_t n_sites, n_events, n = 0;
	const char *path;

	if (!wanted || !which || !args)
		return &kymo_error_no_memory;
	sites = kymo_offline_sites(source->offline, &n_sites);
	events = kymo_events_items(source->options.events, &n_events);
	event = &events[sites[first].event];
	error = find_args(source, event, kind, first, end, args);
	for (size_t i = first; i < end && !error; i++) {
		if (sites[i].is_refused || sites[i].kind != kind)
			continue;
		if (args->need_address && sites[i].vaddr >= KYMO_KERNEL_VADDR_MAX) {
			error = kymo_offline_refuse(source->offline, i,
						    "it is linked too far up for an expression with a variable of the "
						    "file");
			continue;
		}
		which[n] = i;
		wanted[n++] = (struct kymo_kernel_site){ .id = events[sites[i].event].id,
							 .offset = sites[i].offset,
							 .vaddr = args->need_address ? sites[i].vaddr : 0 };
	}
	if (error || !n)
		return error;
	probe.file = kymo_offline_file(source->offline, sites[first].file, &path);
	probe.n_args = event->n_args;
	probe.has_faults = kymo_pad_has_faults(event->args, event->n_args);
	probe.args = args->args;
	probe.filter = args->filter;
	error = kymo_kernel_attach(source->kernel, &probe, wanted, n);
	for (size_t i = 0; i < n && !error; i++) {
		if (wanted[i].err)
			error = kymo_offline_refuse(source->offline, which[i], refusal_of(wanted[i].err));
		else
			source->n_sites++;
	}
	return error;
}

/*
 * From 6.11 on a function returns to a uretprobe by a system call. Until 6.14 a seccomp filter that does not know it
 * may kill the process for it.
 */
static bool may_kill_filtered(void)
{
	unsigned int major, minor;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 && major == 6 && minor >= 11 &&
	       minor < 14;
}

static struct kymo_error *refuse_callers(struct recording_kernel *source, size_t first, size_t end)
{
	const struct kymo_offline_site *sites;
	struct kymo_error *error = NULL;
	size_t n;

	sites = kymo_offline_sites(source->offline, &n);
	for (size_t i = first; i < end && !error; i++)
		if (sites[i].kind == KYMO_OFFLINE_CALLER && may_kill_filtered())
			error = kymo_offline_refuse(source->offline, i,
						    "kymo cannot tell every location where it returns, and the return "
						    "probes of this kernel may kill processes under seccomp");
	return error;
}

static struct kymo_error *attach_run(struct recording_kernel *source, size_t first, size_t end)
{
	struct kymo_error *error = refuse_callers(source, first, end);

	if (!error)
		error = attach_kind(source, first, end, KYMO_OFFLINE_SITE);
	if (!error)
		error = attach_kind(source, first, end, KYMO_OFFLINE_TAIL);
	return error ? error : attach_kind(source, first, end, KYMO_OFFLINE_CALLER);
}

static void tell_many(const struct recording_kernel *source)
{
	const struct kymo_offline_site *sites;
	size_t n, many = 0;

	sites = kymo_offline_sites(source->offline, &n);
	for (size_t i = source->n_attached; i < n; i++)
		many += !sites[i].is_refused;
	if (many >= MANY_PLACES && source->options.tell_many)
		source->options.tell_many(many, source->options.recording);
}

static struct kymo_error *attach_new(struct recording_kernel *source)
{
	const struct kymo_offline_site *sites;
	struct kymo_error *error;
	size_t n, end;

	/* A breakpoint in the middle of another tool's jump would break the process. */
	if (source->options.pid && !source->options.follow)
		error = kymo_offline_check_text(source->offline, source->n_attached, source->options.pid);
	else
		error = kymo_offline_check_all(source->offline, source->n_attached);
	sites = kymo_offline_sites(source->offline, &n);
	if (!error)
		tell_many(source);
	/*
	 * At one site the kernel runs first what came last: backwards, records come in the order of the user's words.
	 */
	for (end = n; end > source->n_attached && !error;) {
		size_t first = end - 1;

		while (first > source->n_attached && sites[first - 1].spec == sites[first].spec &&
		       sites[first - 1].file == sites[first].file)
			first--;
		error = attach_run(source, first, end);
		end = first;
	}
	source->n_attached = n;
	return error;
}

struct kymo_error *recording_kernel_read(struct recording_kernel *source, pid_t pid, bool *new_ret)
{
	struct kymo_error *error = kymo_offline_look(source->offline, pid);
	size_t n;

	kymo_offline_sites(source->offline, &n);
	if (!error)
		*new_ret = n > source->n_attached;
	return error;
}

struct kymo_error *recording_kernel_look(struct recording_kernel *source, pid_t pid)
{
	struct kymo_error *error = kymo_offline_look(source->offline, pid);

	return error ? error : attach_new(source);
}

struct kymo_error *recording_kernel_find(struct recording_kernel *source)
{
	struct kymo_error *error = kymo_offline_find(source->offline, source->options.follow ? 0 : source->options.pid);

	return error ? error : attach_new(source);
}

struct kymo_error *recording_kernel_tell_refused(struct recording_kernel *source)
{
	return kymo_offline_tell_refused(source->offline);
}

/* ---- records out ----------------------------------------------------------------------------- */

static struct kymo_error *on_sample(const struct kymo_kernel_sample *sample, void *data)
{
	struct recording_kernel *source = data;
	uint8_t changed[KYMO_KERNEL_RECORD_MAX];
	const uint8_t *record = sample->record;
	struct kymo_error *error;
	int32_t tid;
	uint64_t tsc;

	while (source->ktime.n < 2 || !kymo_ktime_reaches(&source->ktime, sample->ns))
		add_sample(source);
	tsc = kymo_ktime_tsc(&source->ktime, sample->ns);
	source->n_records++;
	tid = source->carries_pids ? sample->pid : sample->tid;
	error = kymo_kernel_threads_see(source->threads, &source->output->trace, tid, sample->pid, sample->name, tsc);
	if (error)
		return error;
	if (tid != sample->tid) {
		memcpy(changed, record, sample->size);
		memcpy(changed + KYMO_EVENT_TID_OFFSET, &tid, sizeof(tid));
		record = changed;
	}
	return kymo_kernel_stream_add(source->streams[sample->ring], source->output, record, sample->size, tsc,
				      sample->lost);
}

struct kymo_error *recording_kernel_drain(struct recording_kernel *source, struct kymo_trace *output, size_t *n_ret)
{
	struct kymo_error *error;

	source->output = output;
	source->n_records = 0;
	add_sample(source);
	error = kymo_kernel_drain(source->kernel, on_sample, source);
	*n_ret = source->n_records;
	return error;
}

struct kymo_error *recording_kernel_flush(struct recording_kernel *source, struct kymo_trace *output)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < source->n_streams && !error && !source->options.overwrite; i++)
		error = kymo_kernel_stream_flush(source->streams[i], output);
	return error;
}

struct kymo_error *recording_kernel_copy(struct recording_kernel *source, struct kymo_trace *output,
					 struct kymo_trace *copy)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < source->n_streams && !error; i++)
		error = kymo_kernel_stream_copy(source->streams[i], output, copy);
	return error;
}

void recording_kernel_let_in(struct recording_kernel *source)
{
	kymo_kernel_let_in(source->kernel);
}

void recording_kernel_shut(struct recording_kernel *source)
{
	kymo_kernel_shut(source->kernel);
}

struct kymo_error *recording_kernel_finish(struct recording_kernel *source, struct kymo_trace *output)
{
	struct kymo_error *error;
	size_t n;

	kymo_kernel_shut(source->kernel);
	kymo_kernel_detach(source->kernel);
	error = recording_kernel_drain(source, output, &n);
	for (size_t i = 0; i < source->n_streams && !error; i++)
		error = kymo_kernel_stream_finish(source->streams[i], output, kymo_clock_tsc(),
						  kymo_kernel_lost(source->kernel, i));
	return error;
}

void recording_kernel_carry_pids(struct recording_kernel *source)
{
	source->carries_pids = true;
}

struct kymo_kernel_threads *recording_kernel_threads(const struct recording_kernel *source)
{
	return source->threads;
}

const struct kymo_offline *recording_kernel_sites(const struct recording_kernel *source)
{
	return source->offline;
}

uint64_t recording_kernel_lost(const struct recording_kernel *source)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < source->n_streams; i++)
		lost += kymo_kernel_lost(source->kernel, i);
	return lost;
}

size_t recording_kernel_n_sites(const struct recording_kernel *source)
{
	return source->n_sites;
}

bool recording_kernel_has_processes(const struct recording_kernel *source)
{
	return kymo_kernel_has_processes(source->kernel);
}
