/* The command `kymo record`, and the part of it that `kymo top` uses. */
#ifndef KYMO_CLI_CMD_RECORD_H
#define KYMO_CLI_CMD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_aggr_table;

/* argv[0] is its own name; the exit status comes back. */
int cmd_record(int argc, char **argv);

/* A recording that is looked at while it goes on, and not kept: its directory may be removed after it. */
struct cli_record_view {
	const char *directory;
	/* Once a second, and at the end, with the number of hits that were lost so far; true: the user wants no more.
	 */
	bool (*show)(const struct kymo_aggr_table *tables, size_t n, uint64_t lost, void *data);
	void (*end)(void *data); /* before anything else is printed */
	void *data;
};

/* 'kymo record', or with a view a command like it. */
int cli_record(int argc, char **argv, const struct cli_record_view *view);

#endif
