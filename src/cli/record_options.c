#include "cli/record_options.h"

#include <string.h>

#include "aggr/words.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/branch_options.h"
#include "cli/debug_files.h"
#include "cli/late.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/record_checks.h"
#include "cli/record_probes.h"
#include "cli/record_syscalls.h"
#include "cli/structures.h"
#include "cli/types.h"
#include "stack/stack.h"
#include "syscall/copies.h"

#define BUFFER_MIN (UINT64_C(64) << 10)
#define BUFFER_MAX (UINT64_C(4) << 30)
#define KEEP_MIN (UINT64_C(8) << 20)
#define KEEP_MAX (UINT64_C(64) << 30)
#define ROWS_MAX 1000000u
#define SNAPSHOTS_MAX 1000000u
#define STACK_SIZE_MIN 64u
#define STACK_SIZE_MAX (16u << 10)

enum {
	OUTPUT = 1,
	PROBE,
	RETURN,
	MARKER,
	SYSCALL,
	BRANCH,
	TAIL,
	BRANCH_SOURCE,
	PID,
	NAME,
	FOR,
	BUFFER,
	OVERWRITE,
	KEEP,
	UNTIL,
	AFTER,
	SNAPSHOTS,
	BACKEND,
	QUIET,
	NO_RSEQ,
	FAST_READS,
	NO_FAST_READS,
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
	STACK,
	STACK_SIZE,
	FRAME_POINTERS,
	NO_INLINE,
	CONFIG,
	DEBUG_FILE,
	STRUCT_DEPTH,
	STRUCT_SIZE,
	TYPES,
	ALLOW_WRITE,
	AGGREGATE, /* + enum kymo_aggr_kind */
};

static const struct cli_option table[] = {
	{ OUTPUT, 'o', "output", "DIR" },
	{ PROBE, 'p', "probe", "SPEC" },
	{ RETURN, 'r', "return", "SPEC" },
	{ MARKER, 'm', "marker", "GLOB" },
	{ SYSCALL, 's', "syscall", "SET" },
	{ BRANCH, 'b', "branch", "SPEC" },
	{ TAIL, 0, "tail", "NUMBER" },
	{ BRANCH_SOURCE, 0, "branch-source", "NAME" },
	{ PID, 0, "pid", "PID" },
	{ NAME, 0, "name", "NAME" },
	{ FOR, 0, "for", "SECONDS" },
	{ BUFFER, 0, "buffer", "SIZE" },
	{ OVERWRITE, 0, "overwrite", NULL },
	{ KEEP, 0, "keep", "SIZE" },
	{ UNTIL, 0, "until", "CONDITION" },
	{ AFTER, 0, "after", "SECONDS" },
	{ SNAPSHOTS, 0, "snapshots", "NUMBER" },
	{ BACKEND, 0, "backend", "NAME" },
	{ QUIET, 'q', "quiet", NULL },
	{ NO_RSEQ, 0, "no-rseq", NULL },
	{ FAST_READS, 0, "fast-reads", NULL },
	{ NO_FAST_READS, 0, "no-fast-reads", NULL },
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
	{ STACK, 0, "stack", "=DEPTH" },
	{ STACK_SIZE, 0, "stack-size", "SIZE" },
	{ FRAME_POINTERS, 0, "frame-pointers", NULL },
	{ NO_INLINE, 0, "no-inline", NULL },
	{ AGGREGATE + KYMO_AGGR_COUNT, 0, "count", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_SUM, 0, "sum", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_MIN, 0, "min", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_MAX, 0, "max", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_AVG, 0, "avg", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_HIST, 0, "hist", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_LHIST, 0, "lhist", "WHAT" },
	{ AGGREGATE + KYMO_AGGR_TOP, 0, "top", "WHAT" },
	{ CONFIG, 0, "config", "FILE" },
	{ DEBUG_FILE, 0, "debug-file", "FILE" },
	{ STRUCT_DEPTH, 0, "struct-depth", "NUMBER" },
	{ STRUCT_SIZE, 0, "struct-size", "SIZE" },
	{ TYPES, 0, "types", "FILE" },
	{ ALLOW_WRITE, 0, "allow-write", NULL },
};

static int take_probe(struct cli_recording *recording, const char *text, int id)
{
	struct kymo_error *error = cli_add_probe(recording, text,
						 id == MARKER   ? CLI_PROBE_MARKER
						 : id == RETURN ? CLI_PROBE_RETURN
								: CLI_PROBE_ENTRY);

	return error ? cli_fail(recording->name, error) : 0;
}

