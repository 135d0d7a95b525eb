#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/large.h"
#include "cli/cmd_branches.h"
#include "cli/cmd_detach.h"
#include "cli/cmd_explain.h"
#include "cli/cmd_gdb.h"
#include "cli/cmd_list.h"
#include "cli/cmd_record.h"
#include "cli/cmd_report.h"
#include "cli/cmd_snapshot.h"
#include "cli/cmd_status.h"
#include "cli/cmd_syscalls.h"
#include "cli/cmd_threads.h"
#include "cli/cmd_top.h"
#include "cli/debug_files.h"
#include "cli/gdb_server.h"
#include "cli/help.h"
#include "cli/modules.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/types.h"
#include "hub/thread/seize.h"

static int cmd_help(int argc, char **argv);

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{ "record", cmd_record, "put probes into a command or a running process, and record" },
	{ "top", cmd_top, "count what a command or a process does, by keys, while it runs" },
	{ "report", cmd_report, "show what was recorded" },
	{ "branches", cmd_branches, "show how threads got where they are, branch by branch" },
	{ "syscalls", cmd_syscalls, "show the system calls of a command or a running process, one a line" },
	{ "threads", cmd_threads, "show the threads of a process: what they do, where they sleep, what traces them" },
	{ "gdb", cmd_gdb, "let gdb debug a command or a running process, by its remote protocol" },
	{ "list", cmd_list, "list the functions that can be probed" },
	{ "explain", cmd_explain, "show how a probe would be put at a location, and why that is safe" },
	{ "status", cmd_status, "show which processes are being recorded" },
	{ "snapshot", cmd_snapshot, "save what a flight recorder has so far, and let it go on" },
	{ "detach", cmd_detach, "take all kymo probes out of a process" },
	{ "help", cmd_help, "show help for a command" },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < kymo_countof(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void print_overview(FILE *out)
{
	fputs("kymo puts probes into running programs and records what they do.\n\nusage: kymo COMMAND [OPTION...]\n\n",
	      out);
	for (size_t i = 0; i < kymo_countof(commands); i++)
		fprintf(out, "  %-9s%s\n", commands[i].name, commands[i].summary);
	fputs("\n"
	      "  kymo record -p 'libc:malloc size=%di' -- ls     run ls and record its calls of malloc\n"
	      "  kymo report                                     show them\n"
	      "\n"
	      "'kymo help COMMAND' tells more, 'kymo help probes' and 'kymo help aggregations' how these are written,\n"
	      "'kymo --version' the version.\n",
	      out);
}

static int unknown(const char *name)
{
	const char *names[kymo_countof(commands)], *near;

	for (size_t i = 0; i < kymo_countof(commands); i++)
		names[i] = commands[i].name;
	near = cli_nearest(name, names, kymo_countof(names));
	if (near)
		return cli_usage(NULL, "there is no command '%s'; did you mean '%s'?", name, near);
	return cli_usage(NULL, "there is no command '%s'", name);
}

static int cmd_help(int argc, char **argv)
{
	const char *text;

	if (argc > 2)
		return cli_usage(NULL, "one command at a time: '%s' is too much", argv[2]);
	if (argc < 2 || !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_overview(stdout);
		return 0;
	}
	text = cli_help(argv[1]);
	if (!text)
		return unknown(argv[1]);
	fputs(text, stdout);
	return 0;
}

static int run_command(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_overview(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return cmd_help(argc - 1, argv + 1);
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("kymo " KYMO_VERSION);
		return 0;
	}
	if (argv[1][0] == '-')
		return cli_usage(NULL,
				 "there is no option '%s' before the command; options of a command follow its name",
				 argv[1]);
	command = find_command(argv[1]);
	if (!command)
		return unknown(argv[1]);
	if (argc == 3 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h")))
		return cmd_help(argc - 1, argv);
	kymo_take_seize_signal();
	return command->run(argc - 1, argv + 1);
}

/* The name that it was installed under, too. */
static bool is_gdb_server(const char *path)
{
	return path && !strcmp(basename(path), "kymo-gdbserver");
}

int main(int argc, char **argv)
{
	int status;

	kymo_large_heap();
	status = is_gdb_server(argv[0]) ? cli_gdb_server(argc, argv) : run_command(argc, argv);

	cli_types_deinit();
	cli_debug_files_deinit();
	cli_modules_close();
	/* Output that did not arrive (a full disk) is a failure, also where it was only noticed now. */
	if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE && !status) {
		fprintf(stderr, "kymo: cannot write the output: %s\n", strerror(errno));
		return 1;
	}
	return status;
}
