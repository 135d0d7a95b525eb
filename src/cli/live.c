#include "cli/live.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal.h"

void cli_live_init(struct cli_live *live, bool wanted)
{
	live->enabled = wanted && cli_terminal_takes_codes(STDERR_FILENO);
	live->shown = false;
}

/* Bytes of the parts of `text`, which three blanks separate, that fit; or of the first, as much as does. */
static size_t fitting(const char *text, size_t columns)
{
	size_t fits = 0;

	if (strlen(text) <= columns)
		return strlen(text);
	for (const char *at = text; (at = strstr(at, "   ")) && (size_t)(at - text) <= columns; at += 3)
		fits = (size_t)(at - text);
	return fits ? fits : columns;
}

void cli_live_show(struct cli_live *live, const char *text)
{
	int columns;

	if (!live->enabled)
		return;
	cli_terminal_size(STDERR_FILENO, &columns, NULL);
	/* The last column stays free: some terminals wrap when it is written. */
	fprintf(stderr, "\r%.*s\033[K", (int)fitting(text, columns > 1 ? (size_t)columns - 1 : 0), text);
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
