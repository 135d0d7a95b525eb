/*
 * A signal that a thread sends to itself for one engine, by code that this engine has put into the program. No other
 * engine is told of the signal, nor of the system call that sends it, and the program does not get it.
 */
#ifndef KYMO_HUB_OWN_SIGNAL_H
#define KYMO_HUB_OWN_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kymo_engine;
struct kymo_hub;
struct task;

/*
 * The engine's thread will be told of `signal` when it is at `at`, the address after the system call; once, and not
 * after an exec. The engine gets a QUIESCE then, with event 0. These are for the hub's thread.
 */
void hub_own_signal_expect(struct kymo_engine *engine, int signal, uint64_t at);

/* Code was changed, or the thread was moved: it will be at `at`, if it is expected. 0: no more. */
void hub_own_signal_move(struct kymo_hub *hub, pid_t tid, uint64_t at);

/* Whether it has come since this was asked. */
bool hub_own_signal_has_come(struct kymo_engine *engine);

/* ---- for signal.c and report.c, with the lock ------------------------------------------------ */

/* Whether the signal that the thread stands before is that one. */
bool hub_own_signal_stopped(struct task *task, int signal);

/* Whether the thread stands at the system call that sends it. */
bool hub_own_signal_is_sent(const struct task *task);

/* It has executed a program. */
void hub_own_signal_forget(struct task *task);

#endif
