/*
 * The kernel sends a SIGCHLD for each stop, and it stays pending while it is blocked, as it is in a tree. So the thread
 * that has let another one go, or has looked and found nothing, sleeps until there is one. Two stops may be told by one
 * signal: after it, the thread looks until it finds nothing, or sleeps for a moment in vain.
 *
 * hub_doze() takes a signal for which the tree's poll() waits, too. hub->owes_signal says that it did, until all stops
 * have been looked at.
 */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/backoff.h"
#include "hub/doze.h"
#include "hub/state.h"
#include "hub/thread/request.h"

#define DOZE_NS 1000000

bool hub_gets_signals(const struct kymo_hub *hub)
{
	return hub->is_here && hub->waits_for_any && hub_is_own_thread(hub);
}

bool hub_doze(struct kymo_hub *hub, unsigned int spins)
{
	const struct timespec moment = { 0, DOZE_NS };
	sigset_t child;

	if (!hub_gets_signals(hub)) {
		kymo_back_off(spins);
		return true;
	}
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigtimedwait(&child, NULL, &moment) != SIGCHLD)
		return false;
	hub->owes_signal = true;
	return true;
}

void hub_return_signal(struct kymo_hub *hub)
{
	if (hub->owes_signal)
		tgkill(getpid(), hub->tid, SIGCHLD);
	hub->owes_signal = false;
}

void hub_signal_is_dealt_with(struct kymo_hub *hub)
{
	hub->owes_signal = false;
}
