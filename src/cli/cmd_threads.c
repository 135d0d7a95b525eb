#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/terminal.h"
#include "cli/threads.h"

enum { JSON = 1 };

static const struct cli_option table[] = {
	{ JSON, 0, "json", NULL },
};

static int show(const char *text, bool json)
{
	kymo_cleanup(cli_threads_deinit) struct cli_threads view = { 0 };
	struct kymo_error *error;
	pid_t pid;

	if (!cli_parse_pid(text, &pid))
		return cli_usage("threads", "'%s' is no process id", text);
	error = cli_threads_look(&view, pid);
	if (error)
		return cli_fail("threads", error);
	if (json)
		cli_threads_print_json(&view, stdout);
	else if (cli_terminal_takes_codes(STDOUT_FILENO))
		return cli_threads_live(&view);
	else
		cli_threads_print(&view, stdout, 0);
	return 0;
}

int cmd_threads(int argc, char **argv)
{
	struct cli_options options = { "threads", table, kymo_countof(table), argc, argv, .at = 1 };
	const char *pid = NULL;
	bool json = false;

	for (;;) {
		switch (cli_options_next(&options)) {
		case JSON:
			json = true;
			break;
		case CLI_OPERAND:
			if (pid)
				return cli_usage("threads", "one process at a time: '%s' is too much", options.value);
			pid = options.value;
			break;
		case CLI_END:
			return pid ? show(pid, json) : cli_usage("threads", "whose threads? give a process id");
		case CLI_HELP:
			return 0;
		default:
			return 2;
		}
	}
}