static int take_aggregation(struct cli_recording *recording, const char *text, enum kymo_aggr_kind kind)
{
	struct kymo_error *error = cli_aggregations_add(&recording->aggregations, kind, text, &recording->specs);

	return error ? cli_fail(recording->name, error) : 0;
}

static int take_rows(struct cli_recording *recording, const char *text)
{
	uint64_t rows;

	if (!cli_parse_number(text, &rows) || !rows || rows > ROWS_MAX)
		return cli_usage(recording->name, "--rows takes a number of rows up to %u, not '%s'", ROWS_MAX, text);
	recording->options.rows_max = (size_t)rows;
	return 0;
}

static int take_depth(struct cli_recording *recording, const char *text)
{
	uint64_t depth = 0;

	if (text && (!cli_parse_number(text, &depth) || !depth || depth > KYMO_STACK_MAX))
		return cli_usage(recording->name,
				 "--stack takes a number of frames up to %d, as in --stack=16, not '%s'",
				 KYMO_STACK_MAX, text);
	recording->has_stacks = true;
	recording->options.stack_depth = (size_t)depth;
	return 0;
}

static int take_stack_size(struct cli_recording *recording, const char *text)
{
	uint64_t size;

	if (!cli_parse_size(text, &size) || size < STACK_SIZE_MIN || size > STACK_SIZE_MAX)
		return cli_usage(recording->name,
				 "--stack-size takes a number of bytes from %u to %u, such as 8K, not '%s'",
				 STACK_SIZE_MIN, STACK_SIZE_MAX, text);
	recording->stack_size = (uint16_t)size;
	return 0;
}

/* What is known to the probes that come after it. */
static int take_scope(const struct cli_recording *recording, const char *value, int id)
{
	struct kymo_error *error;

	if (id == STRUCT_DEPTH)
		return cli_structures_take_depth(recording->name, value);
	if (id == STRUCT_SIZE)
		return cli_structures_take_size(recording->name, value);
	error = id == TYPES ? cli_types_add(value) : cli_debug_files_add(value);
	return error ? cli_fail(recording->name, error) : 0;
}

static int take_targets(struct cli_recording *recording, const char *text, int id)
{
	struct kymo_error *error = id == PID ? cli_targets_add_pids(&recording->targets, text)
					     : cli_targets_add_name(&recording->targets, text);

	return error ? cli_fail(recording->name, error) : 0;
}

static int take_buffer(struct cli_recording *recording, const char *text)
{
	uint64_t size;

	if (!cli_parse_size(text, &size))
		return cli_usage(recording->name, "--buffer '%s' is no size; write 4096K, 16M or 1G", text);
	if (size < BUFFER_MIN || size > BUFFER_MAX)
		return cli_usage(recording->name, "--buffer '%s' is out of range; a CPU can have 64K to 4G", text);
	recording->options.buffer_size = size;
	recording->says_buffer = true;
	return 0;
}

static int take_keep(struct cli_recording *recording, const char *text)
{
	uint64_t size;

	if (!cli_parse_size(text, &size) || size < KEEP_MIN || size > KEEP_MAX)
		return cli_usage(recording->name, "--keep takes a size from 8M to 64G, not '%s'", text);
	recording->options.keep = size;
	return 0;
}

static int take_snapshots(struct cli_recording *recording, const char *text)
{
	uint64_t n;

	if (!cli_parse_number(text, &n) || !n || n > SNAPSHOTS_MAX)
		return cli_usage(recording->name, "--snapshots takes a number up to %u, not '%s'", SNAPSHOTS_MAX, text);
	recording->options.n_snapshots = (size_t)n;
	return 0;
}

static int take_backend(struct cli_recording *recording, const char *text)
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

static int take_string_size(struct cli_recording *recording, const char *text)
{
	uint64_t size;

	if (!cli_parse_size(text, &size) || size > KYMO_SYSCALL_COPIED_MAX)
		return cli_usage(recording->name, "--string-size takes a number of bytes up to %d, not '%s'",
				 KYMO_SYSCALL_COPIED_MAX, text);
	recording->options.string_size = (size_t)size;
	recording->says_string_size = true;
	return 0;
}

