#include "cli/gdb_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/numbers.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/worker.h"
#include "gdb/gdb.h"
#include "hub/thread/seize.h"

/* ---- signals --------------------------------------------------------------------------------- */

static int wake_up = -1, woken = -1;

static void on_signal(int number)
{
	kymo_write_all(wake_up, "", 1);
}

/* A handler, and not SIG_IGN, which programs that are launched would have, too. */
static void on_pipe(int number)
{
}

int cli_gdb_either(int a, int b)
{
	const int fds[] = { a, b };
	const int ret = epoll_create1(EPOLL_CLOEXEC);

	if (ret < 0)
		return fcntl(a, F_DUPFD_CLOEXEC, 0);
	for (size_t i = 0; i < kymo_countof(fds); i++)
		epoll_ctl(ret, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){ .events = EPOLLIN });
	return ret;
}

int cli_gdb_catch_signals(const struct cli_worker *worker)
{
	const struct sigaction action = { .sa_handler = on_pipe, .sa_flags = SA_RESTART };
	struct sigaction before;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -1;
	wake_up = ends[1];
	woken = ends[0];
	cli_catch_signals(false, SA_RESTART, on_signal);
	if (!sigaction(SIGPIPE, NULL, &before) && before.sa_handler == SIG_DFL)
		sigaction(SIGPIPE, &action, NULL);
	if (worker)
		cli_worker_take_signals(worker);
	return worker && worker->front >= 0 ? cli_gdb_either(woken, worker->front) : woken;
}

/* Those that have come have ended the stub alone. */
static void forget_signals(void)
{
	char byte;

	while (read(woken, &byte, 1) > 0)
		;
}

/* ---- other tracers --------------------------------------------------------------------------- */

struct kymo_error *cli_gdb_cut(void)
{
	return kymo_error_create(KYMO_ERROR_GONE,
				 "the process that traced it for this stub has ended, or has ended the "
				 "connection; the debugged process runs on");
}

void cli_gdb_leave(struct kymo_gdb *gdb, int wake)
{
	if (gdb && kymo_gdb_is_shared(gdb)) {
		fputs("kymo: other tracers have joined this one; it ends with the last of them, or by Ctrl-C\n",
		      stderr);
		forget_signals();
		kymo_gdb_serve_others(gdb, wake);
	}
	kymo_gdb_destroy(gdb);
}

/* ---- words ----------------------------------------------------------------------------------- */

struct words {
	struct kymo_gdb_options options;
	bool attaches, is_once, is_debug;
	pid_t pid;       /* of --attach */
	bool has_failed; /* … to attach */
	const char *address;
	char **command; /* of --attach: the process id */
	FILE *log;
};

static const char usage[] =
	"Usage:\tkymo-gdbserver [OPTIONS] COMM PROG [ARGS ...]\n"
	"\tkymo-gdbserver [OPTIONS] --attach COMM PID\n"
	"\tkymo-gdbserver [OPTIONS] --multi COMM\n"
	"\n"
	"COMM is HOST:PORT or PORT to listen for TCP (on loopback where no host is named),\n"
	"or '-' or 'stdio' to use the standard streams of kymo-gdbserver.\n"
	"\n"
	"Operating modes:\n"
	"  --attach              Attach to running process PID.\n"
	"  --multi               Start server without a specific program, and\n"
	"                        only quit when explicitly commanded.\n"
	"  --once                Exit after the first connection has closed.\n"
	"  --help                Print this message and then exit.\n"
	"  --version             Display version information and exit.\n"
	"\n"
	"Other options:\n"
	"  --wrapper WRAPPER --  Run WRAPPER to start new programs.\n"
	"  --disable-randomization, --no-disable-randomization\n"
	"                        Run PROG with address space randomization disabled (the default), or not.\n"
	"  --startup-with-shell, --no-startup-with-shell\n"
	"                        Accepted; PROG is executed without a shell.\n"
	"\n"
	"Debug options:\n"
	"  --debug, --remote-debug  Write the packets to stderr.\n"
	"  --debug-file=FILE        Write them to FILE.\n"
	"  --debug-format=all|none|timestamp, --event-loop-debug\n"
	"                           Accepted.\n"
	"  --disable-packet=NAME[,NAME]\n"
	"                           Answer these packets as if they were not known. Without names,\n"
	"                           list them.\n";

