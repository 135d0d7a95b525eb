#include "cli/live.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_WIDTH 80

void cli_live_init(struct cli_live *live, bool wanted)
{
	const char *terminal = getenv("TERM");

	live->enabled = wanted && isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb");
	live->shown = false;
}

static int width(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return DEFAULT_WIDTH;
	return size.ws_col;
}

void cli_live_show(struct cli_live *live, const char *text)
{
	if (!live->enabled)
		return;
	/* The last column stays free: some terminals wrap when it is written. */
	fprintf(stderr, "\r%.*s\033[K", width() - 1, text);
	fflush(stderr);
	live->shown = true;
}

void cli_live_clear(struct cli_live *live)
{
	if (!live->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	live->shown = false;
}