/* Options without a value, and what they set in struct cli_recording. */
#define OPTION(name) offsetof(struct cli_recording, options.name)
static const struct {
	int id;
	size_t at;
} flags[] = {
	{ OVERWRITE, OPTION(overwrite) },
	{ NO_RSEQ, OPTION(no_rseq) },
	{ FRAME_POINTERS, OPTION(frame_pointers) },
	{ NO_INLINE, OPTION(no_inline) },
	{ ALLOW_WRITE, OPTION(allow_write) },
	{ DISPLACE_FAULTING, OPTION(displace_faulting) },
	{ ALL, OPTION(all) },
	{ COMPLETE, OPTION(complete) },
	{ QUIET, offsetof(struct cli_recording, quiet) },
	{ LATE, offsetof(struct cli_recording, late) },
};

static bool take_flag(struct cli_recording *recording, int id)
{
	for (size_t i = 0; i < kymo_countof(flags); i++)
		if (flags[i].id == id)
			return *(bool *)((char *)recording + flags[i].at) = true;
	switch (id) {
	case NO_EXISTING:
		recording->options.existing = false;
		return true;
	case FAST_READS:
	case NO_FAST_READS:
		recording->options.fast_reads = id == FAST_READS;
		recording->options.no_fast_reads = id == NO_FAST_READS;
		return true;
	case FOLLOW:
	case NO_FOLLOW:
		recording->says_follow = true;
		recording->options.follow = id == FOLLOW;
		return true;
	default:
		return false;
	}
}

static int take_seconds(const struct cli_recording *recording, const char *option, const char *value, double *ret)
{
	if (cli_parse_seconds(value, ret))
		return 0;
	return cli_usage(recording->name, "--%s '%s' is no number of seconds; write 5 or 0.5", option, value);
}

static int take_option(void *data, int id, const char *value)
{
	struct cli_recording *recording = data;
	struct kymo_record_options *options = &recording->options;

	if (take_flag(recording, id))
		return 0;
	switch (id) {
	case OUTPUT:
		options->directory = value;
		return *value ? 0 : cli_usage(recording->name, "--output needs the name of a directory, not ''");
	case PROBE:
	case RETURN:
	case MARKER:
		return take_probe(recording, value, id);
	case SYSCALL:
		return cli_record_take_syscalls(recording, value);
	case PID:
	case NAME:
		return take_targets(recording, value, id);
	case FOR:
		return take_seconds(recording, "for", value, &options->seconds);
	case BUFFER:
		return take_buffer(recording, value);
	case KEEP:
		return take_keep(recording, value);
	case UNTIL:
		return take_aggregation(recording, value, KYMO_AGGR_UNTIL);
	case AFTER:
		recording->says_after = true;
		return take_seconds(recording, "after", value, &options->after);
	case SNAPSHOTS:
		return take_snapshots(recording, value);
	case BACKEND:
		return take_backend(recording, value);
	case STRING_SIZE:
		return take_string_size(recording, value);
	case INTERVAL:
		return take_seconds(recording, "interval", value, &options->interval);
	case ROWS:
		return take_rows(recording, value);
	case STACK:
		return take_depth(recording, value);
	case STACK_SIZE:
		return take_stack_size(recording, value);
	case DEBUG_FILE:
	case STRUCT_DEPTH:
	case STRUCT_SIZE:
	case TYPES:
		recording->says_debug_file |= id == DEBUG_FILE;
		return take_scope(recording, value, id);
	case AGGREGATE ... AGGREGATE + KYMO_AGGR_N_KINDS - 1:
		return take_aggregation(recording, value, (enum kymo_aggr_kind)(id - AGGREGATE));
	case BRANCH:
		return cli_branches_add(recording, value);
	case TAIL:
	case BRANCH_SOURCE:
		return (id == TAIL ? cli_branches_take_tail : cli_branches_take_source)(recording, value);
	default:
		return 0;
	}
}

