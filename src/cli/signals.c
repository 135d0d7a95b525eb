#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/cleanup.h"

static volatile sig_atomic_t is_launched, interrupts, last_signal;
static void (*tell)(int number);

/* All whose default action ends a process, and that come from outside of it. Those of real time are after them. */
static const int endings[] = { SIGINT,    SIGTERM, SIGHUP, SIGQUIT, SIGUSR1,   SIGUSR2, SIGALRM,
			       SIGVTALRM, SIGPROF, SIGIO,  SIGPWR,  SIGSTKFLT, SIGXCPU, SIGXFSZ };

static int signal_at(size_t index)
{
	return index < kymo_countof(endings) ? endings[index] : SIGRTMIN + (int)(index - kymo_countof(endings));
}

static size_t count_signals(void)
{
	return kymo_countof(endings) + (size_t)(SIGRTMAX - SIGRTMIN + 1);
}

/* Of those that reach all that the terminal runs, the first is the command's; and a limit on the size of a file comes
 * back as an error of the write as well. */
static bool is_for_others(int number, const siginfo_t *info)
{
	if (number == SIGXFSZ)
		return info->si_pid == getpid();
	return (number == SIGINT || number == SIGQUIT) && is_launched && info->si_code == SI_KERNEL && !interrupts++;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	const int err = errno;

	if (is_for_others(number, info))
		return;
	last_signal = number;
	tell(number);
	errno = err;
}

/* A signal that has a handler, such as the hub's signal to interrupt a wait, is left alone. */
static bool may_catch(int number, bool launches)
{
	struct sigaction before;

	if (sigaction(number, NULL, &before))
		return false;
	return before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && number == SIGINT && !launches);
}

void cli_ending_signals(bool launches, sigset_t *ret)
{
	sigemptyset(ret);
	for (size_t i = 0; i < count_signals(); i++)
		if (may_catch(signal_at(i), launches))
			sigaddset(ret, signal_at(i));
}

void cli_catch_signals(bool launches, int flags, void (*react)(int number))
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags };
	sigset_t set;

	tell = react;
	is_launched = launches;
	sigemptyset(&action.sa_mask);
	cli_ending_signals(launches, &set);
	for (size_t i = 0; i < count_signals(); i++)
		if (sigismember(&set, signal_at(i)) == 1)
			sigaction(signal_at(i), &action, NULL);
}

void cli_signals_are_ours(void)
{
	is_launched = 0;
}

int cli_last_signal(void)
{
	return last_signal;
}

void cli_forget_signals(void)
{
	last_signal = 0;
}
