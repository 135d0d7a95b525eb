/* A table of counts of system calls. */
#ifndef KYMO_CLI_SYSCALL_COUNTS_H
#define KYMO_CLI_SYSCALL_COUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cli_syscall_columns;
struct cli_syscall_counts;
struct kymo_syscall_call;

/* What -S and -U take. False: that is no such. */
bool cli_syscall_counts_sort(struct cli_syscall_columns *columns, const char *text);
bool cli_syscall_counts_choose(struct cli_syscall_columns *columns, const char *text);

/* NULL where memory is out. */
struct cli_syscall_counts *cli_syscall_counts_create(void);
void cli_syscall_counts_destroy(struct cli_syscall_counts *counts);
void cli_syscall_counts_add(struct cli_syscall_counts *counts, const struct kymo_syscall_call *call,
			    uint64_t duration_ns);
void cli_syscall_counts_print(const struct cli_syscall_counts *counts, const struct cli_syscall_columns *columns,
			      bool json, FILE *out);

#endif