/* Of system calls alone. */
static int check_calls(const struct cli_recording *recording)
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
static int check_aggregations(struct cli_recording *recording)
{
	struct kymo_record_options *options = &recording->options;
	const bool is_outside =
		options->all || options->backend == KYMO_RECORD_KERNEL || options->backend == KYMO_RECORD_PTRACE;

	options->aggregations = recording->aggregations.items.items;
	options->n_aggregations = recording->aggregations.items.n;
	for (size_t i = 0; i < options->n_aggregations; i++)
		recording->n_tables += options->aggregations[i].kind < KYMO_AGGR_N_KINDS;
	for (size_t i = 0; i < recording->specs.n; i++)
		recording->has_written |= !recording->specs.items[i].aggregated || recording->specs.items[i].waits;
	if (recording->view && !recording->n_tables)
		return cli_usage(recording->name, "nothing to show: say what, such as --count 'libc:malloc by tid'");
	if (recording->view && recording->has_written)
		return cli_usage(recording->name, "'kymo top' shows aggregations alone: write --count or another after "
						  "each probe, or use 'kymo record'");
	if (!recording->n_tables && (options->interval > 0 || options->rows_max))
		return cli_usage(recording->name, "%s is for aggregations: add --count, --sum, --hist or another",
				 options->rows_max ? "--rows" : "--interval");
	if (options->n_aggregations && is_outside)
		return cli_usage(recording->name, "%s of probes in the process itself: leave %s out",
				 recording->n_tables                    ? "aggregations are"
				 : cli_record_has_conditions(recording) ? "the condition of --until is"
									: "durations of calls, and entry(), are",
				 options->all ? "--all" : "--backend");
	if (recording->n_tables && (options->overwrite || options->keep))
		return cli_usage(recording->name,
				 "--%s keeps the newest records, and aggregations have all: "
				 "leave it out",
				 options->keep ? "keep" : "overwrite");
	return cli_record_check_flight_recorder(recording);
}

/* What one process can be asked for, and several cannot. */
static int check_several(const struct cli_recording *recording)
{
	const struct kymo_record_options *options = &recording->options;
	const char *way = options->backend == KYMO_RECORD_KERNEL   ? "--backend kernel"
			  : options->backend == KYMO_RECORD_PTRACE ? "--backend ptrace"
								   : "--complete";

	if (options->n_branches)
		way = "-b";
	if (options->n_branches || options->backend == KYMO_RECORD_KERNEL || options->backend == KYMO_RECORD_PTRACE ||
	    options->complete)
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
static int find_targets(struct cli_recording *recording)
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
static int check_options(struct cli_recording *recording)
{
	struct kymo_record_options *options = &recording->options;
	const bool has_targets = !cli_targets_is_empty(&recording->targets);
	int status = cli_record_add_syscalls(recording);
	struct kymo_error *error;

	if (status)
		return status;
	status = cli_branches_check(recording);
	if (status >= 0)
		return status;
	error = cli_debug_files_check();
	if (error)
		return cli_fail(recording->name, error);
	if (!recording->specs.n && !recording->branches.n)
		return cli_usage(recording->name,
				 "nothing to record: give a probe, such as -p 'libc:malloc size=%%di', a "
				 "marker with -m, system calls with -s, or branches with -b");
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
	status = cli_record_check_stacks(recording);
	if (status >= 0)
		return status;
	status = cli_record_check_samples(recording);
	if (status >= 0)
		return status;
	status = cli_record_check_writes(recording);
	if (status >= 0)
		return status;
	status = has_targets ? find_targets(recording) : 0;
	if (status)
		return status;
	if (!recording->says_follow)
		options->follow = options->command && (!options->n_branches || recording->specs.n);
	if (!options->existing && !(has_targets && options->follow))
		return cli_usage(recording->name,
				 "--no-existing leaves out the children that a followed process has: add "
				 "--pid and --follow, or leave it out");
	options->specs = recording->specs.items;
	options->n_specs = recording->specs.n;
	return recording->late || !options->command ? -1 : cli_check_files(options);
}

/* What the command line says of debug information is known to all of its probes. -1, or the exit status: something is
 * wrong with a word. */
static int find_scope_options(const struct cli_recording *recording, struct cli_options options)
{
	for (;;) {
		const int id = cli_options_next(&options);

		if (id == CLI_HELP)
			return 0;
		if (id == CLI_WRONG)
			return 2;
		if (id == CLI_OPERAND || id == CLI_END)
			return -1;
		if (id == DEBUG_FILE || id == STRUCT_DEPTH || id == STRUCT_SIZE || id == TYPES) {
			const int status = take_scope(recording, options.value, id);

			if (status)
				return status;
		}
	}
}

int cli_record_read_options(struct cli_recording *recording, int argc, char **argv)
{
	struct cli_options options = { recording->name, table, kymo_countof(table), argc, argv, .at = 1 };
	const int found = find_scope_options(recording, options);

	if (found >= 0)
		return found;
	for (;;) {
		int id = cli_options_next(&options), status;

		switch (id) {
		case CLI_HELP:
			return 0;
		case CLI_WRONG:
			return 2;
		case CLI_OPERAND:
			recording->options.command = argv + options.at - 1;
			return check_options(recording);
		case CLI_END:
			return check_options(recording);
		}
		status = id == CONFIG ? cli_config_read(&recording->config, options.value, &options, id, take_option,
							recording)
				      : take_option(recording, id, options.value);
		if (status)
			return status;
	}
}
