/* What -p, -r and -m of kymo record mean. */
#ifndef KYMO_CLI_RECORD_PROBES_H
#define KYMO_CLI_RECORD_PROBES_H

#include "base/error.h"

struct cli_recording;

enum cli_probe { CLI_PROBE_ENTRY, CLI_PROBE_RETURN, CLI_PROBE_MARKER };

/*
 * Add the specs that `text` means to the recording. A line of source and an inlined function may be several locations:
 * those where the names in it mean nothing are left out with a warning, unless that are all. USAGE, NOT_FOUND.
 */
struct kymo_error *cli_add_probe(struct cli_recording *recording, const char *text, enum cli_probe kind);

#endif
