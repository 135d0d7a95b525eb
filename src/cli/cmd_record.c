#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/aggregations.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/late.h"
#include "cli/live.h"
#include "cli/page.h"
#include "cli/signals.h"
#include "cli/spec_names.h"
#include "cli/spec_source.h"
#include "cli/targets.h"
#include "probe/resolve/syscalls.h"
#include "record/record.h"
#include "report/report.h"
#include "syscall/syscall.h"

#define BUFFER_DEFAULT (UINT64_C(16) << 20)
#define BUFFER_MIN (UINT64_C(64) << 10)
#define BUFFER_MAX (UINT64_C(4) << 30)
#define ROWS_MAX 1000000u
#define SOON_MS 200
#define RATE_SAMPLES 16u /* events come by the packet: a rate is that of three seconds, in which several come */

struct recording {
	struct kymo_record_options options;
	const char *name;                   /* of the command: "record" or "top" */
	const struct cli_record_view *view; /* of "top"; else NULL */
	struct cli_probes specs;
	struct cli_aggregations aggregations;
	bool has_written; /* a probe is recorded, and not aggregated alone */
	struct cli_targets targets;
	struct cli_config config;
	struct kymo_syscall_set syscalls; /* of all sets */
	const char *syscalls_text;        /* the first; NULL: none */
	bool quiet;
	bool says_follow; /* or not to */
	bool says_string_size;
	bool late;      /* files that specs name may come later from anywhere */
	bool announced; /* that recording has begun */
	struct cli_live live;
	struct {
		double seconds;
		uint64_t events;
	} before[RATE_SAMPLES]; /* of the progress, for the rate; a ring */
	unsigned int n_before;
};

enum {
	OUTPUT = 1,
	PROBE,
	RETURN,
	MARKER,
	SYSCALL,
	BRANCH,
	PID,
	NAME,
	FOR,
	BUFFER,
	OVERWRITE,
	BACKEND,
	QUIET,
	NO_RSEQ,
	DISPLACE_FAULTING,
	FOLLOW,
	NO_FOLLOW,
	NO_EXISTING,
	ALL,
	COMPLETE,
	STRING_SIZE,
	LATE,
	INTERVAL,
	ROWS,
	CONFIG,
	AGGREGATE, /* + enum kymo_aggr_kind */
};

static const struct cli_option table[] = {
	{ OUTPUT, 'o', "output", "DIR" },
	{ PROBE, 'p', "probe", "SPEC" },
	{ RETURN, 'r', "return", "SPEC" },
	{ MARKER, 'm', "marker", "GLOB" },
	{ SYSCALL, 's', "syscall", "SET" },
	{ BRANCH, 'b', "branch", "SPEC" },
	{ PID, 0, "pid", "PID" },
	{ NAME, 0, "name", "NAME" },
	{ FOR, 0, "for", "SECONDS" },
	{ BUFFER, 0, "buffer", "SIZE" },
	{ OVERWRITE, 0, "overwrite", NULL },
	{ BACKEND, 0, "backend", "NAME" },
	{ QUIET, 'q', "quiet", NULL },
	{ NO_RSEQ, 0, "no-rseq", NULL },
	{ DISPLACE_FAULTING, 0, "displace-faulting", NULL },
	{ FOLLOW, 0, "follow", NULL },
	{ NO_FOLLOW, 0, "no-follow", NULL },
	{ NO_EXISTING, 0, "no-existing", NULL },
	{ ALL, 0, "all", NULL },
	{ COMPLETE, 0, "complete", NULL },
	{ STRING_SIZE, 'S', "string-size", "SIZE" },
	{ LATE, 0, "late", NULL },
	{ INTERVAL, 0, "interval", "SECONDS" },
	{ ROWS, 0, "rows", "NUMBER" },
	{ AGGREGATE + KYMO_AGGR_COUNT, 0, "count", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_SUM, 0, "sum", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_MIN, 0, "min", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_MAX, 0, "max", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_AVG, 0, "avg", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_HIST, 0, "hist", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_LHIST, 0, "lhist", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_TOP, 0, "top", "WHAT" },
	{ CONFIG, 0, "config", "FILE" },
};

