/* A table of counts of system calls. */
#ifndef KYMO_STRACE_COUNTS_H
#define KYMO_STRACE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct kymo_strace_columns;
struct strace_counts;
struct kymo_syscall_call;

/* What -S and -U take. False: that is no such. */
bool kymo_strace_counts_sort(struct kymo_strace_columns *columns, const char *text);
bool kymo_strace_counts_choose(struct kymo_strace_columns *columns, const char *text);

/* NULL where memory is out. */
struct strace_counts *strace_counts_create(void);
void strace_counts_destroy(struct strace_counts *counts);
void strace_counts_add(struct strace_counts *counts, const struct kymo_syscall_call *call, uint64_t duration_ns);
void strace_counts_print(const struct strace_counts *counts, const struct kymo_strace_columns *columns, bool json,
			 FILE *out);

#endif
