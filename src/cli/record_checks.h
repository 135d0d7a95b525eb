/* Options of 'kymo record' that belong together, or cannot be together. */
#ifndef KYMO_CLI_RECORD_CHECKS_H
#define KYMO_CLI_RECORD_CHECKS_H

#include "cli/record_options.h"

/* Whether something ends the recording, or takes snapshots: --until. */
bool cli_record_has_conditions(const struct cli_recording *recording);

/* Of --keep, --until and what belongs to them. -1: go on; else the exit status, and a sentence was printed. */
int cli_record_check_flight_recorder(struct cli_recording *recording);

/* The same of --stack. The specs whose records have the stack are told so. */
int cli_record_check_stacks(struct cli_recording *recording);

/* -1: go on; else the exit status: of probes of which not all hits are recorded. */
int cli_record_check_samples(const struct cli_recording *recording);

/* The same of probes that write registers. */
int cli_record_check_writes(const struct cli_recording *recording);

#endif
