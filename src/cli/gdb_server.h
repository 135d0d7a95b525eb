/* What "kymo gdb" and kymo-gdbserver share; and the latter, which is kymo by another name. */
#ifndef KYMO_CLI_GDB_SERVER_H
#define KYMO_CLI_GDB_SERVER_H

#include <stddef.h>

struct cli_worker;
struct kymo_error;
struct kymo_gdb;

/* The signals that end a stub end its waits, and so does the end of a worker's front (NULL: this is no worker): the
 * descriptor can be read then. It can't be made: -1. */
int cli_gdb_catch_signals(const struct cli_worker *worker);

/* What is lost when the process that traces is killed. */
#define CLI_GDB_LOSS "gdb has no connection any more"

/* Can be read when either can, or has been hung up. */
int cli_gdb_either(int a, int b);

/* The sentence for KYMO_GDB_CUT. */
struct kymo_error *cli_gdb_cut(void);

/* Destroy a stub (NULL is allowed) after its last client. If other tracers have joined it, wait until they have left,
 * or for a signal: `wake` is what cli_gdb_catch_signals() has made. */
void cli_gdb_leave(struct kymo_gdb *gdb, int wake);

/* Standard output, as gdbserver has it: struct kymo_gdb_options.print. */
void cli_gdb_print(void *data, const char *text, size_t n);

/* The command line of gdbserver. Returns the exit status. */
int cli_gdb_server(int argc, char **argv);

#endif
