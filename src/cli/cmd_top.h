/* The command `kymo top`. */
#ifndef KYMO_CLI_CMD_TOP_H
#define KYMO_CLI_CMD_TOP_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_top(int argc, char **argv);

#endif
