/* Which options of `kymo syscalls` go together. */
#include "cli/syscall_check.h"

#include <string.h>

#include "cli/output.h"
#include "cli/syscall_words.h"
#include "syscall/copies.h"

#define COMMAND "syscalls"

typedef struct cli_syscall_words words_t;

/* What the kernel's way can't do. */
static int check_kernel(words_t *words)
{
	struct kymo_strace_request *request = &words->request;

	if (words->all && words->has_backend && !words->in_kernel)
		return cli_usage(COMMAND, "--all is done through the kernel; leave --backend hub out");
	words->in_kernel |= words->all;
	request->shows_names = words->all;
	request->follows |= words->all;
	if (!words->in_kernel && request->buffer_size)
		return cli_usage(COMMAND, "--buffer is for --backend kernel and --all; without them nothing is lost");
	if (!words->in_kernel)
		return -1;
	if (request->fds || request->pids || request->paths.n)
		return cli_usage(COMMAND, "-y, -Y and -P need a stopped thread, and the kernel backend stops none: "
					  "leave them out");
	if (request->stack_traces || request->addresses)
		return cli_usage(COMMAND, "-k and -i need a stopped thread, and the kernel backend stops none: "
					  "leave them out");
	if (request->leaves_on_exec)
		return cli_usage(COMMAND,
				 "-b stops tracing a process, and the kernel backend traces none: leave it out");
	if (request->string_size > KYMO_SYSCALL_COPIED_MAX)
		return cli_usage(COMMAND, "through the kernel -s takes at most %d bytes", KYMO_SYSCALL_COPIED_MAX);
	if (!request->buffer_size)
		request->buffer_size = KYMO_STRACE_BUFFER_SIZE;
	return -1;
}

static int check_output(words_t *words)
{
	struct kymo_strace_request *request = &words->request;

	request->to_file = words->output.path;
	if (request->separately && !words->output.path) {
		cli_warn("-ff has no effect without -o FILE: all lines go to standard error");
		request->separately = false;
	}
	if (words->output.path && strchr("|!", *words->output.path)) {
		if (!words->output.path[1])
			return cli_usage(COMMAND, "-o '%c' needs the command that the lines go to after it",
					 *words->output.path);
		if (request->separately)
			return cli_usage(
				COMMAND,
				"-ff writes a file for each process, and '%s' is a command: leave one of them out",
				words->output.path);
	}
	if (request->separately && (request->counts || request->json))
		return cli_usage(
			COMMAND,
			"-ff writes the lines of each process to a file of its own: leave -c, -C and --json out");
	if (request->separately && (words->in_kernel || words->all))
		return cli_usage(COMMAND, "-ff is for what kymo traces: leave --all and --backend kernel out");
	if (words->output.appends && !words->output.path)
		return cli_usage(COMMAND, "-A appends to the file of -o, and there is none");
	return -1;
}

int cli_syscall_words_check(words_t *words)
{
	const struct kymo_strace_request *request = &words->request;
	const bool has_pids = !cli_targets_is_empty(&words->targets);
	int status;

	if (words->all && (words->command || has_pids))
		return cli_usage(COMMAND, "--all has the calls of every process: leave the command or --pid out");
	if (!words->command && !has_pids && !words->all)
		return cli_usage(COMMAND, "nothing to trace: give a command, --pid PID, or --all");
	if (words->command && has_pids)
		return cli_usage(COMMAND, "a command or --pid, not both: '%s' is too much", words->command[0]);
	if (request->hides_good && request->hides_failed && request->hides_unfinished)
		return cli_usage(COMMAND, "-z shows calls that succeed, -Z those that fail: together they show none");
	if (request->counts && !request->shows_lines &&
	    (request->durations || request->clock || request->relative_times || request->numbers ||
	     request->addresses || request->hides_good || request->hides_failed || request->fds || request->pids ||
	     request->stack_traces))
		return cli_usage(COMMAND, "-c shows a table and no lines, so -T, -t, -r, -n, -i, -y, -Y, -k, -z and -Z "
					  "have no meaning beside it; -C shows both");
	if (request->counts && request->shows_lines && request->json)
		return cli_usage(COMMAND, "--json has lines or, with -c, a table: leave -C out");
	if (request->json &&
	    (request->durations || request->clock || request->relative_times || request->numbers || request->addresses))
		return cli_usage(
			COMMAND,
			"--json has numbers and durations always, and no times: leave -T, -t, -r, -n and -i out");
	if (request->identity && !words->command)
		return cli_usage(COMMAND, "-u is for a command that kymo starts: leave --pid and --all out");
	if (request->picks && (!words->command || words->in_kernel))
		return cli_usage(COMMAND, "--seccomp-bpf is for commands that kymo starts and traces: leave --pid, "
					  "--all and --backend kernel out");
	if (request->picks && (request->for_ns || request->leaves_on_exec))
		return cli_usage(COMMAND,
				 "after %s the command runs on without a tracer, and with --seccomp-bpf it cannot: "
				 "leave one of them out",
				 request->for_ns ? "--for" : "-b");
	if (request->picks && !request->follows)
		return cli_usage(
			COMMAND,
			"with --seccomp-bpf children have the filter, too, and cannot do without a tracer: add -f");
	status = check_output(words);
	return status < 0 ? check_kernel(words) : status;
}
