#include "cli/threads_live.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/threads.h"
#include "cli/threads_look.h"
#include "cli/threads_print.h"

#define PERIOD_NS 1000000000ull

enum { GO_ON = -1, DRAW = -2 }; /* or an exit status */

/* Signals that end it, unless they were ignored when it was started, and signals that change the terminal. */
static int catch_signals(sigset_t *ret)
{
	static const int others[] = { SIGTSTP, SIGCONT, SIGWINCH };

	cli_ending_signals(true, ret);
	for (size_t i = 0; i < kymo_countof(others); i++)
		sigaddset(ret, others[i]);
	sigprocmask(SIG_BLOCK, ret, NULL);
	return signalfd(-1, ret, SFD_CLOEXEC);
}

static void draw(struct cli_threads *view)
{
	char *text = NULL;
	size_t size = 0;
	int columns, rows;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	cli_terminal_size(STDOUT_FILENO, &columns, &rows);
	cli_threads_print(view, out, rows);
	if (!fclose(out))
		cli_screen_draw(text, size);
	free(text);
}

/* It stops here, unless no shell waits for that: there the kernel ignores it. */
static int stop_for_shell(struct cli_screen *screen)
{
	sigset_t set;

	cli_screen_leave(screen);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return cli_screen_enter(screen) ? DRAW : 1;
}

static int take_signal(struct cli_screen *screen, int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return GO_ON;
	switch (info.ssi_signo) {
	case SIGINT:
		return 0;
	case SIGWINCH:
		return DRAW;
	case SIGTSTP:
		return stop_for_shell(screen);
	case SIGCONT: /* the shell has had the terminal meanwhile */
		cli_screen_leave(screen);
		return cli_screen_enter(screen) ? DRAW : 1;
	}
	return 128 + (int)info.ssi_signo;
}

static int take_key(void)
{
	char key;
	ssize_t n = read(STDIN_FILENO, &key, 1);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return GO_ON;
	return n <= 0 || key == 'q' || key == 'Q' ? 0 : GO_ON;
}

/* Until the next look is due. */
static int wait_for_user(struct cli_screen *screen, int signals, uint64_t until_ns)
{
	struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
				{ .fd = screen->has_keys ? STDIN_FILENO : -1, .events = POLLIN } };

	for (;;) {
		const uint64_t now = kymo_now_ns();
		int what = GO_ON;

		if (now >= until_ns)
			return GO_ON;
		if (poll(fds, kymo_countof(fds), (int)((until_ns - now) / 1000000 + 1)) <= 0)
			continue;
		if (fds[0].revents)
			what = take_signal(screen, signals);
		else if (fds[1].revents)
			what = take_key();
		if (what != GO_ON)
			return what;
	}
}

static int watch_keys(struct cli_threads *view, struct cli_screen *screen, int signals, struct kymo_error **error_ret)
{
	const pid_t pid = view->pid;
	int what = GO_ON;

	while (what == GO_ON) {
		const uint64_t until_ns = kymo_now_ns() + PERIOD_NS;

		do {
			draw(view);
			what = wait_for_user(screen, signals, until_ns);
		} while (what == DRAW);
		if (what == GO_ON)
			*error_ret = cli_threads_look(view, pid);
		if (*error_ret)
			what = 0;
	}
	return what;
}

int cli_threads_live(struct cli_threads *view)
{
	struct cli_screen screen = { 0 };
	struct kymo_error *error = NULL;
	const pid_t pid = view->pid;
	sigset_t caught;
	kymo_cleanup_close int signals = catch_signals(&caught);
	int status;

	if (signals < 0 || !cli_screen_enter(&screen))
		return cli_fail("threads", kymo_error_errno(errno, "cannot take the terminal"));
	status = watch_keys(view, &screen, signals, &error);
	cli_screen_leave(&screen);
	if (error && error->code == KYMO_ERROR_GONE) {
		fprintf(stderr, "kymo: process %d has ended\n", pid);
		kymo_error_destroy(error);
	} else if (error) {
		return cli_fail("threads", error);
	}
	return status;
}
