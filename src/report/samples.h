/* Probes that reports name apart: those of which not all hits are recorded, so that no count is taken for that of all;
 * and those that wrote the program's registers. Private to the room. */
#ifndef KYMO_REPORT_SAMPLES_H
#define KYMO_REPORT_SAMPLES_H

#include "base/error.h"
#include "ctf/ctf.h"
#include "report/page.h"

/* A line each: "sampled: libc:malloc: one in 100 hits is recorded"; of many the first few. Before them a line
 * for each probe that writes: "written: libc:malloc: hits have changed ...". */
struct kymo_error *kymo_samples_write(const struct page *page, const struct kymo_ctf_trace *trace);

/* The same as objects, a line each. */
void kymo_samples_write_json(FILE *out, const struct kymo_ctf_trace *trace);

/* Whether there are any. */
bool kymo_trace_is_sampled(const struct kymo_ctf_trace *trace);

#endif
