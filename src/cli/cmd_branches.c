#include "cli/cmd_branches.h"

#include <stdint.h>

#include "base/cleanup.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "report/branches.h"

#define DEFAULT_DIR "kymo.data"

enum { THREAD = 1, LAST, BEFORE, ADDRESSES, JSON, DIFF };

static const struct cli_option table[] = {
	{ THREAD, 0, "thread", "TID" },      { LAST, 0, "last", "NUMBER" }, { BEFORE, 0, "before", "EVENT" },
	{ ADDRESSES, 0, "addresses", NULL }, { JSON, 0, "json", NULL },     { DIFF, 0, "diff", "DIR" },
};

struct words {
	struct kymo_branches_view view;
	const char *before, *dir; /* `before`: what it is compared with, or NULL */
};

static int parse_option_number(const struct cli_options *in, const char *option, uint64_t most, uint64_t *ret)
{
	if (cli_parse_number(in->value, ret) && *ret && *ret <= most)
		return 0;
	return cli_usage(in->command, "%s takes a number, not '%s'", option, in->value);
}

static int take_branches_option(int option, const struct cli_options *in, struct words *words)
{
	uint64_t number = 0;
	int status;

	switch (option) {
	case THREAD:
		status = parse_option_number(in, "--thread", INT32_MAX, &number);
		words->view.thread = (int32_t)number;
		return status;
	case LAST:
		status = parse_option_number(in, "--last", UINT32_MAX, &number);
		words->view.last = (size_t)number;
		return status;
	case BEFORE:
		words->view.before = in->value;
		return 0;
	case ADDRESSES:
		words->view.addresses = true;
		return 0;
	case JSON:
		words->view.json = true;
		return 0;
	case DIFF:
		words->before = in->value;
		return 0;
	default:
		if (words->dir)
			return cli_usage(in->command,
					 "one directory at a time: '%s' is too much; --diff A B compares two",
					 in->value);
		words->dir = in->value;
		return 0;
	}
}

/* 0: go on; -1: help was given; else the exit status. */
static int read_words(int argc, char **argv, struct words *words)
{
	struct cli_options in = {
		.command = argv[0], .table = table, .n = kymo_countof(table), .argc = argc, .argv = argv, .at = 1
	};

	for (;;) {
		const int option = cli_options_next(&in);
		int status;

		if (option == CLI_END)
			break;
		if (option == CLI_HELP)
			return -1;
		if (option == CLI_WRONG)
			return 2;
		status = take_branches_option(option, &in, words);
		if (status)
			return status;
	}
	if (words->before && (words->view.json || words->view.thread || words->view.last || words->view.before))
		return cli_usage(argv[0], "--diff compares all threads, as text: leave %s out",
				 words->view.json     ? "--json"
				 : words->view.thread ? "--thread"
				 : words->view.before ? "--before"
						      : "--last");
	if (words->view.json && words->view.before)
		return cli_usage(argv[0], "--json has all branches: leave --before out");
	if (!words->dir)
		words->dir = DEFAULT_DIR;
	return 0;
}

int cmd_branches(int argc, char **argv)
{
	struct kymo_report_options page = { .width = 0 };
	struct words words = { .dir = NULL };
	struct kymo_error *error;
	bool differ = false;
	int status;

	cli_page_options(&page);
	words.view.unicode = page.unicode;
	words.view.color = page.color;
	status = read_words(argc, argv, &words);
	if (status)
		return status < 0 ? 0 : status;
	error = words.before ? kymo_report_branches_diff(words.before, words.dir, &words.view, stdout, &differ)
			     : kymo_report_branches(words.dir, &words.view, stdout);
	return error ? cli_fail(argv[0], error) : 0;
}
