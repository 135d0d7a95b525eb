/*
 * sigrate [-a] [-i INTERVAL_US] [-n ROUNDS]
 *
 * Calls the functions of work.c without a pause while a timer sends SIGALRM every INTERVAL_US (100) microseconds; the
 * handler calls them too, and all results are checked. -a: the handler runs on a stack of its own. Ends after ROUNDS,
 * or by SIGTERM. Prints how often each function was called, and how many signals came.
 */
#include <signal.h>
#include <sys/time.h>

#include "target.h"
#include "work.h"

static _Atomic uint64_t calls_a, calls_b, calls_redzone, calls_signal;
static atomic_bool stop;

static void call_all(unsigned int i)
{
	long x = (long)i * 0x123456789l;

	CHECK(work_a((int)i, x) == expect_a((int)i, x));
	calls_a++;
	CHECK(work_b(x, (int)(i % 7)) == expect_b(x, (int)(i % 7)));
	calls_b++;
	CHECK(work_redzone(x) == 3 * x + 10);
	calls_redzone++;
}

static void on_alarm(int number_of_signal)
{
	static unsigned int i;
	int saved = errno;

	CHECK(work_signal(number_of_signal) == (number_of_signal ^ 0x5a5a));
	calls_signal++;
	call_all(++i);
	errno = saved;
}

static void on_term(int number_of_signal)
{
	stop = 1;
}

static void use_own_stack(void)
{
	static char memory[64 << 10] __attribute__((aligned(64)));
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };

	CHECK(sigaltstack(&stack, NULL) == 0);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART }, term = { .sa_handler = on_term };
	struct itimerval timer = { { 0, 100 }, { 0, 100 } };
	long rounds = 0;
	int option;

	while ((option = getopt(argc, argv, "ai:n:")) != -1) {
		switch (option) {
		case 'a':
			action.sa_flags |= SA_ONSTACK;
			use_own_stack();
			break;
		case 'i':
			timer.it_interval.tv_usec = timer.it_value.tv_usec = number(optarg);
			break;
		case 'n':
			rounds = number(optarg);
			break;
		default:
			return 2;
		}
	}
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGTERM, &term, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	say("ready\n");
	for (unsigned int i = 0; !stop && (!rounds || i < (unsigned long)rounds); i++)
		call_all(i);
	timer.it_value.tv_usec = timer.it_interval.tv_usec = 0;
	setitimer(ITIMER_REAL, &timer, NULL);
	printf("{\"work_a\": %lu, \"work_b\": %lu, \"work_redzone\": %lu, \"work_signal\": %lu}\n", calls_a, calls_b,
	       calls_redzone, calls_signal);
	return 0;
}
