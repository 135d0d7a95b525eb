/*
 * Work in a process of its own, the worker, which may outlive the one that the user has started, the front.
 * docs/internals/engines.md, "Whose process the hub is".
 *
 *     status = cli_worker_begin(launches, loss, &worker);
 *     if (status >= 0)
 *             return status;                      the front, when it is over
 *     cli_catch_signals(…); cli_worker_take_signals(&worker);
 *     …fork the command…; cli_worker_leave_job();
 *     …work, until cli_worker_is_alone() or worker.front can be read…
 *     cli_worker_dismiss(&worker, status, NULL);    if there is more to be done for others
 *     return status;                              is the front's, if that has none yet
 */
#ifndef KYMO_CLI_WORKER_H
#define KYMO_CLI_WORKER_H

#include <signal.h>
#include <stdbool.h>

struct cli_worker {
	int front;     /* the worker's: can be read (an end) when the front is no more. -1: this is no worker */
	sigset_t mask; /* of signals, before */
};

/* -1: this is the worker. Else this is the front, and it is over: an exit status; where that is its own, the user was
 * told why. `launches`: as of cli_catch_signals(). `loss`: what the user is told where the worker was killed. */
int cli_worker_begin(bool launches, const char *loss, struct cli_worker *ret);

/* For `loss`, where all output is of what is traced. */
#define CLI_WORKER_LOSS "what happened from there on is not shown"

/* Signals are blocked from the beginning until this. */
void cli_worker_take_signals(const struct cli_worker *worker);

/* Signals of the terminal and to the job don't reach the worker any more, but those of its children that there are. */
void cli_worker_leave_job(void);

bool cli_worker_is_alone(const struct cli_worker *worker);

/* Let go of all that is the user's, and then of the front, which ends with `status`, and says `sentence` before, if
 * there is one. What the worker writes to the standard streams goes nowhere from then on. */
void cli_worker_dismiss(struct cli_worker *worker, int status, const char *sentence);

#endif
