/*
 * The kernel sends a SIGCHLD for each stop. The signal stays pending, as it is blocked in a tree. A thread that has let
 * another thread go on, or has found nothing, sleeps until a SIGCHLD is pending. One signal may stand for two stops:
 * after it, the thread looks until it finds nothing, or until a sleep was in vain.
 *
 * The first sleep is a wait for children, which ends sooner and leaves the signal pending. But such a wait ends at once
 * while some status is left unread, as that of a thread that is kept for its maker. And it does not end for a client's
 * request, which is heard when the sleep is over.
 *
 * hub_doze() may take a signal for which the tree's poll() waits. Then hub->sleep.owes_signal is set until all stops
 * have been looked at.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/backoff.h"
#include "hub/doze.h"
#include "hub/state.h"
#include "hub/thread/request.h"
#include "hub/thread/seize.h"

#define DOZE_NS 1000000

bool hub_gets_signals(const struct kymo_hub *hub)
{
	return hub->is_here && hub->waits_for_any && hub_is_own_thread(hub);
}

bool hub_doze(struct kymo_hub *hub, pid_t tid, unsigned int spins)
{
	struct timespec moment = { 0, DOZE_NS };
	sigset_t child;
	int err;

	if (!hub_gets_signals(hub)) {
		kymo_back_off(spins);
		return true;
	}
	if (hub->statuses.early.n)
		return true;
	err = spins || hub->sleep.is_woken ? -EAGAIN : hub_sleep_for_stop(&hub->seizer, tid, DOZE_NS);
	if (!err)
		return true;
	if (err == -EINTR)
		moment.tv_nsec = 0;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigtimedwait(&child, NULL, &moment) != SIGCHLD)
		return false;
	hub->sleep.owes_signal = true;
	return true;
}

void hub_dozes_end(struct kymo_hub *hub)
{
	hub_sleeps_end(&hub->seizer);
	if (hub->sleep.owes_signal)
		tgkill(getpid(), hub->tid, SIGCHLD);
	hub->sleep.owes_signal = false;
}

void hub_signal_is_dealt_with(struct kymo_hub *hub)
{
	hub->sleep.owes_signal = false;
}
