/* A recording, which the files of this room share, from its beginning to its end. */
#ifndef KYMO_RECORD_RECORDING_H
#define KYMO_RECORD_RECORDING_H

#include "base/error.h"
#include "record/output.h"
#include "record/record.h"
#include "record/run.h"
#include "record/wanted.h"
#include "record/warnings.h"

struct recording {
	struct recording_wanted wanted;
	struct recording_run run;
	struct recording_output output;
	struct recording_warnings warnings;
	struct kymo_record_result result;
};

/* `ret` is to be destroyed in any case. NO_MEMORY. */
struct kymo_error *recording_init(const struct kymo_record_options *options, struct recording *ret);

/* Let go of all processes and of what they share with this one. Output stays, and the recording is to be destroyed. */
void recording_end_run(struct recording *recording);

/* All that is still held is let go. */
void recording_deinit(struct recording *recording);

/* After an attempt that was refused: the same is asked for, in another way. A directory that was made stays. */
struct kymo_error *recording_begin_anew(struct recording *recording, enum kymo_record_backend backend);

/* Before its first instruction a command whose recording failed is ended; afterwards it runs on. */
void recording_end_command(struct recording *recording);

#endif
