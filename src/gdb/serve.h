/* A stub, and the connection to its client. A part of gdb.h. */
#ifndef KYMO_GDB_SERVE_H
#define KYMO_GDB_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct kymo_gdb;

/* Which conditions of breakpoints are evaluated in pads, in the threads, where that is possible. */
enum kymo_gdb_pads {
	KYMO_GDB_PADS_NONE,
	KYMO_GDB_PADS_WITHOUT_LOADS, /* conditions that read no memory, and so cannot fault */
	KYMO_GDB_PADS_ALL,
};

struct kymo_gdb_options {
	bool is_extended;    /* the connection outlives the process: vAttach, vRun */
	bool says_no_ends;   /* `say` is not told how processes end */
	bool is_for_one;     /* the process that it begins with is all that a client gets: no vAttach, no vRun */
	bool kills_launched; /* when the process of the stub dies by SIGKILL, so does what it has launched */
	enum kymo_gdb_pads pads;
	bool lets_randomize;   /* do not turn address space randomization off for what is launched */
	char *const *wrapper;  /* words before those of a program that is launched, which executes it; or NULL */
	const char *no_packet; /* "NAME,NAME": packets that are not used, by gdbserver's names; or NULL */
	/* What happens, for the user: "Process ./app created; pid = 7". May be NULL. */
	void (*say)(void *data, const char *sentence);
	/* Text of commands of breakpoints, where the client cannot show it. May be NULL: it is dropped. */
	void (*print)(void *data, const char *text, size_t n);
	void (*debug)(void *data, char direction, const char *bytes, size_t n); /* packets, '<' and '>'; or NULL */
	void *data;
};

/* FAILED, PERMISSION: nothing can be traced here. */
struct kymo_error *kymo_gdb_create(const struct kymo_gdb_options *options, struct kymo_gdb **ret);

/* Let go of all threads, which run on; those that stand before a signal that was not told get it. NULL is allowed. */
void kymo_gdb_destroy(struct kymo_gdb *gdb);

enum kymo_gdb_end {
	KYMO_GDB_LEFT,   /* the client has gone, the stub can serve another one */
	KYMO_GDB_TRACES, /* … and a trace run goes on, which the next client is to look at */
	KYMO_GDB_OVER,   /* there is nothing left to debug, or the client has said that this is all */
	KYMO_GDB_WOKEN,
	KYMO_GDB_CUT, /* the process by whose hub the stub has traced is gone, or has ended the connection */
};

/* After the last client. Let go of all threads. Whether other processes trace by this stub's hub, which ends for them
 * when the stub is destroyed. No other one can join from then on. */
bool kymo_gdb_is_shared(struct kymo_gdb *gdb);

/* Wait until the last of them has left, or `wake` can be read. */
void kymo_gdb_serve_others(struct kymo_gdb *gdb, int wake);

/* After KYMO_GDB_TRACES: wait for the next client, which connects to this socket. False: `wake` can be read, or the
 * last process has ended. */
bool kymo_gdb_wait_for_next(struct kymo_gdb *gdb, int socket, int wake);

/*
 * Serve one client, which writes to `in` and reads from `out`, until it is gone; or until `wake` can be read. Its first
 * packet stops all threads. A peer that sends anything else before is no client. Breakpoints are out then, and threads
 * that run have no more stops. What was attached to runs on; what was launched stays as it is.
 */
enum kymo_gdb_end kymo_gdb_serve(struct kymo_gdb *gdb, int in, int out, int wake);

#endif
