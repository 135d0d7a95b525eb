/* Options in a file. */
#ifndef KYMO_CLI_CONFIG_H
#define KYMO_CLI_CONFIG_H

#include <stddef.h>

struct cli_options;

/* What takes an option: 0, or an exit status after it has said what is wrong. `value` lives as long as the config. */
typedef int cli_config_take(void *data, int id, const char *value);

struct cli_config {
	char *text; /* cut into lines; the caller's to free */
};

/*
 * Take the options of a file, "-" for standard input: one a line, spelled as on the command line of `command`, its
 * value being the rest of the line, whose blanks need no quotes. A pair of quotes around the whole value is left out.
 * A line that begins with "#" is a comment. `id` is that of the option which names such a file: it is refused within
 * one. 0, or an exit status: what is wrong was said, with the file and the line.
 */
int cli_config_read(struct cli_config *config, const char *path, const struct cli_options *options, int id,
		    cli_config_take *take, void *data);

void cli_config_deinit(struct cli_config *config);

#endif
