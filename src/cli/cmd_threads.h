/* The command `kymo threads`. */
#ifndef KYMO_CLI_CMD_THREADS_H
#define KYMO_CLI_CMD_THREADS_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_threads(int argc, char **argv);

#endif
