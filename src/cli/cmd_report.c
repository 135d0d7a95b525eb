#include "cli/cmd_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "report/branches.h"
#include "report/report.h"

#define DEFAULT_DIR "kymo.data"

enum {
	EVENTS = 1,
	JSON,
	GRAPH,
	TREE,
	ALL,
	WALL,
	RAW,
	THREAD,
	PROCESS,
	PROBE,
	FROM,
	TO,
	BY_THREAD,
	DIFF,
	FUNCTION,
	FOLDED,
	FLAME,
	CALLERS,
	CALLEES,
	CRASH,
	NO_COLOR,
	WIDTH
};

static const struct cli_option table[] = {
	{ EVENTS, 0, "events", NULL },
	{ JSON, 0, "json", NULL },
	{ GRAPH, 0, "graph", NULL },
	{ TREE, 0, "tree", NULL },
	{ ALL, 0, "all", NULL },
	{ WALL, 0, "wall", NULL },
	{ RAW, 0, "raw", NULL },
	{ THREAD, 0, "thread", "THREAD" },
	{ PROCESS, 0, "process", "PROCESS" },
	{ PROBE, 0, "probe", "GLOB" },
	{ FROM, 0, "from", "TIME" },
	{ TO, 0, "to", "TIME" },
	{ BY_THREAD, 0, "by-thread", NULL },
	{ DIFF, 0, "diff", "DIR" },
	{ FUNCTION, 0, "function", "GLOB" },
	{ FOLDED, 0, "folded", NULL },
	{ FLAME, 0, "flame", NULL },
	{ CALLERS, 0, "callers", "FUNCTION" },
	{ CALLEES, 0, "callees", "FUNCTION" },
	{ CRASH, 0, "crash", NULL },
	{ NO_COLOR, 0, "no-colour", NULL },
	{ NO_COLOR, 0, "no-color", NULL },
	{ WIDTH, 'w', "width", "COLUMNS" },
};

/* The options as they are parsed: lists grow. */
struct arguments {
	struct kymo_report_options options;
	bool crash;         /* branches before one */
	const char *called; /* of --callers and --callees */
	const char *before; /* the recording that another one is compared with; NULL: none is */
	KYMO_VEC(const char *) threads, processes, probes;
	KYMO_VEC(char *) copies; /* what `threads` and `processes` point into */
};

static void arguments_deinit(struct arguments *arguments)
{
	for (size_t i = 0; i < arguments->copies.n; i++)
		free(arguments->copies.items[i]);
	kymo_vec_deinit(&arguments->copies);
	kymo_vec_deinit(&arguments->threads);
	kymo_vec_deinit(&arguments->processes);
	kymo_vec_deinit(&arguments->probes);
}

static const struct {
	int option;
	enum kymo_report_mode mode;
	const char *name;
} modes[] = {
	{ EVENTS, KYMO_REPORT_EVENTS, "--events" },    { JSON, KYMO_REPORT_JSON, "--json" },
	{ GRAPH, KYMO_REPORT_GRAPH, "--graph" },       { TREE, KYMO_REPORT_TREE, "--tree" },
	{ FOLDED, KYMO_REPORT_FOLDED, "--folded" },    { FLAME, KYMO_REPORT_FLAME, "--flame" },
	{ CALLERS, KYMO_REPORT_CALLERS, "--callers" }, { CALLEES, KYMO_REPORT_CALLEES, "--callees" },
};

static const char *mode_name(enum kymo_report_mode mode)
{
	for (size_t i = 0; i < kymo_countof(modes); i++)
		if (modes[i].mode == mode)
			return modes[i].name;
	return "";
}

/* 0, or the exit status. */
static int take_mode(int option, const struct cli_options *in, struct kymo_report_options *options)
{
	/* Both together are a third thing. */
	if ((option == JSON && options->mode == KYMO_REPORT_EVENTS) ||
	    (option == EVENTS && options->mode == KYMO_REPORT_JSON)) {
		options->mode = KYMO_REPORT_EVENTS;
		options->json = true;
		return 0;
	}
	for (size_t i = 0; i < kymo_countof(modes); i++) {
		if (modes[i].option != option)
			continue;
		if (options->mode != KYMO_REPORT_SUMMARY && options->mode != modes[i].mode)
			return cli_usage(in->command, "%s and %s exclude each other", mode_name(options->mode),
					 modes[i].name);
		options->mode = modes[i].mode;
	}
	return 0;
}

/* "1.5", "1.5s", "20ms", "7us", "300ns": nanoseconds. False for anything else, and for what no recording lasts. */
static bool parse_time(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "us", 1e3 }, { "ns", 1 } };
	char *end;
	double value;

	if (*text < '0' || *text > '9')
		return false;
	value = strtod(text, &end);
	for (size_t i = 0; i < kymo_countof(units); i++)
		if (!strcmp(end, units[i].name) && value * units[i].ns <= 1e18) {
			*ret = (uint64_t)(value * units[i].ns + 0.5);
			return true;
		}
	return false;
}

static int take_time(const struct cli_options *in, const char *option, bool *has_ret, uint64_t *ret)
{
	*has_ret = true;
	if (parse_time(in->value, ret))
		return 0;
	return cli_usage(in->command,
			 "%s takes a time since the first event, as 1.5, 1.5s, 20ms, 7us or 300ns: '%s' is none",
			 option, in->value);
}

