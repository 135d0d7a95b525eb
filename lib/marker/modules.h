/*
 * Which modules with markers are loaded, and how a change begins and ends. Private to the library.
 */
#ifndef KYMO_LIB_MODULES_H
#define KYMO_LIB_MODULES_H

#include "notes.h"

/* A module with notes, as it was found without the lock. */
struct lib_seen {
	struct lib_found found;
	const char *name; /* as the loader has it: "" is the program */
	void *pin;        /* dlopen()'s, where it had to be held; NULL where it could not be: it is not touched then */
};

struct lib_look {
	bool is_new; /* all of the following was looked up: something may have changed since the last time */
	struct lib_seen *seen;
	size_t n;
	char *names;
	unsigned long long adds, subs; /* the loader's counts then */
};

/*
 * Begin and end what changes something. kymo_lib_enter() looks for modules that have come without telling, takes the
 * lock, and puts off cancellation. kymo_lib_leave() releases it, then frees what was retired when all readers that
 * there are have ended; with `wait` it waits for them also where there is nothing to free. In a probe neither is done:
 * one of those readers is the caller.
 *
 *	-EDEADLK	enter: this thread has the lock: it is in a signal handler, or in a malloc() of the program's
 *			that passes markers
 */
int kymo_lib_enter(void);
void kymo_lib_leave(bool wait);

/* Find modules, and hold those that do not tell when they go. No lock is held. Where memory is out, the look finds
 * nothing new. */
void kymo_lib_look_around(struct lib_look *ret);

/* The lock is held: add the modules that were found, connect their markers, and forget modules that are gone. */
void kymo_lib_adopt(struct lib_look *look);

/*
 * The lock is held: modules that do not tell may not be touched any more. The caller gives the result to
 * kymo_lib_unpin() when it has released the lock: dlclose() runs destructors.
 */
struct lib_look kymo_lib_end_look(void);
void kymo_lib_unpin(struct lib_look *look);

#endif
