/*
 * One line on stderr that is drawn again in place. Nothing is written where stderr is no terminal that can do it.
 */
#ifndef KYMO_CLI_LIVE_H
#define KYMO_CLI_LIVE_H

#include <stdbool.h>

struct cli_live {
	bool enabled;
	bool shown;
};

void cli_live_init(struct cli_live *live, bool wanted);

/* Show `text` (ASCII), cut to the terminal's width. */
void cli_live_show(struct cli_live *live, const char *text);

/* Leave an empty line with the cursor at its start. */
void cli_live_clear(struct cli_live *live);

#endif
