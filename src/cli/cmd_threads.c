#include "cli/cmd_threads.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/threads.h"
#include "cli/threads_live.h"
#include "cli/threads_look.h"
#include "cli/threads_print.h"

static const struct cli_option option = { 1, 0, "json", NULL };

static int show_threads(const char *text, bool json)
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
	const char *pid;
	bool json;
	int status = cli_flag_and_process("threads", &option, argc, argv, &json, &pid);

	if (status >= 0)
		return status;
	return pid ? show_threads(pid, json) : cli_usage("threads", "which process? give a PID");
}