/* gdbserver's names and text. */
static const char disableable[] = "Disableable packets:\n"
				  "  vCont       \tAll vCont packets\n"
				  "  qC          \tQuerying the current thread\n"
				  "  qfThreadInfo\tThread listing\n"
				  "  Tthread     \tPassing the thread specifier in the T stop reply packet\n"
				  "  threads     \tAll of the above\n"
				  "  T           \tAll 'T' packets\n";

static const char *after(const char *word, const char *prefix)
{
	const size_t n = strlen(prefix);

	return strncmp(word, prefix, n) ? NULL : word + n;
}

/* The words of --wrapper, up to "--", which becomes the end. */
static int take_wrapper(struct words *words, char **argv, int at)
{
	int end = at + 1;

	while (argv[end] && strcmp(argv[end], "--"))
		end++;
	if (!argv[end] || end == at + 1) {
		fputs("Usage: kymo-gdbserver --wrapper WRAPPER -- COMM PROG\n", stderr);
		return -1;
	}
	argv[end] = NULL;
	words->options.wrapper = argv + at + 1;
	return end;
}

/* "NAME,NAME" is made of these names. Where one is not, it is told. */
static bool check_names(const char *text, const char *const *names, size_t n, const char *refusal)
{
	while (*text) {
		const size_t n_word = strcspn(text, ",");
		size_t i = 0;

		while (i < n && (strlen(names[i]) != n_word || strncmp(names[i], text, n_word)))
			i++;
		if (n_word && i == n) {
			fprintf(stderr, refusal, (int)n_word, text);
			return false;
		}
		text += n_word + (text[n_word] == ',');
	}
	return true;
}

static bool take_disabled(struct words *words, const char *text)
{
	static const char *const names[] = { "vCont", "qC", "qfThreadInfo", "Tthread", "threads", "T" };

	words->options.no_packet = text;
	if (check_names(text, names, kymo_countof(names), "Don't know how to disable \"%.*s\".\n\n"))
		return true;
	fputs(disableable, stderr);
	return false;
}

static bool take_format(const char *text)
{
	static const char *const names[] = { "all", "none", "timestamp" };

	return check_names(text, names, kymo_countof(names), "Unknown debug-format argument: \"%.*s\"\n");
}

static bool take_debug(struct words *words, const char *word)
{
	const char *file = after(word, "--debug-file=");

	if (file) {
		words->log = fopen(file, "we");
		words->is_debug = true;
		return words->log;
	}
	if (!strcmp(word, "--remote-debug") || !strcmp(word, "--debug") || after(word, "--debug="))
		return words->is_debug = true;
	return !strcmp(word, "--event-loop-debug");
}

/* One option. The index of its last word, or -1. */
static int take_server_option(struct words *words, char **argv, int at)
{
	const char *word = argv[at];

	if (!strcmp(word, "--attach"))
		words->attaches = true;
	else if (!strcmp(word, "--multi"))
		words->options.is_extended = true;
	else if (!strcmp(word, "--once"))
		words->is_once = true;
	else if (!strcmp(word, "--wrapper"))
		return take_wrapper(words, argv, at);
	else if (!strcmp(word, "--no-disable-randomization"))
		words->options.lets_randomize = true;
	else if (!strcmp(word, "--disable-randomization"))
		words->options.lets_randomize = false;
	else if (after(word, "--disable-packet="))
		return take_disabled(words, after(word, "--disable-packet=")) ? at : -1;
	else if (after(word, "--debug-format="))
		return take_format(after(word, "--debug-format=")) ? at : -1;
	else if (strcmp(word, "--startup-with-shell") && strcmp(word, "--no-startup-with-shell") &&
		 !take_debug(words, word)) {
		fprintf(stderr, "Unknown argument: %s\n", word);
		return -1;
	}
	return at;
}

