/* Threads on a screen that is drawn anew. */
#ifndef KYMO_CLI_THREADS_LIVE_H
#define KYMO_CLI_THREADS_LIVE_H

struct cli_threads;

/* Draw once a second until the user, a signal or the end of the process ends it. The exit status. */
int cli_threads_live(struct cli_threads *view);

#endif
