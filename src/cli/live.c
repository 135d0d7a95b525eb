#include "cli/live.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/terminal.h"

void cli_live_init(struct cli_live *live, bool wanted)
{
	live->enabled = wanted && cli_terminal_takes_codes(STDERR_FILENO);
	live->shown = false;
}

void cli_live_show(struct cli_live *live, const char *text)
{
	int columns;

	if (!live->enabled)
		return;
	cli_terminal_size(STDERR_FILENO, &columns, NULL);
	/* The last column stays free: some terminals wrap when it is written. */
	fprintf(stderr, "\r%.*s\033[K", columns - 1, text);
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
