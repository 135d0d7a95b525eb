#include "record/branch_source.h"

#include "branch/branch.h"
#include "ctf/ctf.h"

#define HARDWARE_UNSEEN "code that is unmapped before its thread ends, when each branch was taken"

bool branch_source_hardware(enum kymo_record_branch_source source, enum kymo_branch_hardware *ret)
{
	switch (source) {
	case KYMO_RECORD_BRANCHES_PT:
		*ret = KYMO_BRANCH_PT;
		return true;
	case KYMO_RECORD_BRANCHES_BTS:
		*ret = KYMO_BRANCH_BTS;
		return true;
	case KYMO_RECORD_BRANCHES_LBR:
		*ret = KYMO_BRANCH_LBR;
		return true;
	default:
		return false;
	}
}

const char *branch_source_name(enum kymo_record_branch_source source)
{
	static const char *const names[] = {
		[KYMO_RECORD_BRANCHES_PT] = "Intel PT",
		[KYMO_RECORD_BRANCHES_BTS] = "the Branch Trace Store",
		[KYMO_RECORD_BRANCHES_LBR] = "last-branch records",
		[KYMO_RECORD_BRANCHES_CLONES] = "function clones",
		[KYMO_RECORD_BRANCHES_STEPS] = KYMO_BRANCHES_BY_STEPS,
	};

	return names[source];
}

const char *branch_source_unseen(enum kymo_record_branch_source source, const struct kymo_record_options *options)
{
	const bool follow = options->follow;

	switch (source) {
	case KYMO_RECORD_BRANCHES_PT:
	case KYMO_RECORD_BRANCHES_BTS:
		return follow ? "the kernel, " HARDWARE_UNSEEN : "the kernel, child processes, " HARDWARE_UNSEEN;
	case KYMO_RECORD_BRANCHES_LBR:
		return follow ? "the kernel, branches between samples and after the last one, " HARDWARE_UNSEEN
			      : "the kernel, child processes, branches between samples and after the last "
				"one, " HARDWARE_UNSEEN;
	case KYMO_RECORD_BRANCHES_CLONES:
		if (options->n_specs)
			return "the kernel, child processes, the dynamic linker, libraries that are loaded later, "
			       "functions that can't be cloned or have probes in them, when each branch was taken but "
			       "between which events";
		return "the kernel, child processes, the dynamic linker, libraries that are loaded later, functions "
		       "that can't be cloned, when each branch was taken";
	default:
		return follow ? "the kernel" : "the kernel, child processes";
	}
}

const char *branch_source_lacks_clones(const struct kymo_record_options *options)
{
	if (!options->command)
		return "clones are put in before a command runs, and this process runs already";
	if (options->follow)
		return "clones record no children (--follow)";
	return NULL;
}