/* "17,nginx" */
static int take_words(const struct cli_options *in, struct arguments *arguments, bool is_thread)
{
	char *copy = strdup(in->value), *rest, *word;

	if (!copy || !kymo_vec_push(&arguments->copies, copy)) {
		free(copy);
		return cli_fail(in->command, &kymo_error_no_memory);
	}
	for (word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		if (is_thread ? !kymo_vec_push(&arguments->threads, word) : !kymo_vec_push(&arguments->processes, word))
			return cli_fail(in->command, &kymo_error_no_memory);
	if (is_thread ? arguments->threads.n : arguments->processes.n)
		return 0;
	return cli_usage(in->command, "'%s' names no %s", in->value, is_thread ? "thread" : "process");
}

static int take_report_option(int option, const struct cli_options *in, struct arguments *arguments)
{
	struct kymo_report_options *options = &arguments->options;

	switch (option) {
	case ALL:
		options->all = true;
		return 0;
	case WALL:
		options->wall = true;
		return 0;
	case RAW:
		options->raw = true;
		return 0;
	case THREAD:
	case PROCESS:
		return take_words(in, arguments, option == THREAD);
	case PROBE:
		return kymo_vec_push(&arguments->probes, in->value) ? 0 : cli_fail(in->command, &kymo_error_no_memory);
	case FROM:
		return take_time(in, "--from", &options->filter.has_from, &options->filter.from_ns);
	case TO:
		return take_time(in, "--to", &options->filter.has_to, &options->filter.to_ns);
	case BY_THREAD:
		options->by_thread = true;
		return 0;
	case DIFF:
		arguments->before = in->value;
		return 0;
	case FUNCTION:
		options->function = in->value;
		return 0;
	case CRASH:
		arguments->crash = true;
		return 0;
	case CALLERS:
	case CALLEES:
		arguments->called = in->value;
		return take_mode(option, in, options);
	case NO_COLOR:
		options->color = false;
		return 0;
	case WIDTH:
		options->whole = false;
		if (cli_page_parse_width(in->value, &options->width))
			return 0;
		return cli_usage(in->command, "'%s' is no width: a number from %d to %d is", in->value, CLI_WIDTH_MIN,
				 CLI_WIDTH_MAX);
	default:
		return take_mode(option, in, options);
	}
}

/* Fills in options, and the directory if there is one. 0, or the exit status; -1 when help was asked for and given. */
static int parse_arguments(int argc, char **argv, struct arguments *arguments, const char **dir_ret)
{
	struct cli_options in = {
		.command = argv[0],
		.table = table,
		.n = kymo_countof(table),
		.argc = argc,
		.argv = argv,
		.at = 1,
	};
	struct kymo_report_options *options = &arguments->options;
	struct kymo_report_filter *filter = &options->filter;
	const char *dir = NULL;

	for (;;) {
		int option = cli_options_next(&in), status = 0;

		if (option == CLI_END)
			break;
		if (option == CLI_HELP)
			return -1;
		if (option == CLI_WRONG)
			return 2;
		if (option != CLI_OPERAND)
			status = take_report_option(option, &in, arguments);
		else if (dir)
			status =
				cli_usage(argv[0], "one directory at a time: '%s' is too much; --diff A B compares two",
					  in.value);
		else
			dir = in.value;
		if (status)
			return status;
	}
	if (arguments->crash && (options->mode != KYMO_REPORT_SUMMARY || arguments->before))
		return cli_usage(argv[0], "--crash is a report by itself: leave %s out",
				 arguments->before ? "--diff" : mode_name(options->mode));
	if (options->wall && options->mode != KYMO_REPORT_EVENTS)
		return cli_usage(argv[0], "--wall requires --events");
	if (options->wall && options->json)
		return cli_usage(argv[0], "--wall is for lines: with --json times are nanoseconds since 1970");
	if (options->raw && options->mode != KYMO_REPORT_EVENTS)
		return cli_usage(argv[0], "--raw requires --events");
	if (options->by_thread && options->mode != KYMO_REPORT_SUMMARY && options->mode != KYMO_REPORT_JSON)
		return cli_usage(argv[0], "--by-thread is for the summary and --json only");
	if (arguments->before &&
	    ((options->mode != KYMO_REPORT_SUMMARY && options->mode != KYMO_REPORT_JSON) || options->by_thread))
		return cli_usage(argv[0], "--diff compares summaries: it may be combined with --json, not with %s",
				 options->by_thread ? "--by-thread" : mode_name(options->mode));
	if (filter->has_from && filter->has_to && filter->from_ns > filter->to_ns)
		return cli_usage(argv[0], "--from is later than --to: nothing is between them");
	if (options->function && options->mode != KYMO_REPORT_GRAPH)
		return cli_usage(argv[0], "--function requires --graph");
	if (arguments->called)
		options->function = arguments->called;
	filter->threads = arguments->threads.items;
	filter->n_threads = arguments->threads.n;
	filter->processes = arguments->processes.items;
	filter->n_processes = arguments->processes.n;
	filter->probes = arguments->probes.items;
	filter->n_probes = arguments->probes.n;
	if (dir)
		*dir_ret = dir;
	return 0;
}

int cmd_report(int argc, char **argv)
{
	kymo_cleanup(arguments_deinit) struct arguments arguments = { .options = { .mode = KYMO_REPORT_SUMMARY } };
	struct kymo_report_options *options = &arguments.options;
	const char *dir = DEFAULT_DIR;
	struct kymo_branches_view branches;
	struct kymo_error *error;
	int status;

	cli_page_options(options);
	status = parse_arguments(argc, argv, &arguments, &dir);
	if (status)
		return status < 0 ? 0 : status;
	branches = (struct kymo_branches_view){ .unicode = options->unicode, .color = options->color };
	error = arguments.crash    ? kymo_report_crash(dir, &branches, stdout)
		: arguments.before ? kymo_report_diff(arguments.before, dir, options, stdout)
				   : kymo_report(dir, options, stdout);
	return error ? cli_fail(argv[0], error) : 0;
}
