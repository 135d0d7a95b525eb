/* The command `kymo explain`. */
#ifndef KYMO_CLI_CMD_EXPLAIN_H
#define KYMO_CLI_CMD_EXPLAIN_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_explain(int argc, char **argv);

#endif
