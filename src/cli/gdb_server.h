/* What "kymo gdb" and kymo-gdbserver share; and the latter, which is kymo by another name. */
#ifndef KYMO_CLI_GDB_SERVER_H
#define KYMO_CLI_GDB_SERVER_H

/* The signals that end a stub end its waits: the descriptor can be read then. It can't be made: -1. */
int cli_gdb_catch_signals(void);

/* The command line of gdbserver. Returns the exit status. */
int cli_gdb_server(int argc, char **argv);

#endif
