/* Histories of branches, as a trace has them. */
#ifndef KYMO_REPORT_HISTORY_H
#define KYMO_REPORT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "ctf/ctf.h"

/* How strings are kept: as the trace has them, or safe on a terminal. */
enum history_text {
	HISTORY_TEXT_RAW,
	HISTORY_TEXT_ASCII,
	HISTORY_TEXT_UNICODE,
};

/* A location. Strings are its own. */
struct history_code {
	uint64_t address, linked, offset;
	char *file, *function, *source; /* "" where not known */
	char *text;                     /* "app:main+0x12"; equal texts are equal locations of two traces */
};

struct history_branch {
	uint32_t from, to; /* numbers of locations, from 1 on; one of them may be 0 */
	uint8_t kind;      /* enum kymo_ctf_branch_kind */
	uint64_t tsc;      /* with clones: of the anchor before; before the first one, of that */
	uint32_t event;    /* of an anchor: the number of its record's event, from 1 on; 0: no record is in the trace */
};

struct history_thread {
	int32_t tid, pid, status;
	char *name;
	uint64_t taken, kept, address;
	bool is_overwritten; /* it has no beginning, and `taken` is not known */
	uint32_t signal, at;
	KYMO_VEC(struct history_branch) branches; /* and anchors */
	size_t n_anchors;
};

struct history {
	struct kymo_ctf_reader *reader;
	const struct kymo_ctf_trace *trace;
	KYMO_VEC(struct history_code) codes; /* number 1 is the first */
	KYMO_VEC(struct history_thread) threads;
	KYMO_VEC(char *) events; /* names of the anchors' records: as in `codes` */
	uint64_t first;          /* the first of other records, a stamp; 0: there is none, or there are no anchors */
	bool has_anchors;
	uint64_t n_senseless; /* records */
};

/* Read the trace in `dir`. NOT_FOUND where it has no branches; errors of kymo_ctf_open(). What makes no sense is left
 * out and counted. */
struct kymo_error *kymo_history_open(struct history *history, const char *dir, enum history_text text);
void kymo_history_close(struct history *history);

/* "call", "jump" …: static. */
const char *kymo_history_kind(uint8_t kind);

#endif
