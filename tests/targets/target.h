/*
 * What all targets share. A target computes something that it can check itself, and prints "ready" on stdout when it
 * can be attached to. At its end it prints what it did as one line of JSON, with exact counts of its own.
 */
#ifndef KYMO_TESTS_TARGET_H
#define KYMO_TESTS_TARGET_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A function to put probes on: never inlined, cloned or reasoned about by the compiler, and found by its name. */
#ifdef __clang__
#define PROBED __attribute__((noinline, visibility("default"), used))
#else
#define PROBED __attribute__((noipa, visibility("default"), used))
#endif

#define EXIT_WRONG 3 /* a result was not what it must be */

static inline void say(const char *text)
{
	size_t done = 0, size = strlen(text);

	while (done < size) {
		ssize_t n = write(STDOUT_FILENO, text + done, size - done);

		if (n < 0 && errno != EINTR)
			exit(1);
		done += n > 0 ? (size_t)n : 0;
	}
}

/* Ends the whole process: a wrong result must not be outrun by anything. */
#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			dprintf(STDERR_FILENO, "%s:%d: wrong: %s\n", __FILE__, __LINE__, #condition); \
			_exit(EXIT_WRONG); \
		} \
	} while (0)

/* The number in `text`, or the end of the program. */
static inline long number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 0);

	if (end == text || *end) {
		fprintf(stderr, "not a number: %s\n", text);
		exit(2);
	}
	return n;
}

/* Waits for a line on stdin (or its end): how a test says "go on". */
static inline void wait_for_line(void)
{
	char c = 0;

	while (c != '\n') {
		ssize_t n = read(STDIN_FILENO, &c, 1);

		if (n == 0 || (n < 0 && errno != EINTR))
			return;
	}
}

#endif