/* What the command line has room for and this version does not do, and what does something like it. */
static const struct {
	int id;
	const char *sentence;
} later[] = {
	{ BRANCH, "branches (--branch) are not in this version; --probe FILE:FUNCTION+OFFSET records one location" },
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

static struct kymo_error *add_spec(struct recording *recording, struct kymo_spec *spec)
{
	struct kymo_error *error = spec->needs_names || spec->wants_names ? cli_spec_find_names(spec) : NULL;

	if (!error && !kymo_vec_push(&recording->specs, *spec))
		error = &kymo_error_no_memory;
	if (!error)
		memset(spec, 0, sizeof(*spec));
	return error;
}

static int take_probe(struct recording *recording, const char *text, int id)
{
	kymo_cleanup(cli_specs_deinit) struct cli_specs specs = { 0 };
	struct kymo_error *error;

	error = cli_specs_parse(text,
				id == RETURN   ? kymo_spec_parse_return
				: id == MARKER ? kymo_spec_parse_marker
					       : kymo_spec_parse,
				&specs);
	for (size_t i = 0; !error && i < specs.items.n; i++)
		error = add_spec(recording, &specs.items.items[i]);
	if (error)
		return cli_fail(recording->name, error);
	cli_aggregations_note_probe(&recording->aggregations, &recording->specs, specs.items.n);
	return 0;
}

static int take_aggregation(struct recording *recording, const char *text, enum kymo_aggr_kind kind)
{
	struct kymo_error *error = cli_aggregations_add(&recording->aggregations, kind, text, &recording->specs);

	return error ? cli_fail(recording->name, error) : 0;
}

static int take_rows(struct recording *recording, const char *text)
{
	uint64_t rows;

	if (!cli_parse_number(text, &rows) || !rows || rows > ROWS_MAX)
		return cli_usage(recording->name, "--rows takes a number of rows up to %u, not '%s'", ROWS_MAX, text);
	recording->options.rows_max = (size_t)rows;
	return 0;
}

static int take_targets(struct recording *recording, const char *text, int id)
{
	struct kymo_error *error = id == PID ? cli_targets_add_pids(&recording->targets, text)
					     : cli_targets_add_name(&recording->targets, text);

	return error ? cli_fail(recording->name, error) : 0;
}

static int take_syscalls(struct recording *recording, const char *text)
{
	struct kymo_syscall_set set;
	struct kymo_error *error = kymo_syscall_set_parse(text, &set);

	if (error)
		return cli_fail(recording->name, error);
	for (unsigned int i = 0; i < KYMO_SYSCALL_MAX; i++)
		if (kymo_syscall_set_has(&set, i))
			recording->syscalls.bits[i / 64] |= 1ull << i % 64;
	if (!recording->syscalls_text)
		recording->syscalls_text = text;
	return 0;
}

/* All sets are one spec: a call is recorded once. */
static int add_syscalls(struct recording *recording)
{
	struct kymo_spec spec;
	struct kymo_error *error;

	_Static_assert(KYMO_SYSCALL_MAX == KYMO_PAD_SYSCALLS, "a set is what a pad knows");
	if (!recording->syscalls_text)
		return 0;
	error = kymo_spec_make_syscalls(recording->syscalls_text, recording->syscalls.bits, &spec);
	if (error)
		return cli_fail(recording->name, error);
	if (!kymo_vec_push(&recording->specs, spec)) {
		kymo_spec_deinit(&spec);
		return cli_fail(recording->name, &kymo_error_no_memory);
	}
	return 0;
}

static int take_buffer(struct recording *recording, const char *text)
{
	uint64_t size;

	if (!cli_parse_size(text, &size))
		return cli_usage(recording->name, "--buffer '%s' is no size; write 4096K, 16M or 1G", text);
	if (size < BUFFER_MIN || size > BUFFER_MAX)
		return cli_usage(recording->name, "--buffer '%s' is out of range; a CPU can have 64K to 4G", text);
	recording->options.buffer_size = size;
	return 0;
}

static int take_backend(struct recording *recording, const char *text)
{
	static const char *const names[] = {
		[KYMO_RECORD_AUTO] = "auto",
		[KYMO_RECORD_INPROC] = "inproc",
		[KYMO_RECORD_KERNEL] = "kernel",
		[KYMO_RECORD_PTRACE] = "ptrace",
	};

	for (size_t i = 0; i < kymo_countof(names); i++)
		if (!strcmp(text, names[i])) {
			recording->options.backend = (enum kymo_record_backend)i;
			return 0;
		}
	return cli_usage(recording->name, "there is no backend '%s'; write auto, inproc, kernel or ptrace", text);
}

static int take_string_size(struct recording *recording, const char *text)
{
	uint64_t size;

	if (!cli_parse_size(text, &size) || size > KYMO_SYSCALL_COPIED_MAX)
		return cli_usage(recording->name, "--string-size takes a number of bytes up to %d, not '%s'",
				 KYMO_SYSCALL_COPIED_MAX, text);
	recording->options.string_size = (size_t)size;
	recording->says_string_size = true;
	return 0;
}

static int refuse(const struct recording *recording, int id)
{
	size_t i = 0;

	while (later[i].id != id)
		i++;
	return cli_usage(recording->name, "%s", later[i].sentence);
}

static int take_option(void *data, int id, const char *value)
{
	struct recording *recording = data;
	struct kymo_record_options *options = &recording->options;

	switch (id) {
	case OUTPUT:
		options->directory = value;
		return *value ? 0 : cli_usage(recording->name, "--output needs the name of a directory, not ''");
	case PROBE:
	case RETURN:
	case MARKER:
		return take_probe(recording, value, id);
	case SYSCALL:
		return take_syscalls(recording, value);
	case PID:
	case NAME:
		return take_targets(recording, value, id);
	case FOR:
		if (cli_parse_seconds(value, &options->seconds))
			return 0;
		return cli_usage(recording->name, "--for '%s' is no number of seconds; write 5 or 0.5", value);
	case BUFFER:
		return take_buffer(recording, value);
	case OVERWRITE:
		options->overwrite = true;
		return 0;
	case BACKEND:
		return take_backend(recording, value);
	case QUIET:
		recording->quiet = true;
		return 0;
	case NO_RSEQ:
		options->no_rseq = true;
		return 0;
	case DISPLACE_FAULTING:
		options->displace_faulting = true;
		return 0;
	case ALL:
		options->all = true;
		return 0;
	case COMPLETE:
		options->complete = true;
		return 0;
	case STRING_SIZE:
		return take_string_size(recording, value);
	case LATE:
		recording->late = true;
		return 0;
	case NO_EXISTING:
		options->existing = false;
		return 0;
	case FOLLOW:
	case NO_FOLLOW:
		recording->says_follow = true;
		options->follow = id == FOLLOW;
		return 0;
	case INTERVAL:
		if (cli_parse_seconds(value, &options->interval))
			return 0;
		return cli_usage(recording->name, "--interval '%s' is no number of seconds; write 5 or 0.5", value);
	case ROWS:
		return take_rows(recording, value);
	case AGGREGATE ... AGGREGATE + KYMO_AGGR_N_KINDS - 1:
		return take_aggregation(recording, value, (enum kymo_aggr_kind)(id - AGGREGATE));
	default:
		return refuse(recording, id);
	}
}

/* Of system calls alone. */
static int check_calls(const struct recording *recording)
{
	const struct kymo_record_options *options = &recording->options;
	const bool has_memory = options->complete || options->all || options->backend == KYMO_RECORD_KERNEL ||
				options->backend == KYMO_RECORD_PTRACE;

	if (options->complete && !recording->syscalls_text)
		return cli_usage(recording->name, "--complete is for system calls: name them with -s, or leave it out");
	if (options->complete && options->backend == KYMO_RECORD_INPROC)
		return cli_usage(recording->name, "code in the process sees neither all calls nor their memory: leave "
						  "--backend inproc out, or --complete");
	if (options->backend == KYMO_RECORD_PTRACE && (!recording->syscalls_text || recording->specs.n > 1))
		return cli_usage(recording->name,
				 "--backend ptrace is for system calls alone: record them with -s, and "
				 "probes of the same process by a second 'kymo record --pid'");
	if (recording->says_string_size && !(recording->syscalls_text && has_memory))
		return cli_usage(recording->name, "--string-size is for system calls with their memory: add -s with "
						  "--complete, --backend kernel or --backend ptrace");
	return -1;
}

/* Of aggregations alone. */
static int check_aggregations(struct recording *recording)
{
	struct kymo_record_options *options = &recording->options;
	const bool is_outside =
		options->all || options->backend == KYMO_RECORD_KERNEL || options->backend == KYMO_RECORD_PTRACE;

	options->aggregations = recording->aggregations.items.items;
	options->n_aggregations = recording->aggregations.items.n;
	for (size_t i = 0; i < recording->specs.n; i++)
		recording->has_written |= !recording->specs.items[i].aggregated;
	if (recording->view && !options->n_aggregations)
		return cli_usage(recording->name, "nothing to show: say what, such as --count 'libc:malloc by tid'");
	if (recording->view && recording->has_written)
		return cli_usage(recording->name,
				 "'kymo top' shows aggregations alone: write --count or another behind "
				 "each probe, or use 'kymo record'");
	if (!options->n_aggregations && (options->interval > 0 || options->rows_max))
		return cli_usage(recording->name, "%s is for aggregations: add --count, --sum, --hist or another",
				 options->rows_max ? "--rows" : "--interval");
	if (options->n_aggregations && is_outside)
		return cli_usage(recording->name, "aggregations are of probes in the process itself: leave %s out",
				 options->all ? "--all" : "--backend");
	if (options->n_aggregations && options->overwrite)
		return cli_usage(recording->name, "--overwrite keeps the newest records, and aggregations have all: "
						  "leave it out");
	return -1;
}

/* What one process can be asked for, and several cannot. */
static int check_several(const struct recording *recording)
{
	const struct kymo_record_options *options = &recording->options;
	const char *way = options->backend == KYMO_RECORD_KERNEL   ? "--backend kernel"
			  : options->backend == KYMO_RECORD_PTRACE ? "--backend ptrace"
								   : "--complete";

	if (options->backend == KYMO_RECORD_KERNEL || options->backend == KYMO_RECORD_PTRACE || options->complete)
		return cli_usage(recording->name, "%s records one process, not %zu: name one of them, or leave it out",
				 way, options->n_pids);
	for (size_t i = 0; i < recording->specs.n; i++)
		if (recording->specs.items[i].address)
			return cli_usage(recording->name,
					 "'%s' is an address of one process, and %zu are named: name one of them",
					 recording->specs.items[i].text, options->n_pids);
	return 0;
}

/* The processes that --pid and --name mean. */
static int find_targets(struct recording *recording)
{
	struct kymo_record_options *options = &recording->options;
	struct kymo_error *error = cli_targets_find(&recording->targets, recording->quiet ? NULL : stderr);

	if (error)
		return cli_fail(recording->name, error);
	options->pids = recording->targets.pids.items;
	options->n_pids = recording->targets.pids.n;
	options->pid = options->pids[0];
	return options->n_pids > 1 ? check_several(recording) : 0;
}

/* -1: go on; else the exit status. */
static int check(struct recording *recording)
{
	struct kymo_record_options *options = &recording->options;
	const bool has_targets = !cli_targets_is_empty(&recording->targets);
	int status = add_syscalls(recording);

	if (status)
		return status;
	if (!recording->specs.n)
		return cli_usage(recording->name,
				 "nothing to record: give a probe, such as -p 'libc:malloc size=%%di', a "
				 "marker with -m, or system calls with -s");
	if (!options->command && !has_targets && !options->all)
		return cli_usage(recording->name,
				 "nothing to attach to: give a command, --pid PID, --name NAME, or --all");
	if (options->all && (options->command || has_targets))
		return cli_usage(recording->name, "--all records every process; leave %s out, or --all",
				 has_targets ? "--pid" : "the command");
	if (options->all && (options->backend == KYMO_RECORD_INPROC || options->backend == KYMO_RECORD_PTRACE))
		return cli_usage(recording->name, "--all is done through the kernel; leave --backend %s out",
				 options->backend == KYMO_RECORD_INPROC ? "inproc" : "ptrace");
	if (options->command && has_targets)
		return cli_usage(recording->name, "record either %s or the command '%s', not both",
				 recording->targets.names.n ? "--name" : "--pid", options->command[0]);
	if (options->command && !*options->command[0])
		return cli_usage(recording->name, "the command's name is empty");
	status = check_aggregations(recording);
	if (status >= 0)
		return status;
	status = check_calls(recording);
	if (status >= 0)
		return status;
	status = has_targets ? find_targets(recording) : 0;
	if (status)
		return status;
	if (!recording->says_follow)
		options->follow = options->command;
	if (!options->existing && !(has_targets && options->follow))
		return cli_usage(recording->name,
				 "--no-existing leaves out the children that a followed process has: add "
				 "--pid and --follow, or leave it out");
	options->specs = recording->specs.items;
	options->n_specs = recording->specs.n;
	return recording->late || !options->command ? -1 : cli_check_files(options);
}

static int read_options(struct recording *recording, int argc, char **argv)
{
	struct cli_options options = { recording->name, table, kymo_countof(table), argc, argv, .at = 1 };

	for (;;) {
		int id = cli_options_next(&options), status;

		switch (id) {
		case CLI_HELP:
			return 0;
		case CLI_WRONG:
			return 2;
		case CLI_OPERAND:
			recording->options.command = argv + options.at - 1;
			return check(recording);
		case CLI_END:
			return check(recording);
		}
		status = id == CONFIG ? cli_config_read(&recording->config, options.value, &options, id, take_option,
							recording)
				      : take_option(recording, id, options.value);
		if (status)
			return status;
	}
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* An interrupt that is not the command's stops the recording. */
static void on_signal(int number)
{
	kymo_record_stop = 1;
}

static void on_pipe(int number)
{
}

static void on_snapshot(int number)
{
	kymo_record_snapshots++;
}

static void handle(int number, void (*handler)(int number))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, before;

	sigemptyset(&action.sa_mask);
	if (!sigaction(number, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

static void catch_signals(const struct kymo_record_options *options)
{
	cli_catch_signals(options->command, 0, on_signal);
	/* A closed stderr must not end a recording in disorder: it comes back as an error of write(). SIG_IGN would
	 * outlive exec in the command; handlers don't. */
	handle(SIGPIPE, on_pipe);
	if (options->overwrite)
		handle(SIGUSR1, on_snapshot);
}

/* ---- what the user sees ------------------------------------------------------------------------------------------ */

/* Where no line lives, one that tells whoever waits for it that all probes are in. A command's stderr is its own. */
static void announce(struct recording *recording, size_t n_sites, size_t n_processes)
{
	if (recording->announced || recording->quiet || recording->live.enabled || recording->options.command)
		return;
	if (recording->options.all)
		fprintf(stderr, "kymo: recording every process, ");
	else if (n_processes <= 1 &&
		 recording->options.n_pids <= 1) /* one that is recorded from outside is not counted */
		fprintf(stderr, "kymo: recording process %d, ", recording->options.pid);
	else
		fprintf(stderr, "kymo: recording %zu %s, ", n_processes, n_processes == 1 ? "process" : "processes");
	fprintf(stderr, "%zu %s\n", n_sites, n_sites == 1 ? "site" : "sites");
	fflush(stderr);
	recording->announced = true;
}

/* Hits that are aggregated are events, too. */
static uint64_t events_of(const struct kymo_record_progress *progress)
{
	return progress->events + progress->aggregated;
}

static const char *const phases[] = {
	[KYMO_RECORD_PLANNING] = "planning",
	[KYMO_RECORD_RUNNING] = "recording",
	[KYMO_RECORD_STOPPING] = "stopping",
	[KYMO_RECORD_DONE] = "done",
};

static void draw(struct recording *recording, const struct kymo_record_progress *progress)
{
	const unsigned int oldest = recording->n_before < RATE_SAMPLES ? 0 : recording->n_before % RATE_SAMPLES;
	double passed = progress->seconds - recording->before[oldest].seconds;
	uint64_t more = events_of(progress) >= recording->before[oldest].events
				? events_of(progress) - recording->before[oldest].events
				: 0;
	const char *sites = progress->n_sites == 1 ? "site" : "sites";
	char bytes[32], events[32], rate[32], lost[32], line[256];

	if (progress->phase == KYMO_RECORD_RUNNING)
		snprintf(line, sizeof(line),
			 "kymo: recording %.1f s   %s events   %s/s   %s   %s lost   %zu %s   (Ctrl-C stops)",
			 progress->seconds, cli_format_count(events_of(progress), events),
			 cli_format_count(passed > 0 ? (uint64_t)((double)more / passed) : 0, rate),
			 cli_format_bytes(progress->bytes, bytes), cli_format_count(progress->lost, lost),
			 progress->n_sites, sites);
	else
		snprintf(line, sizeof(line), "kymo: %s   %zu %s", phases[progress->phase], progress->n_sites, sites);
	cli_live_show(&recording->live, line);
	recording->before[recording->n_before % RATE_SAMPLES].seconds = progress->seconds;
	recording->before[recording->n_before++ % RATE_SAMPLES].events = events_of(progress);
}

static void on_progress(const struct kymo_record_progress *progress, void *data)
{
	struct recording *recording = data;
	bool running = progress->phase == KYMO_RECORD_RUNNING;

	if (progress->command_ended)
		cli_signals_are_ours();
	if (running)
		announce(recording, progress->n_sites, progress->n_processes);
	/* The terminal is the command's while it runs: it may be half way through a line, or an editor. */
	if (running && recording->options.command)
		cli_live_clear(&recording->live);
	else
		draw(recording, progress);
}

static void on_warning(const char *sentence, void *data)
{
	struct recording *recording = data;

	cli_live_clear(&recording->live);
	cli_warn("%s", sentence);
}

static void on_tell(const char *sentence, void *data)
{
	struct recording *recording = data;

	cli_live_clear(&recording->live);
	if (!recording->quiet)
		fprintf(stderr, "kymo: %s\n", sentence);
}

/* A larger buffer helps only where buffers were full. */
static void tell_losses(const struct recording *recording, const struct kymo_record_result *result)
{
	char bytes[32], lost[32];

	if (result->lost_in_vforks)
		fprintf(stderr,
			"kymo: lost in vfork children before their exec, whose hits are counted and not recorded: %s\n",
			cli_format_count(result->lost_in_vforks, lost));
	if (result->lost == result->lost_in_vforks || recording->options.overwrite)
		return;
	if (result->were_full)
		fprintf(stderr, "kymo: a larger --buffer than %s a CPU loses less\n",
			cli_format_bytes(recording->options.buffer_size, bytes));
	else if (result->full_size)
		fprintf(stderr, "kymo: the buffers of children were full, which have %s a CPU whatever --buffer says\n",
			cli_format_bytes(result->full_size, bytes));
	else if (result->were_small_yet)
		fputs("kymo: a process filled a buffer before kymo had given it all of its memory, which a buffer gets "
		      "with use\n",
		      stderr);
	else
		fputs("kymo: no CPU's buffer was full: what was lost found them in use by other threads, no packet "
		      "that it fits into, or a stack that was nearly full\n",
		      stderr);
}

/* "12,345 events (58.6 KiB), none lost, in d". Their number is exact unless it says so. */
static void summarise(const struct recording *recording, const struct kymo_record_result *result)
{
	const char *directory = recording->options.directory;
	const bool is_elsewhere = strcmp(directory, "kymo.data") != 0;
	char bytes[32], events[32], lost[32];

	if (result->aggregated && !recording->has_written)
		fprintf(stderr, "kymo: %s %s aggregated", cli_format_count(result->aggregated, events),
			result->aggregated == 1 ? "hit" : "hits");
	else if (!result->events)
		fputs("kymo: no events", stderr);
	else
		fprintf(stderr, "kymo: %s%s %s (%s)", result->is_estimate ? "about " : "",
			cli_format_count(result->events, events), result->events == 1 ? "event" : "events",
			cli_format_bytes(result->bytes, bytes));
	fprintf(stderr, ", %s lost, in %s; 'kymo report%s%s' shows them\n",
		result->lost ? cli_format_count(result->lost, lost) : "none", directory, is_elsewhere ? " " : "",
		is_elsewhere ? directory : "");
	if (result->lost)
		tell_losses(recording, result);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The recording was over before the command: wait for it, as its exit status is kymo's. A signal ends the waiting. */
static int wait_for_command(const struct recording *recording)
{
	int status, last = 0;

	if (!recording->quiet)
		fprintf(stderr, "kymo: waiting for %s to end\n", recording->options.command[0]);
	while (!kymo_record_stop) {
		if (wait(&status) > 0)
			last = status_of(status);
		else if (errno != EINTR)
			return last;
	}
	return 128 + cli_last_signal();
}

/* Who traces what was followed does it through this process. One that is about to leave is not told of. */
static void serve_others(struct kymo_record_result *result)
{
	bool is_anyone_left;
	pid_t who;

	kymo_record_stop = 0;
	is_anyone_left = kymo_record_serve(result, SOON_MS, &who);
	if (is_anyone_left && !kymo_record_stop)
		fprintf(stderr,
			"kymo: kymo process %d still traces what was recorded, through this one, which stays for it; "
			"Ctrl-C ends that, too\n",
			who);
	while (is_anyone_left && !kymo_record_stop) {
		if (result->command_ended)
			cli_signals_are_ours(); /* no Ctrl-C is the command's any more */
		is_anyone_left = kymo_record_serve(result, SOON_MS, &who);
	}
	kymo_record_leave(result);
}

static void on_tables(const struct kymo_aggr_table *tables, size_t n, void *data)
{
	const struct recording *recording = data;

	if (recording->view->show(tables, n, recording->view->data))
		kymo_record_stop = 1;
}

/* What was asked for is shown at once where it is all that there is. */
static int show_tables(const struct recording *recording)
{
	struct kymo_report_options options = { .mode = KYMO_REPORT_TABLES };
	struct kymo_error *error;

	if (recording->view || !recording->options.n_aggregations || recording->has_written)
		return 0;
	cli_page_options(&options);
	error = kymo_report(recording->options.directory, &options, stdout);
	return error ? cli_fail(recording->name, error) : 0;
}

static int run(struct recording *recording)
{
	struct kymo_record_result result = { 0 };
	struct kymo_error *error;
	bool was_stopped;
	int failed;

	catch_signals(&recording->options);
	recording->options.tell = on_tell;
	cli_live_init(&recording->live, !recording->quiet && !recording->view);
	recording->options.progress = on_progress;
	recording->options.warn = on_warning;
	if (recording->view)
		recording->options.tables = on_tables;
	recording->options.data = recording;
	error = kymo_record(&recording->options, &result);
	cli_live_clear(&recording->live);
	if (error && recording->view)
		recording->view->end(recording->view->data);
	if (error)
		return cli_fail(recording->name, error);
	if (recording->view)
		recording->view->end(recording->view->data);
	else if (!recording->quiet)
		summarise(recording, &result);
	failed = show_tables(recording);
	was_stopped = kymo_record_stop;
	if (result.shared || result.shared_hub)
		serve_others(&result);
	if (!recording->options.command)
		return failed;
	if (result.command_ended)
		return status_of(result.command_status);
	if (!was_stopped && !kymo_record_stop)
		return wait_for_command(recording);
	if (!recording->quiet)
		fprintf(stderr, "kymo: %s runs on\n", recording->options.command[0]);
	return 128 + cli_last_signal();
}

int cli_record(int argc, char **argv, const struct cli_record_view *view)
{
	struct recording recording = { .name = argv[0],
				       .view = view,
				       .options = { .directory = view ? view->directory : "kymo.data",
						    .existing = true,
						    .buffer_size = BUFFER_DEFAULT,
						    .string_size = KYMO_SYSCALL_STRING_SIZE } };
	int status = read_options(&recording, argc, argv);

	if (status < 0)
		status = run(&recording);
	for (size_t i = 0; i < recording.specs.n; i++)
		kymo_spec_deinit(&recording.specs.items[i]);
	kymo_vec_deinit(&recording.specs);
	cli_aggregations_deinit(&recording.aggregations);
	cli_targets_deinit(&recording.targets);
	cli_config_deinit(&recording.config);
	return status;
}

int cmd_record(int argc, char **argv)
{
	return cli_record(argc, argv, NULL);
}
