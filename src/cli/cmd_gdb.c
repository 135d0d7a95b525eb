#include "cli/cmd_gdb.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/gdb_server.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/worker.h"
#include "gdb/gdb.h"
#include "procfs/info.h"

enum { OPTION_PID = 1, OPTION_EXEC, OPTION_PADS, OPTION_NO_PADS, OPTION_EXIT_KILL };

static const struct cli_option table[] = {
	{ OPTION_PID, 'p', "pid", "PID" },          { OPTION_EXEC, 0, "exec-gdb", NULL },
	{ OPTION_PADS, 0, "pads", NULL },           { OPTION_NO_PADS, 0, "no-pads", NULL },
	{ OPTION_EXIT_KILL, 0, "exit-kill", NULL },
};

struct words {
	pid_t pid;
	char **command;
	enum kymo_gdb_pads pads;
	bool executes, kills_launched;
};

/* A number is no command, unless it stands after "--". */
static bool is_process(const struct cli_options *options, int option, struct words *words)
{
	return option == CLI_OPERAND && !options->only_operands && !words->pid &&
	       cli_parse_pid(options->value, &words->pid);
}

/* -1, or the exit status. */
static int read_words(int argc, char **argv, struct words *ret)
{
	struct cli_options options = {
		.command = "gdb", .table = table, .n = kymo_countof(table), .argc = argc, .argv = argv, .at = 1
	};
	struct words words = { 0 };
	int option;

	while ((option = cli_options_next(&options)) >= 0 || is_process(&options, option, &words)) {
		if (option == CLI_OPERAND)
			continue;
		if (option == OPTION_EXEC)
			words.executes = true;
		else if (option == OPTION_EXIT_KILL)
			words.kills_launched = true;
		else if (option == OPTION_PADS || option == OPTION_NO_PADS)
			words.pads = option == OPTION_PADS ? KYMO_GDB_PADS_ALL : KYMO_GDB_PADS_NONE;
		else if (!cli_parse_pid(options.value, &words.pid))
			return cli_usage("gdb", "'%s' is no process id", options.value);
	}
	if (option == CLI_HELP)
		return 0;
	if (option == CLI_WRONG)
		return 2;
	if (option == CLI_OPERAND)
		words.command = argv + options.at - 1;
	if (words.pid && words.command)
		return cli_usage("gdb", "either a process or a command: '%s' is too much", words.command[0]);
	if (!words.pid && !words.command)
		return cli_usage("gdb", "which process? give a PID or a command");
	if (words.kills_launched && !words.command)
		return cli_usage("gdb", "--exit-kill requires a command: process %d was not started by kymo",
				 words.pid);
	*ret = words;
	return -1;
}

static struct kymo_error *begin_stub(const struct words *words, struct kymo_gdb **ret)
{
	const struct kymo_gdb_options options = {
		.is_for_one = true, .kills_launched = words->kills_launched, .pads = words->pads, .print = cli_gdb_print
	};
	struct kymo_gdb *gdb = NULL;
	struct kymo_error *error = kymo_gdb_create(&options, &gdb);

	if (!error)
		error = words->pid ? kymo_gdb_attach(gdb, words->pid, NULL)
				   : kymo_gdb_launch(gdb, words->command, NULL);
	if (error)
		kymo_gdb_destroy(gdb);
	else
		*ret = gdb;
	return error;
}

/* One client, if there comes one before `ends_wait` can be read. Where it leaves a trace run behind, another one. */
static struct kymo_error *serve_clients(struct kymo_gdb *gdb, const struct kymo_gdb_socket *socket, int wake,
					int ends_wait)
{
	enum kymo_gdb_end end;

	do {
		int client = -1;
		struct kymo_error *error = kymo_gdb_accept(socket, ends_wait, &client, NULL, 0);

		if (error || client < 0)
			return error;
		end = kymo_gdb_serve(gdb, client, client, wake);
		close(client);
	} while (end == KYMO_GDB_TRACES && kymo_gdb_wait_for_next(gdb, socket->fd, ends_wait));
	return end == KYMO_GDB_CUT ? cli_gdb_cut() : NULL;
}

/* ---- behind this process ----------------------------------------------------------------------- */

