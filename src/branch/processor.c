#include "branch/processor.h"

#include <errno.h>

#include "branch/hardware.h"
#include "branch/perf.h"
#include "branch/raw_bts.h"
#include "branch/raw_lbr.h"
#include "branch/raw_pt.h"
static int open_pt(pid_t tid, size_t tail, struct branch_perf **ret)
{
	return branch_perf_open(KYMO_BRANCH_PT, tid, tail, ret);
}

static int open_bts(pid_t tid, size_t tail, struct branch_perf **ret)
{
	return branch_perf_open(KYMO_BRANCH_BTS, tid, tail, ret);
}

static int open_lbr(pid_t tid, size_t tail, struct branch_perf **ret)
{
	return branch_perf_open(KYMO_BRANCH_LBR, tid, tail, ret);
}

const struct branch_hardware *kymo_branch_hardware_of(enum kymo_branch_hardware which)
{
	static const struct branch_hardware all[KYMO_BRANCH_HARDWARE] = {
		[KYMO_BRANCH_PT] = { open_pt, branch_perf_read, branch_perf_close, branch_pt_decode },
		[KYMO_BRANCH_BTS] = { open_bts, branch_perf_read, branch_perf_close, branch_bts_decode },
		[KYMO_BRANCH_LBR] = { open_lbr, branch_perf_read, branch_perf_close, branch_lbr_decode },
	};

	return &all[which];
}

struct kymo_error *kymo_branch_hardware_check(enum kymo_branch_hardware which)
{
	struct branch_perf *perf = NULL;
	int err = branch_perf_open(which, 0, 1, &perf);

	branch_perf_close(perf);
	if (!err && which == KYMO_BRANCH_PT && !branch_pt_is_there())
		err = -ENOSYS;
	return err ? branch_perf_refusal(which, err, branch_perf_paranoid()) : NULL;
}
