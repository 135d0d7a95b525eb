/*
 * callmany [-w] [-u PAUSE_US] N [FUNCTION]
 *
 * One thread calls FUNCTION of work.c N times and prints "FUNCTION N". The arguments follow from the number i of the
 * call, counted from 0. -w waits for a line on stdin first and for another before the end; -u sleeps after each call.
 *
 *	work_a(i, 3 * i + 7)			work_b(i, 5)
 *	work_six(i, -i, i << 32, 4, 5, 6)	work_eight(-i, i, 3, 4, 5, 6, i + 7, -8)
 *	work_redzone(i)
 */
#include "target.h"
#include "work.h"

static void call_a(long i)
{
	CHECK(work_a((int)i, 3 * i + 7) == expect_a((int)i, 3 * i + 7));
}

static void call_b(long i)
{
	CHECK(work_b(i, 5) == expect_b(i, 5));
}

static void call_six(long i)
{
	CHECK(work_six(i, -i, i << 32, 4, 5, 6) == i - 2 * i + 3 * (i << 32) + 16 + 25 + 36);
}

static void call_eight(long i)
{
	CHECK(work_eight((int)-i, i, 3, 4, 5, 6, (int)(i + 7), -8) == 18 + 10 * (i + 7) - 800);
}

static void call_redzone(long i)
{
	CHECK(work_redzone(i) == 3 * i + 10);
}

static const struct {
	const char *name;
	void (*call)(long i);
} functions[] = {
	{ "work_a", call_a },
	{ "work_b", call_b },
	{ "work_six", call_six },
	{ "work_eight", call_eight },
	{ "work_redzone", call_redzone },
};

static void (*find(const char *name))(long)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!strcmp(functions[i].name, name))
			return functions[i].call;
	}
	fprintf(stderr, "no such function: %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	int wait_first = 0, option;
	long n, pause_us = 0;
	const char *name;
	void (*call)(long);

	while ((option = getopt(argc, argv, "wu:")) != -1) {
		switch (option) {
		case 'w':
			wait_first = 1;
			break;
		case 'u':
			pause_us = number(optarg);
			break;
		default:
			return 2;
		}
	}
	if (optind == argc)
		return 2;
	n = number(argv[optind]);
	name = optind + 1 < argc ? argv[optind + 1] : "work_a";
	call = find(name);
	if (wait_first) {
		say("ready\n");
		wait_for_line();
	}
	for (long i = 0; i < n; i++) {
		call(i);
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	printf("%s %ld\n", name, n);
	fflush(stdout);
	if (wait_first)
		wait_for_line();
	return 0;
}
