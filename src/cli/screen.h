/*
 * The whole terminal, for a while: another screen without a cursor, and keys that come as they are typed.
 *
 * It is given back whatever ends this process. A process of its own, the guard, holds the other end of a pipe: where
 * that is closed without a word, the guard gives the terminal back.
 */
#ifndef KYMO_CLI_SCREEN_H
#define KYMO_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

struct cli_screen {
	bool is_entered;
	bool has_keys; /* stdin is a terminal, too */
	struct termios before;
	pid_t guard;
	int to_guard;
};

/* On stdout, if that is a terminal that takes codes. False where there can be no guard: nothing was changed then. */
bool cli_screen_enter(struct cli_screen *screen);

/* Again and again is fine. */
void cli_screen_leave(struct cli_screen *screen);

/* Show `text` (whole lines), cut to the screen's size. */
void cli_screen_draw(const char *text, size_t size);

#endif
