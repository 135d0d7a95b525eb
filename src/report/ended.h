/* Whether a recording was ended in order. */
#ifndef KYMO_REPORT_ENDED_H
#define KYMO_REPORT_ENDED_H

#include "ctf/ctf.h"

/* A sentence where the recorder has not ended the recording, which is kept for the trace's life or longer; NULL where
 * it has, or the trace does not tell. */
const char *kymo_unended(const struct kymo_ctf_trace *trace);

#endif
