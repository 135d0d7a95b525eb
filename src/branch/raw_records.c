#include "branch/raw_records.h"

#include "arch/step.h"
#include "branch/branch.h"
#include "branch/raw.h"
#include "branch/step_kind.h"

#define STRAIGHT_MAX 65536u /* bytes that a thread executes from one branch to the next without taking one */

static bool is_kernels(uint64_t address)
{
	return address >> 63;
}

static void tell(const struct branch_raw_records *records, enum kymo_branch_kind kind, uint64_t from, uint64_t to,
		 bool is_gap)
{
	const struct kymo_branch branch = { .from = from, .to = to, .kind = (uint8_t)kind };

	records->raw->is_taken(&branch, is_gap, records->raw->data);
}

/* By the instruction. A processor tells branches alone, so what can't be read has jumped at least. */
static enum kymo_branch_kind kind_of(const struct branch_raw_records *records, uint64_t from, uint8_t *length_ret)
{
	uint8_t bytes[KYMO_STEP_BYTES];
	const size_t n = records->raw->read(from, bytes, sizeof(bytes), records->raw->data);
	struct kymo_step step;

	*length_ret = 0;
	if (!n || kymo_step_of(bytes, n, &step))
		return KYMO_BRANCH_JUMP;
	*length_ret = step.length;
	return branch_step_kind(&step);
}

static void note(struct branch_raw_records *records, uint64_t at, bool is_left)
{
	records->last = at;
	records->has_last = true;
	records->is_left = is_left;
}

/* The thread goes on where it was, or the kernel has led it elsewhere: to a handler, or back from one. */
static void take_back_from_kernel(struct branch_raw_records *records, uint64_t to)
{
	uint8_t length;
	bool goes_on;

	if (records->has_last && records->is_left) {
		(void)kind_of(records, records->last, &length);
		goes_on = to == records->last || (length && to == records->last + length);
		if (!goes_on)
			tell(records, KYMO_BRANCH_KERNEL, records->last, to, false);
	} else if (!records->has_begun) {
		tell(records, KYMO_BRANCH_ENTER, 0, to, false);
	}
	note(records, to, false);
}

void branch_raw_take(struct branch_raw_records *records, uint64_t from, uint64_t to, bool is_after_loss)
{
	const bool had_begun = records->has_begun;
	enum kymo_branch_kind kind;
	uint8_t length;

	if (is_kernels(from) && is_kernels(to))
		return;
	if (is_after_loss)
		records->has_last = false;
	if (is_kernels(from)) {
		take_back_from_kernel(records, to);
		records->has_begun = true;
		return;
	}
	/* Between two branches the thread goes straight on. */
	if (had_begun && (!records->has_last ||
			  (!records->is_left && (from < records->last || from - records->last > STRAIGHT_MAX))))
		tell(records, KYMO_BRANCH_ENTER, 0, from, true);
	records->has_begun = true;
	if (is_kernels(to)) {
		note(records, from, true);
		return;
	}
	kind = kind_of(records, from, &length);
	tell(records, kind, from, to, false);
	note(records, to, false);
}
