/* Seizing that does not wait for ever. docs/design/engines.md, "Seizing while a thread executes". */
#ifndef KYMO_PROC_HUB_SEIZE_H
#define KYMO_PROC_HUB_SEIZE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* A thread that seizes, and what breaks its waits off. Zeroed, it has no timer. */
struct hub_seizer {
	unsigned int depth;
	bool has_timer;
	timer_t timer;
	sigset_t mask;
};

/* From here to the end, which nest, hub_seize_thread() may return -EINTR, if this process has taken the signal; sleeps may end early. On the thread that seizes, which is always the same. */
void hub_seizing_begins(struct hub_seizer *seizer);
void hub_seizing_ends(struct hub_seizer *seizer);
void hub_seizer_deinit(struct hub_seizer *seizer);

/* PTRACE_SEIZE. 0 or a negative errno. */
int hub_seize_thread(pid_t tid, unsigned long options);

#endif
