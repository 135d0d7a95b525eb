/* Records, losses and damage as JSON, an object a line; kymo-report(1) documents their members. */
#ifndef KYMO_REPORT_EVENT_JSON_H
#define KYMO_REPORT_EVENT_JSON_H

#include "ctf/ctf.h"
#include "report/frames.h"
#include "report/losses.h"
#include "report/page.h"
#include "report/threads.h"

/* The beginning of an object: what it is, of which thread, when. The rest of its members and the brace are the
 * caller's. */
void kymo_event_json_begin(FILE *out, const char *what, const struct thread *thread, uint64_t wall_ns);

/* With `raw` the stack pointer is among the arguments. `rows` are for the stack. */
void kymo_event_json_record(FILE *out, const struct kymo_ctf_trace *trace, const struct thread *thread,
			    const char *name, const struct kymo_ctf_record *record, const struct kymo_frame_tree *rows,
			    bool raw);

/* A stack by the number of its innermost frame, as an array of frames, that one first. */
void kymo_stack_json(FILE *out, const struct kymo_frame_tree *rows, uint64_t number);

void kymo_event_json_loss(FILE *out, const struct kymo_ctf_trace *trace, const struct kymo_ctf_loss *loss);

/* At the end, as kymo_lines_finish(). */
void kymo_event_json_finish(FILE *out, const struct kymo_ctf_reader *reader, const struct loss_total *written);

#endif
