/*
 * Recorded system calls as the lines that strace has for them: two records, one line. The text comes from room
 * `syscall`, which knows of calls seen in other ways, too. Its memory is what was copied into the record at hand, where
 * calls were recorded through the kernel; else pointers are shown as addresses.
 *
 * A line is begun with the call's entry. It is open until the call returns, or a record of another thread comes first:
 * then it is left unfinished, and the rest of it is a line of its own. So lines stand in the order of time, and none
 * waits for another. But of a call whose memory could not be copied as it was made, nothing is shown before it returns:
 * what is missing comes then. And as JSON a call is one object, when it has returned: its text is kept until then.
 */
#ifndef KYMO_REPORT_SYSCALLS_H
#define KYMO_REPORT_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "ctf/ctf.h"
#include "report/calls.h"
#include "syscall/call.h"
#include "syscall/line.h"
#include "wire/copy.h"

/* A call that has not returned. */
struct open_syscall {
	struct kymo_syscall_call call;
	size_t thread;  /* as calls have it */
	uint64_t begin; /* TSC */
	uint64_t order; /* its place among all calls; 0: free */
	size_t next_free;
	struct kymo_line text; /* its beginning, which is kept where it is not shown at once */
	void *memory;          /* of one whose beginning waits for its return; else NULL */
	size_t memory_size;
};

struct syscalls {
	KYMO_VEC(struct open_syscall) items;
	size_t free; /* index + 1 of the first free one, or 0 */
	uint64_t order;
	uint64_t open;         /* whose line has not ended, or 0 */
	struct kymo_line text; /* of the line at hand, from its call on */
	size_t done;           /* bytes of it that were written */
	bool is_json;
	size_t string_size;            /* as it was recorded */
	struct kymo_syscall_call call; /* that has come to its end just now; for JSON, as the next ones */
	uint64_t begin;                /* its */
	struct kymo_copies known[2];   /* memory that is known at the moment */
};

void kymo_syscalls_init(struct syscalls *syscalls, const struct kymo_ctf_trace *trace, bool is_json);
void kymo_syscalls_deinit(struct syscalls *syscalls);

/*
 * Of one call alone, without those that are open: `text` becomes "openat(AT_FDCWD, "x", O_RDONLY) = 3", or, while no
 * return is known (`leave` is NULL), its beginning with "...)" for what is not known. False, and the text is empty, if
 * the records cannot be shown so. `text->is_cut`: memory is out.
 */
bool kymo_syscalls_text(struct syscalls *syscalls, const struct kymo_ctf_record *entry,
			const struct kymo_ctf_record *leave, struct kymo_line *text);

/* The same of what it returned, where its entry is kept no longer: "3", "-1 ENOENT (No such file or directory)". */
bool kymo_syscalls_result_text(struct syscalls *syscalls, uint64_t number, const struct kymo_ctf_record *leave,
			       struct kymo_line *text);

/* Is there any system call in the trace? */
bool kymo_syscalls_has_any(const struct kymo_ctf_trace *trace);

/* What the record says of a call, if it is an entry that can be shown so: a damaged trace may call anything one. */
bool kymo_syscalls_read(const struct kymo_ctf_record *record, struct kymo_syscall_call *ret);

/* Nothing is shown of that entry before its call returns. */
bool kymo_syscalls_waits(const struct syscalls *syscalls, const struct kymo_ctf_record *record);

/*
 * A call is made: the text is that of a new line, unless it waits. `ret` is a number for the call, to be kept in the
 * frame that kymo_calls_add() made of it; 0: it does not return, and the line is whole.
 */
struct kymo_error *kymo_syscalls_enter(struct syscalls *syscalls, size_t thread, const struct kymo_ctf_record *record,
				       uint64_t *ret);

/* The call has come back with that record; or no return of it was recorded. Its number is good no longer. What is to be
 * written stands after `done` of the text; true if it is a new line, false if it goes on with the one that is open. */
bool kymo_syscalls_leave(struct syscalls *syscalls, uint64_t number, const struct kymo_ctf_record *record, uint64_t ns);
bool kymo_syscalls_give_up(struct syscalls *syscalls, uint64_t number);

/* The line that is open is left so: true if there is one, and then " <unfinished ...>" and the line's end are to be
 * written. */
bool kymo_syscalls_interrupt(struct syscalls *syscalls);

/* Of JSON: the members of the call that has come to its end just now. `has_result`: by kymo_syscalls_leave(). */
void kymo_syscalls_write_json(struct syscalls *syscalls, FILE *out, bool has_result, uint64_t ns);

/* Numbers of calls that are open, in the order in which they were made: a fresh array. NULL when memory is out. */
uint64_t *kymo_syscalls_left(const struct syscalls *syscalls, size_t *n_ret);

/* Whether the call of that frame is open still. */
bool kymo_syscalls_is_open(const struct syscalls *syscalls, size_t thread, const struct frame *frame);

static inline const struct open_syscall *kymo_syscalls_at(const struct syscalls *syscalls, uint64_t number)
{
	return &syscalls->items.items[number - 1];
}

#endif