static int serve_here(const struct words *words)
{
	struct kymo_gdb_socket socket = { .fd = -1 };
	struct kymo_gdb *gdb = NULL;
	struct kymo_error *error;
	struct cli_worker worker;
	int wake, status = cli_worker_begin(false, CLI_GDB_LOSS, &worker);

	if (status >= 0)
		return status;
	wake = cli_gdb_catch_signals(&worker);
	error = begin_stub(words, &gdb);
	cli_worker_leave_job();
	if (!error)
		error = kymo_gdb_listen_privately(&socket);
	if (!error) {
		printf("type into gdb:\n  target remote %s\n", socket.path);
		fflush(stdout);
		error = serve_clients(gdb, &socket, wake, wake);
	}
	kymo_gdb_socket_deinit(&socket);
	if (words->kills_launched && cli_worker_is_alone(&worker))
		_exit(1); /* the front was killed; the kernel kills what was launched */
	cli_gdb_leave(gdb, wake);
	return error ? cli_fail("gdb", error) : 0;
}

/* ---- beside gdb ------------------------------------------------------------------------------ */

/* What gdb and its user type is not for the program, nor are the terminal's signals for the stub. */
static void leave_terminal(void)
{
	kymo_cleanup_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setsid();
	if (null >= 0)
		dup2(null, STDIN_FILENO);
}

/* `gdb_is_there` is a pipe that hangs up when gdb has ended, or was never executed. Once it has connected, the end of
 * the connection tells that, after what it has said last. */
static int be_stub(const struct words *words, struct kymo_gdb_socket *socket, int report, int gdb_is_there)
{
	kymo_cleanup_close int ends_wait = -1;
	struct kymo_gdb *gdb = NULL;
	struct kymo_error *error;
	int wake;

	leave_terminal();
	wake = cli_gdb_catch_signals(NULL);
	error = begin_stub(words, &gdb);
	if (error) {
		kymo_write_all(report, error->message, strlen(error->message));
		kymo_error_destroy(error);
		return 1;
	}
	kymo_write_all(report, "", 1);
	close(report);
	ends_wait = cli_gdb_either(wake, gdb_is_there);
	error = serve_clients(gdb, socket, wake, ends_wait);
	kymo_error_destroy(error);
	kymo_gdb_socket_deinit(socket);
	cli_gdb_leave(gdb, wake);
	return 0;
}

static int execute_gdb(const char *path)
{
	kymo_cleanup_free char *command = NULL;

	if (asprintf(&command, "target remote %s", path) < 0)
		return cli_fail("gdb", &kymo_error_no_memory);
	execlp("gdb", "gdb", "-q", "-ex", command, (char *)NULL);
	return cli_fail("gdb", kymo_error_errno(errno, "cannot run gdb"));
}

/* gdb has the place of this process; the stub, a child of it, ends with the connection. */
static int serve_beside(const struct words *words)
{
	struct kymo_gdb_socket socket;
	struct kymo_error *error = kymo_gdb_listen_privately(&socket);
	kymo_cleanup_free char *text = NULL;
	int report[2], is_there[2], status;
	size_t n = 0;
	pid_t pid;

	if (error)
		return cli_fail("gdb", error);
	if (pipe2(report, O_CLOEXEC) || pipe2(is_there, O_CLOEXEC) || (pid = fork()) < 0) {
		status = errno;
		kymo_gdb_socket_deinit(&socket);
		return cli_fail("gdb", kymo_error_errno(status, "cannot begin"));
	}
	if (!pid) {
		close(report[0]);
		close(is_there[1]);
		_exit(be_stub(words, &socket, report[1], is_there[0]));
	}
	close(report[1]);
	close(is_there[0]);
	kymo_read_fd(report[0], 4096, &text, &n);
	if (n == 1 && !*text) {
		close(socket.fd);
		fcntl(is_there[1], F_SETFD, 0); /* gdb has it until it ends */
		status = execute_gdb(socket.path);
		close(is_there[1]);
		waitpid(pid, NULL, 0); /* it has removed the socket */
		free(socket.path);
		free(socket.folder);
		return status;
	}
	waitpid(pid, &status, 0);
	kymo_gdb_socket_deinit(&socket);
	return cli_fail("gdb", kymo_error_create(KYMO_ERROR_FAILED, "%s", n ? text : "the stub has ended"));
}

int cmd_gdb(int argc, char **argv)
{
	struct words words;
	const int status = read_words(argc, argv, &words);

	if (status >= 0)
		return status;
	return words.executes ? serve_beside(&words) : serve_here(&words);
}
