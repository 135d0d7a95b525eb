#include "cli/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/terminal.h"

static const char enter[] = "\033[?1049h\033[?25l", leave[] = "\033[?25h\033[?1049l";

static void give_back(const struct cli_screen *screen)
{
	kymo_write_all(STDOUT_FILENO, leave, sizeof(leave) - 1);
	if (screen->has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
}

/* In a session of its own no signal of the terminal reaches it, and the terminal lets it change things from the
 * background. */
static void __attribute__((noreturn)) be_guard(const struct cli_screen *screen, int from_owner)
{
	ssize_t n;
	char byte;

	setsid();
	dup2(from_owner, STDERR_FILENO);
	close_range(STDERR_FILENO + 1, ~0u, 0);
	do
		n = read(STDERR_FILENO, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		give_back(screen);
	_exit(0);
}

static bool start_guard(struct cli_screen *screen)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return false;
	screen->guard = fork();
	if (!screen->guard)
		be_guard(screen, ends[0]);
	close(ends[0]);
	if (screen->guard < 0) {
		close(ends[1]);
		return false;
	}
	screen->to_guard = ends[1];
	return true;
}

bool cli_screen_enter(struct cli_screen *screen)
{
	struct termios keys;

	screen->has_keys = !tcgetattr(STDIN_FILENO, &screen->before);
	if (!start_guard(screen))
		return false;
	screen->is_entered = true;
	if (screen->has_keys) {
		keys = screen->before;
		keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		keys.c_cc[VMIN] = 1;
		keys.c_cc[VTIME] = 0;
		tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
	}
	kymo_write_all(STDOUT_FILENO, enter, sizeof(enter) - 1);
	return true;
}

void cli_screen_leave(struct cli_screen *screen)
{
	if (!screen->is_entered)
		return;
	give_back(screen);
	kymo_write_all(screen->to_guard, "", 1);
	close(screen->to_guard);
	while (waitpid(screen->guard, NULL, 0) < 0 && errno == EINTR)
		;
	screen->is_entered = false;
}

/* How many bytes of a line fit: all columns but the last, as some terminals wrap when that is written. Each character
 * counts as one column. */
static size_t fitting(const char *line, size_t size, int columns)
{
	int n = 0;

	for (size_t i = 0; i < size; i++)
		if (((unsigned char)line[i] & 0xc0) != 0x80 && ++n == columns)
			return i;
	return size;
}

void cli_screen_draw(const char *text, size_t size)
{
	const char *end = text + size;
	char *frame = NULL;
	size_t n = 0;
	int columns, rows;
	FILE *out = open_memstream(&frame, &n);

	if (!out)
		return;
	cli_terminal_size(STDOUT_FILENO, &columns, &rows);
	fputs("\033[H", out);
	for (int row = 0; row < rows && text < end; row++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text)), *to = newline ? newline : end;

		if (row)
			fputs("\r\n", out);
		fwrite(text, 1, fitting(text, (size_t)(to - text), columns), out);
		fputs("\033[K", out);
		text = to + 1;
	}
	fputs("\033[J", out);
	if (!fclose(out))
		kymo_write_all(STDOUT_FILENO, frame, n);
	free(frame);
}
