/*
 * What the commands share: reading options and numbers, saying things. Only this room prints and decides exit statuses:
 * 0, 1 (failed, a sentence on stderr), 2 (the user's words are wrong).
 */
#ifndef KYMO_CLI_CLI_H
#define KYMO_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

/* ---- the commands: argv[0] is the command's own name; the exit status comes back ------------- */

int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_syscalls(int argc, char **argv);
int cmd_threads(int argc, char **argv);
int cmd_top(int argc, char **argv);

/* A recording that is looked at while it goes on, and not kept: its directory may be removed behind it. */
struct kymo_aggr_table;
struct cli_record_view {
	const char *directory;
	/* Once a second, and at the end; true: the user wants no more. */
	bool (*show)(const struct kymo_aggr_table *tables, size_t n, void *data);
	void (*end)(void *data); /* before anything else is printed */
	void *data;
};

/* 'kymo record', or with a view a command like it. */
int cli_record(int argc, char **argv, const struct cli_record_view *view);

/* The help text of a command, static; NULL where there is no such command. */
const char *cli_help(const char *command);

/* ---- options --------------------------------------------------------------------------------- */

struct cli_option {
	int id;            /* > 0, the command's own */
	char letter;       /* or 0 */
	const char *name;  /* without the dashes */
	const char *value; /* its name in messages ("SPEC"); NULL: it takes none; "=SPEC": it may have one behind the
			      long name and "=" */
};

enum {
	CLI_END = -1,     /* nothing is left */
	CLI_OPERAND = -2, /* `value` is not an option */
	CLI_HELP = -3,    /* --help was given and answered */
	CLI_WRONG = -4,   /* the user was told what is wrong */
};

struct cli_options {
	const char *command;
	const struct cli_option *table;
	size_t n;
	int argc;
	char **argv;
	int at;              /* 1 at the start; after an operand: the index behind it */
	const char *value;   /* of the option or operand that was returned */
	const char *cluster; /* the rest of "-xyz" */
	bool only_operands;  /* "--" was seen */
};

/* The next option's id, or one of the above. Every command takes --no-demangle, which is seen to here. Options may
 * stand behind operands; who takes the rest stops asking. */
int cli_options_next(struct cli_options *options);

/* The words of a command that has one option, which takes no value, and takes one process: `pid_ret` is NULL when none
 * was named. -1, or the exit status: help was given, or the user told what is wrong. */
int cli_flag_and_process(const char *command, const struct cli_option *flag, int argc, char **argv, bool *flag_ret,
			 const char **pid_ret);

/* The one of `words` that begins with `word`, or is at most a third of its length away by edit distance; or NULL. */
const char *cli_nearest(const char *word, const char *const *words, size_t n);

/* ---- numbers: the whole text or false -------------------------------------------------------- */

bool cli_parse_number(const char *text, uint64_t *ret); /* decimal digits */
bool cli_parse_pid(const char *text, pid_t *ret);
bool cli_parse_size(const char *text, uint64_t *ret);  /* bytes, with K, M or G for powers of 1024 */
bool cli_parse_seconds(const char *text, double *ret); /* "5", "0.25"; more than 0 */

/* ---- saying things --------------------------------------------------------------------------- */

/* "kymo: SENTENCE" and "try 'kymo help COMMAND'" on stderr; `command` may be NULL. Returns 2. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "kymo: SENTENCE" on stderr, with the hint where the user's words are wrong. Names are demangled, but for what quotes
 * the user's words on a line of its own. Consumes the error; returns 1 or 2. */
int cli_fail(const char *command, struct kymo_error *error);

/* "kymo: warning: SENTENCE" on stderr, with names demangled. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Text from files and processes, with what a terminal would take as a command replaced by "?". */
void cli_print_text(FILE *out, const char *text);

/* A name from a symbol table, demangled unless the user wants it raw; the same for JSON. */
void cli_print_name(FILE *out, const char *name);
void cli_print_json_name(FILE *out, const char *name);

/* "1,234,567" and "12.3 MiB". `out` has room for 32 bytes. */
const char *cli_format_count(uint64_t count, char out[32]);
const char *cli_format_bytes(uint64_t bytes, char out[32]);

#endif
