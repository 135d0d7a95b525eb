/* Help texts. */
#ifndef KYMO_CLI_HELP_H
#define KYMO_CLI_HELP_H

/* The help text of a command, static; NULL where there is no such command. */
const char *cli_help(const char *command);

#endif
