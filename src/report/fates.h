/*
 * When calls return, known before they are taken in.
 *
 * A trace that is read in the order of time does not say, at a call's entry, on which stack it is: arrays in main()'s
 * frame may be stacks of coroutines. Where a guess was wrong (a call that was taken for over has returned:
 * `is_needed`), the trace is read once more for this, and then again for the report, by rule 4 of aggr/stacks.h.
 *
 * Memory: 4 bytes a call, up to FATES_MAX; and 32 bytes for each pair of a function and a stack pointer, up to
 * FATES_OPEN_MAX. What is beyond is not known, and taken as without it.
 */
#ifndef KYMO_REPORT_FATES_H
#define KYMO_REPORT_FATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "ctf/ctf.h"
#include "report/filter.h"
#include "report/functions.h"

#define FATES_MAX (1u << 25)
#define FATES_OPEN_MAX (1u << 20)

struct fates {
	KYMO_VEC(uint32_t) leaves; /* by entry, as struct frame has it */
	bool is_needed;
	bool is_known;
};

/* What a record is: entries and returns with a stack pointer have fates. */
enum fate_part { FATE_NONE, FATE_ENTRY, FATE_RETURN };

enum fate_part kymo_fates_part(const struct role *role, const struct kymo_ctf_record *record);

void kymo_fates_deinit(struct fates *fates);

/* Read the trace in `dir`, of which `filter` takes the records. */
struct kymo_error *kymo_fates_gather(struct fates *fates, const char *dir, struct filter *filter);

#endif
