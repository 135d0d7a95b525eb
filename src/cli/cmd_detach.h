/* The command `kymo detach`. */
#ifndef KYMO_CLI_CMD_DETACH_H
#define KYMO_CLI_CMD_DETACH_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_detach(int argc, char **argv);

#endif
