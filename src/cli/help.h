/* Help texts: src/cli/help/TOPIC.txt, as they are shown. */
#ifndef KYMO_CLI_HELP_H
#define KYMO_CLI_HELP_H

/* The help text of a command or another topic, static; NULL where there is none. */
const char *cli_help(const char *topic);

#endif
