#include "report/ended.h"

#include <string.h>

const char *kymo_unended(const struct kymo_ctf_trace *trace)
{
	const char *state = kymo_ctf_trace_env(trace, KYMO_ENV_STATE);

	if (!state || strcmp(state, KYMO_STATE_RECORDING) != 0)
		return NULL;
	return "the recorder has not ended this recording: it was killed, has failed, or still records; what it had "
	       "not written is "
	       "missing after the last event";
}
