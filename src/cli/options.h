/* Options of commands. */
#ifndef KYMO_CLI_OPTIONS_H
#define KYMO_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_option {
	int id;            /* > 0, the command's own */
	char letter;       /* or 0 */
	const char *name;  /* without the dashes */
	const char *value; /* its name in messages ("SPEC"); NULL: it takes none; "=SPEC": it may have one after the
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
	int at;              /* 1 at the start; after an operand: the index after it */
	const char *value;   /* of the option or operand that was returned */
	const char *cluster; /* the rest of "-xyz" */
	bool only_operands;  /* "--" was seen */
};

/* The next option's id, or one of the above. Every command takes --no-demangle, which is seen to here. Options may
 * stand after operands; a command whose operands are another command line stops calling at the first one. */
int cli_options_next(struct cli_options *options);

/* The words of a command that has one option, which takes no value, and takes one process: `pid_ret` is NULL when none
 * was named. -1, or the exit status: help was given, or the user told what is wrong. */
int cli_flag_and_process(const char *command, const struct cli_option *flag, int argc, char **argv, bool *flag_ret,
			 const char **pid_ret);

/* The one of `words` that begins with `word`, or is at most a third of its length away by edit distance; or NULL. */
const char *cli_nearest(const char *word, const char *const *words, size_t n);

#endif