/* -1, or the exit status. */
static int read_words(int argc, char **argv, struct words *words)
{
	int at = 1;

	for (; at < argc && argv[at][0] == '-' && strcmp(argv[at], "-"); at++) {
		if (!strcmp(argv[at], "--version")) {
			puts("GNU gdbserver compatible: kymo-gdbserver " KYMO_VERSION);
			return 0;
		}
		if (!strcmp(argv[at], "--help")) {
			fputs(usage, stdout);
			return 0;
		}
		if (!strcmp(argv[at], "--disable-packet")) {
			fputs(disableable, stdout);
			return 0;
		}
		if (!strcmp(argv[at], "--selftest")) {
			puts("Ran 0 unit tests, 0 failed");
			return 0;
		}
		at = take_server_option(words, argv, at);
		if (at < 0)
			return 1;
	}
	if (at < argc)
		words->address = argv[at++];
	if (at < argc && !strcmp(argv[at], "--attach")) { /* gdbserver takes it here, too */
		words->attaches = true;
		at++;
	}
	words->command = at < argc ? argv + at : NULL;
	if (!words->address || (!words->command && !words->options.is_extended) ||
	    (words->attaches &&
	     (!words->command || words->command[1] || !cli_parse_pid(words->command[0], &words->pid)))) {
		fputs(usage, stderr);
		return 1;
	}
	return -1;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void say(void *data, const char *sentence)
{
	fprintf(stderr, "%s\n", sentence);
}

void cli_gdb_print(void *data, const char *text, size_t n)
{
	fwrite(text, 1, n, stdout);
	fflush(stdout);
}

static void log_packet(void *data, char direction, const char *bytes, size_t n)
{
	const struct words *words = data;
	FILE *out = words->log ? words->log : stderr;

	fprintf(out, "[remote] %c ", direction);
	for (size_t i = 0; i < n; i++)
		if (bytes[i] >= 0x20 && bytes[i] < 0x7f)
			fputc(bytes[i], out);
		else
			fprintf(out, "\\%03o", (unsigned char)bytes[i]);
	fputc('\n', out);
	fflush(out);
}

/* ---- serving --------------------------------------------------------------------------------- */

/* The client has the standard streams; what is launched gets others. */
static struct kymo_error *serve_stdio(struct kymo_gdb *gdb, const int streams[2], int wake)
{
	fputs("Remote debugging using stdio\n", stderr);
	return kymo_gdb_serve(gdb, streams[0], streams[1], wake) == KYMO_GDB_CUT ? cli_gdb_cut() : NULL;
}

/* A run that has no client keeps the server until its process ends, with --once, too; --multi keeps it then. */
static bool serves_next(struct kymo_gdb *gdb, const struct words *words, enum kymo_gdb_end end,
			const struct kymo_gdb_socket *socket, int wake)
{
	if (end == KYMO_GDB_TRACES)
		return kymo_gdb_wait_for_next(gdb, socket->fd, wake) || (words->options.is_extended && !words->is_once);
	return end == KYMO_GDB_LEFT && !words->is_once;
}

static struct kymo_error *serve_tcp(struct kymo_gdb *gdb, const struct words *words,
				    const struct kymo_gdb_socket *socket, int wake)
{
	struct kymo_error *error = NULL;
	enum kymo_gdb_end end;
	char peer[256];

	fprintf(stderr, "Listening on port %d\n", socket->port);
	while (!error) {
		int client = -1;

		error = kymo_gdb_accept(socket, wake, &client, peer, sizeof(peer));
		if (error || client < 0)
			break;
		fprintf(stderr, "Remote debugging from host %s\n", peer);
		end = kymo_gdb_serve(gdb, client, client, wake);
		close(client);
		if (end == KYMO_GDB_CUT)
			return cli_gdb_cut();
		if (!serves_next(gdb, words, end, socket, wake))
			break;
		fputs("Remote side has terminated connection.  GDBserver will reopen the connection.\n", stderr);
		fprintf(stderr, "Listening on port %d\n", socket->port);
	}
	return error;
}

/* gdbserver looks for a program in the working directory first, and in PATH then. */
static struct kymo_error *launch_program(struct kymo_gdb *gdb, char **command)
{
	char here[PATH_MAX], *name = command[0];
	struct kymo_error *error;

	if (!strchr(name, '/') && !access(name, X_OK) && realpath(name, here))
		command[0] = here;
	error = kymo_gdb_launch(gdb, command, NULL);
	command[0] = name;
	return error;
}

static struct kymo_error *begin_server(struct kymo_gdb *gdb, struct words *words)
{
	struct kymo_error *error;

	if (!words->command)
		return NULL;
	if (!words->attaches)
		return launch_program(gdb, words->command);
	error = kymo_gdb_attach(gdb, words->pid, NULL);
	words->has_failed = error;
	return error;
}

/* Ours, and others for the rest. */
static bool take_streams(int streams[2])
{
	kymo_cleanup_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	streams[0] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	streams[1] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return null >= 0 && streams[0] >= 0 && streams[1] >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	       dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

/* Lines that scripts know from gdbserver, and what kymo knows besides. The last one says that no program was started.
 */
static int fail_server(const struct words *words, struct kymo_error *error)
{
	const bool is_missing = error->code == KYMO_ERROR_NOT_FOUND && words->command && !words->attaches;
	const bool is_wrong = error->code == KYMO_ERROR_USAGE;
	const bool is_gone = words->has_failed && kill(words->pid, 0) && errno == ESRCH;
	const int why = is_gone ? ESRCH : EPERM;

	if (words->has_failed)
		fprintf(stderr, "Cannot attach to process %d: %s (%d)\n", words->pid, strerror(why), why);
	if (!is_gone && is_wrong)
		fprintf(stderr, "kymo: %s\ntry 'kymo-gdbserver --help'\n", error->message);
	if (is_gone || is_wrong)
		kymo_error_destroy(error);
	else
		cli_fail(NULL, error);
	if (is_missing)
		fprintf(stderr, "exec: %s: not found\nDuring startup program exited with code 127.\n",
			words->command[0]);
	fputs("Exiting\n", stderr);
	return 1;
}

static bool is_by_stdio(const struct words *words)
{
	return !strcmp(words->address, "-") || !strcmp(words->address, "stdio");
}

static int serve_client(struct words *words, const struct cli_worker *worker)
{
	const bool is_stdio = is_by_stdio(words);
	int streams[2] = { -1, -1 }, wake;
	kymo_cleanup(kymo_gdb_socket_deinit) struct kymo_gdb_socket socket = { .fd = -1 };
	struct kymo_error *error = is_stdio ? NULL : kymo_gdb_listen_tcp(words->address, &socket);
	struct kymo_gdb *gdb = NULL;

	if (is_stdio)
		fputs("stdin/stdout redirected\n", stderr);
	if (is_stdio && !take_streams(streams))
		return cli_fail(NULL, kymo_error_errno(errno, "cannot use the standard streams"));
	wake = cli_gdb_catch_signals(worker);
	words->options.say = say;
	words->options.print = cli_gdb_print;
	words->options.debug = words->is_debug ? log_packet : NULL;
	words->options.data = words;
	words->options.says_no_ends = is_stdio;
	if (!error)
		error = kymo_gdb_create(&words->options, &gdb);
	if (!error)
		error = begin_server(gdb, words);
	if (words->command) /* what is started later may read the terminal */
		cli_worker_leave_job();
	if (!error && is_stdio)
		error = serve_stdio(gdb, streams, wake);
	else if (!error)
		error = serve_tcp(gdb, words, &socket, wake);
	if (!error && !is_stdio)
		fputs("GDBserver exiting\n", stderr);
	cli_gdb_leave(gdb, wake);
	return error ? fail_server(words, error) : 0;
}

int cli_gdb_server(int argc, char **argv)
{
	struct words words = { 0 };
	struct cli_worker worker;
	int status = read_words(argc, argv, &words);

	if (status < 0)
		status = cli_worker_begin(false, CLI_GDB_LOSS, &worker);
	if (status < 0) {
		kymo_take_seize_signal();
		status = serve_client(&words, &worker);
	}
	if (words.log)
		fclose(words.log);
	return status;
}
