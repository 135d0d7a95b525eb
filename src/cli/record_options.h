/* The options of 'kymo record' and 'kymo top', and what they come to. */
#ifndef KYMO_CLI_RECORD_OPTIONS_H
#define KYMO_CLI_RECORD_OPTIONS_H

#include "branch/branch.h"
#include "cli/aggregations.h"
#include "cli/worker.h"
#include "cli/config.h"
#include "cli/live.h"
#include "cli/targets.h"
#include "record/record.h"
#include "syscall/sets.h"

#define CLI_RATE_SAMPLES 16u

struct cli_rate_sample {
	double seconds;
	uint64_t events;
};

struct cli_recording {
	struct kymo_record_options options;
	const char *name;                   /* of the command: "record" or "top" */
	const struct cli_record_view *view; /* of "top"; else NULL */
	struct cli_probes specs;
	struct cli_aggregations aggregations;
	size_t n_tables;  /* aggregations that have a table; the others are conditions of --until */
	bool has_written; /* a probe is recorded, and not aggregated alone */
	KYMO_VEC(struct kymo_branch_spec) branches;
	struct cli_targets targets;
	struct cli_config config;
	struct kymo_syscall_set syscalls; /* of all sets */
	const char *syscalls_text;        /* the first; NULL: none */
	bool quiet;
	bool says_follow; /* or not to */
	bool says_branch_source;
	bool says_string_size, says_buffer, says_after, says_debug_file;
	bool has_stacks;          /* records have the stack */
	uint16_t stack_size;      /* 0: not said */
	bool late;                /* files that specs name may come later from anywhere */
	struct cli_worker worker; /* of branches: this is the worker */
	bool has_left_job;
	bool announced; /* that recording has begun */
	uint64_t lost;  /* events, as the last progress says */
	struct cli_live live;
	struct cli_rate_sample before[CLI_RATE_SAMPLES]; /* of the progress, for the rate; a ring */
	unsigned int n_before;
};

/* -1: go on; else the exit status. */
int cli_record_read_options(struct cli_recording *recording, int argc, char **argv);

#endif
