/*
 * What an IFUNC stands for, as `kymo explain` shows it.
 */
#ifndef KYMO_CLI_INDIRECT_H
#define KYMO_CLI_INDIRECT_H

#include <sys/types.h>

#include "probe/code/indirect.h"

struct kymo_map;
struct kymo_module;

/* The IFUNCs of a module, and where a process has that mapped. */
struct cli_indirects {
	struct kymo_module *module;
	const struct kymo_indirect *items;
	size_t n;
	pid_t pid;                  /* 0: no process */
	const struct kymo_map *map; /* one of the module's executable mappings in the process */
};

/* Print the location `name`, its resolver and the functions that it chooses from. If it is known, print which function
 * the process has chosen, and which names share it. */
void cli_print_indirect(const struct cli_indirects *indirects, const struct kymo_indirect *indirect, const char *name);

#endif
