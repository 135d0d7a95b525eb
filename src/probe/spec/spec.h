/*
 * The user's words for a probe, in the kernel's uprobe grammar (Documentation/trace/uprobetracer.rst) with symbols:
 *
 *	SPEC	:= [ ("p"|"r") [":" [GROUP "/"] EVENT] SPACE ] (FILE ":" WHERE ["%return"] | ADDRESS)
 *		   { SPACE (FILTER | SAMPLE | WRITE | ARG) } [ SPACE "if" EXPR ]
 *	FILTER	:= "/" EXPR "/"			expr/expr.h; one, in either way
 *	SAMPLE	:= "sample" SPACE ("1/" NUMBER | NUMBER "/s") | "first" SPACE NUMBER	one
 *	WRITE	:= "set" SPACE "%" REGISTER "=" EXPR | "return" [SPACE EXPR]	blanks may be around the "="
 *	WHERE	:= SYMBOL [("+"|"-") NUMBER] | GLOB | NUMBER		a lone NUMBER is a file offset, as in the kernel
 *		 | (SYMBOL | GLOB) ":*"					each instruction of the function or functions
 *	ARG	:= [NAME "="] (FETCH | EXPR) [":" TYPE]		an EXPR has blanks within brackets only, as its ":" is
 *	FETCH	:= "%" REGISTER | "$arg" N | "$stack" | "$stack" N | "\" NUMBER | "$retval" | "@" NUMBER
 *		 | ("+"|"-")["u"] NUMBER "(" FETCH ")"
 *	TYPE	:= u8 u16 u32 u64 s8 s16 s32 s64 x8 x16 x32 x64 | "b" BITS "@" FIRST "/" OF
 *		 | of memory string, ustring, and each with "[" N "]"
 *	ADDRESS	:= "0x" HEX-DIGITS		in memory of no file, of one process (probe/code/jit.h)
 *
 * FILE runs to the last ":" before WHERE, so that paths may hold colons; `\ ` and "\:" quote. A SYMBOL may be as C++
 * and Rust have it: "::" separates nothing, nor does what is within brackets or part of an operator's name,
 * "./app:shop::Cart::add(int, char const*)". Parsing is pure, knows no process and no file, and names registers through
 * arch.
 *
 * "r" and "%return" both make a return probe, of a whole function: of a SYMBOL or GLOB, or of the function that begins
 * at a lone NUMBER. There, $retval is known and $argN is not; $argN is not taken with ":*" either, since it would be
 * right at the first instruction alone.
 */
#ifndef KYMO_PROBE_SPEC_SPEC_H
#define KYMO_PROBE_SPEC_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/fetch.h"
#include "arch/pad.h"
#include "arch/syscall_pad.h"
#include "base/error.h"
#include "base/naming.h"
#include "base/shape.h"
#include "wire/event.h"

struct kymo_spec_arg {
	char *name; /* given, or "arg1" …; unique in the spec */
	struct kymo_fetch fetch;
	struct kymo_form *form;     /* of the fetch, if it is an expression; else NULL */
	struct kymo_naming *naming; /* of its values, by their type in the source; or NULL */
	struct kymo_shape *shape;   /* of a structure that is recorded as a whole, or of an array's elements; or NULL */
	bool is_list;               /* of an array */
	bool is_of_entry; /* of a return: entry(EXPR). It is what the function's entry has recorded; the recorder puts
			     it into the record */
	uint16_t entry_start, entry_size; /* … EXPR, in the spec's text */
	char *target;                     /* what is written, of memory, as the user wrote it: "c->flags"; or NULL */
	char *cut; /* what is left out of a structure that is too large, as a sentence; or NULL */
};

/* Of which hits, of those that the filter lets through, a record is made. */
enum kymo_spec_sampling {
	KYMO_SPEC_SAMPLE_ALL,
	KYMO_SPEC_SAMPLE_EVERY, /* one in `sample_n` */
	KYMO_SPEC_SAMPLE_RATE,  /* `sample_n` a second at most, on the average */
	KYMO_SPEC_SAMPLE_FIRST, /* the first `sample_n` */
};

#define KYMO_SPEC_SAMPLES_MAX 32 /* of a recording: specs that sample, those that share it counted once */

