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
	request->look.shows_names = words->all;
	request->target.follows |= words->all;
	if (!words->in_kernel && request->target.buffer_size)
		return cli_usage(COMMAND, "--buffer is for --backend kernel and --all; without them nothing is lost");
	if (!words->in_kernel)
		return -1;
	if (request->look.fds || request->look.pids || request->which.paths.n)
		return cli_usage(COMMAND, "-y, -Y and -P need a stopped thread, and the kernel backend stops none: "
					  "leave them out");
	if (request->look.stack_traces || request->look.addresses)
		return cli_usage(COMMAND, "-k and -i need a stopped thread, and the kernel backend stops none: "
					  "leave them out");
	if (request->target.leaves_on_exec)
		return cli_usage(COMMAND,
				 "-b stops tracing a process, and the kernel backend traces none: leave it out");
	if (request->look.string_size > KYMO_SYSCALL_COPIED_MAX)
		return cli_usage(COMMAND, "through the kernel -s takes at most %d bytes", KYMO_SYSCALL_COPIED_MAX);
	if (!request->target.buffer_size)
		request->target.buffer_size = KYMO_STRACE_BUFFER_SIZE;
	return -1;
}

static int check_output(words_t *words)
{
	struct kymo_strace_request *request = &words->request;

	request->output.to_file = words->output.path;
	if (request->output.separately && !words->output.path) {
		cli_warn("-ff has no effect without -o FILE: all lines go to standard error");
		request->output.separately = false;
	}
	if (words->output.path && !*words->output.path)
		return cli_usage(COMMAND, "-o needs a file, or '|' and a command; '' is neither");
	if (words->output.path && strchr("|!", *words->output.path)) {
		if (!words->output.path[1])
			return cli_usage(COMMAND, "-o '%c' needs the command that the lines go to after it",
					 *words->output.path);
		if (request->output.separately)
			return cli_usage(
				COMMAND,
				"-ff writes a file for each process, and '%s' is a command: leave one of them out",
				words->output.path);
	}
	if (request->output.separately && (request->output.kind != KYMO_STRACE_LINES || request->look.json))
		return cli_usage(
			COMMAND,
			"-ff writes the lines of each process to a file of its own: leave -c, -C and --json out");
	if (request->output.separately && (words->in_kernel || words->all))
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
		return cli_usage(COMMAND, "nothing to trace: give a command, --pid PID, --name NAME, or --all");
	if (words->command && has_pids)
		return cli_usage(COMMAND, "a command or --pid, not both: '%s' is too much", words->command[0]);
	if (request->which.hides_good && request->which.hides_failed && request->which.hides_unfinished)
		return cli_usage(COMMAND, "-z shows calls that succeed, -Z those that fail: together they show none");
	if (request->output.kind == KYMO_STRACE_TABLE &&
	    (request->times.durations || request->times.clock || request->times.relative_times ||
	     request->look.numbers || request->look.addresses || request->which.hides_good ||
	     request->which.hides_failed || request->look.fds || request->look.pids || request->look.stack_traces))
		return cli_usage(COMMAND, "-c shows a table and no lines, so -T, -t, -r, -n, -i, -y, -Y, -k, -z and -Z "
					  "have no meaning beside it; -C shows both");
	if (request->output.kind == KYMO_STRACE_BOTH && request->look.json)
		return cli_usage(COMMAND, "--json has lines or, with -c, a table: leave -C out");
	if (request->look.json && (request->times.durations || request->times.clock || request->times.relative_times ||
				   request->look.numbers || request->look.addresses))
		return cli_usage(
			COMMAND,
			"--json has numbers and durations always, and no times: leave -T, -t, -r, -n and -i out");
	if (request->target.identity && !words->command)
		return cli_usage(COMMAND, "-u is for a command that kymo starts: leave --pid and --all out");
	if (request->target.picks && (!words->command || words->in_kernel))
		return cli_usage(COMMAND, "--seccomp-bpf is for commands that kymo starts and traces: leave --pid, "
					  "--all and --backend kernel out");
	if (request->target.picks && (request->target.for_ns || request->target.leaves_on_exec))
		return cli_usage(COMMAND,
				 "after %s the command runs on without a tracer, and with --seccomp-bpf it cannot: "
				 "leave one of them out",
				 request->target.for_ns ? "--for" : "-b");
	if (request->target.picks && !request->target.follows)
		return cli_usage(
			COMMAND,
			"with --seccomp-bpf children have the filter, too, and cannot do without a tracer: add -f");
	status = check_output(words);
	return status < 0 ? check_kernel(words) : status;
}
