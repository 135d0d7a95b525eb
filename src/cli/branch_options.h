/* Options of 'kymo record' for branches. */
#ifndef KYMO_CLI_BRANCH_OPTIONS_H
#define KYMO_CLI_BRANCH_OPTIONS_H

#include "cli/record_options.h"

/* 0, or the exit status: what is wrong was said. */
int cli_branches_add(struct cli_recording *recording, const char *text);
int cli_branches_take_source(struct cli_recording *recording, const char *text);
int cli_branches_take_tail(struct cli_recording *recording, const char *text);

/* -1: go on; else the exit status. They are recorded by themselves. */
int cli_branches_check(struct cli_recording *recording);

void cli_branches_deinit(struct cli_recording *recording);

#endif
