/* "kymo gdb". */
#ifndef KYMO_CLI_CMD_GDB_H
#define KYMO_CLI_CMD_GDB_H

int cmd_gdb(int argc, char **argv);

#endif
