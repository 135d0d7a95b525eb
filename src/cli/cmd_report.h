/* The command `kymo report`. */
#ifndef KYMO_CLI_CMD_REPORT_H
#define KYMO_CLI_CMD_REPORT_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_report(int argc, char **argv);

#endif
