/* The command `kymo snapshot`. */
#ifndef KYMO_CLI_CMD_SNAPSHOT_H
#define KYMO_CLI_CMD_SNAPSHOT_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_snapshot(int argc, char **argv);

#endif