struct kymo_spec {
	char *text;  /* as the user wrote it, or with an offset in the place of a line of source */
	char *typed; /* as the user wrote it, where `text` is not; or NULL */
	bool is_return;
	bool every_instruction; /* of the function or functions: `symbol` is given, `offset` is 0, and it is no return
				   probe */
	char *group;            /* or NULL */
	char *event;            /* or NULL */
	char *marker;       /* a glob: what is wanted are markers and SDT probes, and no location is given; or NULL */
	char *file;         /* "libc", "./app", "/usr/bin/git"; NULL for markers and addresses */
	uint64_t *syscalls; /* a bit for each of KYMO_PAD_SYSCALLS numbers: their calls are wanted, and nothing else is
			       given; or NULL */
	uint64_t address;   /* in memory of no file: `file` and `symbol` are NULL, and it is no return probe; else 0 */
	char *symbol;       /* name or glob; NULL: `offset` is a file offset */
	int64_t offset;     /* after the symbol, or in the file */
	char *source;       /* "app.c:120": the line of source that `offset` in the file is the code of; or NULL */
	struct kymo_spec_arg args[KYMO_EVENT_MAX_ARGS];
	size_t n_args;
	bool needs_names;          /* it has names of the source, and kymo_spec_name() was not called */
	bool wants_names;          /* the same would tell its types better, but is not needed */
	bool has_raw_retval;       /* it takes the register of integers for what its functions return */
	bool computes_raw_retval;  /* … in an expression */
	bool leaves_function;      /* it has 'return': its function is not run */
	bool returns_as_is;        /* … without a value: no register is changed */
	char build_id[2 * 32 + 1]; /* of the file whose debug information gave its names; "": none did */
	struct kymo_form *filter;  /* records are made if its value is available and not 0; NULL: always */
	enum kymo_spec_sampling sampling;
	uint32_t sample_n;
	bool shares_sample; /* it counts with the spec before it: both are of one text, a line of source */
	const struct kymo_spec_scope *scope; /* while it is parsed with one */
	const struct kymo_fetch *operands;   /* of an SDT probe's location, while it is parsed for one */
	size_t n_operands;
	uint8_t n_operands_needed; /* so many arguments of the SDT probes are known to its expressions */
	/* Arguments that kymo_spec_add_value() has added: pieces of texts of their own. */
	struct kymo_spec_value {
		char *text;
		size_t start, end;
	} values[KYMO_EVENT_MAX_ARGS];
	size_t n_values;
	uint32_t aggregated; /* its number among those whose hits are aggregated in place of being written (struct
				kymo_aggr); 0: it is none of them */
	bool waits;          /* … in place of being written by its pads: the recorder writes it, once the duration of
				its call is known */
	bool is_limited;     /* … those of some durations alone */
	uint8_t duration;    /* 1 + the argument that is the duration of its call; 0: none is */
	uint16_t stack_size; /* records have so many bytes of their stack at most; 0: none */
	uint16_t stack_frames; /* … not as a copy, but by frame pointers: the location, and so many but one of its
				  callers */
	bool is_paired; /* its calls are to be paired: records hold the stack pointer, too; kymo_specs_pair() says so */
};

/* For sentences: what the user wrote. */
static inline const char *kymo_spec_typed(const struct kymo_spec *spec)
{
	return spec->typed ? spec->typed : spec->text;
}

/*
 * Parse `text`. USAGE errors quote the text on a line of its own with a caret below the column, and say what was
 * expected:
 *
 *	column 18: no register '%dj' on x86-64; write %di, %edi, %al, %r8 …
 *	  libc:malloc size=%dj
 *	                   ^
 */
struct kymo_error *kymo_spec_parse(const char *text, struct kymo_spec *ret);

/*
 * Parse it again with the names that are visible where it is, if it needs_names or wants_names. `build_id` in
 * hexadecimal digits is that of the file. USAGE for a name that is not among them, with those that are; the spec is
 * unchanged then. But then it needs_names if one of its names is a variable that is not available there, or the
 * function's result has a known type.
 */
struct kymo_spec_scope;
struct kymo_error *kymo_spec_name(struct kymo_spec *spec, const struct kymo_spec_scope *scope, const char *build_id);

/*
 * Add an argument: the expression from `start` to `end` of `text`, under a name of its own, "_value1" …. Its place
 * among the arguments is returned. USAGE with a caret below `text`; the spec is unchanged then.
 */
struct kymo_error *kymo_spec_add_value(struct kymo_spec *spec, const char *text, const char *start, const char *end,
				       size_t *ret);

/* The argument that the first of these is; the others follow. */
size_t kymo_spec_first_value(const struct kymo_spec *spec);

/* The entry of the function of a return probe, without its filter and arguments. */
struct kymo_error *kymo_spec_entry_of(const struct kymo_spec *spec, struct kymo_spec *ret);

/* The same for a text that is a return probe even where it does not say so. */
struct kymo_error *kymo_spec_parse_return(const char *text, struct kymo_spec *ret);
void kymo_spec_deinit(struct kymo_spec *spec);

/* The ":" of "FILE:WHERE", or NULL where no file is named: a "::" separates nothing. */
const char *kymo_spec_file_end(const char *text);

#endif
