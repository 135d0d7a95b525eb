/* The signals by which a user ends what kymo does. */
#ifndef KYMO_CLI_SIGNALS_H
#define KYMO_CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/*
 * Have `react` called, in their handler, for all signals from outside whose default action ends a process: SIGINT,
 * SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGALRM, those of real time and their like. What is ignored stays so, for the
 * command too (nohup, the background of a script), but for an interrupt without a command. With `launches`, an
 * interrupt from the terminal reaches the command, too, and it is the command's to end by it: it is not told, the first
 * time. `flags`: SA_RESTART or 0.
 */
void cli_catch_signals(bool launches, int flags, void (*react)(int number));

/* The signals that cli_catch_signals() catches. */
void cli_ending_signals(bool launches, sigset_t *ret);

/* The command has ended: an interrupt has no other use now. */
void cli_signals_are_ours(void);

/* The last one that was told, or 0. */
int cli_last_signal(void);

/* It has been heeded: 0 from here on, until the next one. */
void cli_forget_signals(void);

#endif
