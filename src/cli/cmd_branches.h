/* kymo branches: histories of branches. */
#ifndef KYMO_CLI_CMD_BRANCHES_H
#define KYMO_CLI_CMD_BRANCHES_H

int cmd_branches(int argc, char **argv);

#endif
