/*
 * The user's words for a probe, in the kernel's uprobe grammar (Documentation/trace/uprobetracer.rst) with symbols:
 *
 *	SPEC	:= [ ("p"|"r") [":" [GROUP "/"] EVENT] SPACE ] FILE ":" PLACE ["%return"] { SPACE ARG }
 *	PLACE	:= SYMBOL [("+"|"-") NUMBER] | GLOB | NUMBER		a lone NUMBER is a file offset, as in the kernel
 *	ARG	:= [NAME "="] FETCH [":" TYPE]
 *	FETCH	:= "%" REGISTER | "$arg" N | "$stack" | "$stack" N | "\" NUMBER | "$retval"
 *	TYPE	:= u8 u16 u32 u64 s8 s16 s32 s64 x8 x16 x32 x64
 *
 * FILE runs to the last ":" before PLACE, so that paths may hold colons; `\ ` and "\:" quote. Parsing is pure, knows no process and
 * no file, and names registers through arch.
 */
#ifndef KYMO_PROBE_SPEC_H
#define KYMO_PROBE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/error.h"
#include "wire/event.h"

struct kymo_spec_arg {
	char *name;		/* given, or "arg1" …; unique in the spec */
	struct kymo_fetch fetch;
};

struct kymo_spec {
	char *text;		/* as the user wrote it */
	bool is_return;
	char *group;		/* or NULL */
	char *event;		/* or NULL */
	char *file;		/* "libc", "./app", "/usr/bin/git" */
	char *symbol;		/* name or glob; NULL: `offset` is a file offset */
	int64_t offset;		/* after the symbol, or in the file */
	struct kymo_spec_arg args[KYMO_EVENT_MAX_ARGS];
	size_t n_args;
};

/*
 * Parse `text`. USAGE errors quote the text on a line of its own with a caret below the column, and say what was expected:
 *
 *	column 18: no register '%dj' on x86-64; write %di, %edi, %al, %r8 …
 *	  libc:malloc size=%dj
 *	                   ^
 */
struct kymo_error *kymo_spec_parse(const char *text, struct kymo_spec *ret);
void kymo_spec_deinit(struct kymo_spec *spec);

#endif
