#include "cli/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include "base/cleanup.h"

static volatile sig_atomic_t is_launched, interrupts, last_signal;
static void (*tell)(int number);

static void on_signal(int number, siginfo_t *info, void *context)
{
	const int err = errno;

	if (number == SIGINT && is_launched && info->si_code == SI_KERNEL && !interrupts++)
		return;
	last_signal = number;
	tell(number);
	errno = err;
}

void cli_catch_signals(bool launches, int flags, void (*react)(int number))
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags }, before;

	tell = react;
	is_launched = launches;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < kymo_countof(numbers); i++)
		if (!sigaction(numbers[i], NULL, &before) && (before.sa_handler != SIG_IGN || (!launches && numbers[i] == SIGINT)))
			sigaction(numbers[i], &action, NULL);
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
