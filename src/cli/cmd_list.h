/* The command `kymo list`. */
#ifndef KYMO_CLI_CMD_LIST_H
#define KYMO_CLI_CMD_LIST_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_list(int argc, char **argv);

#endif
