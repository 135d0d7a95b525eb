#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_COLUMNS 80
#define DEFAULT_ROWS 24

bool cli_terminal_takes_codes(int fd)
{
	const char *type = getenv("TERM");

	return isatty(fd) && type && strcmp(type, "dumb");
}

void cli_terminal_size(int fd, int *columns_ret, int *rows_ret)
{
	struct winsize size = { 0 };

	if (ioctl(fd, TIOCGWINSZ, &size))
		size = (struct winsize){ 0 };
	*columns_ret = size.ws_col ? size.ws_col : DEFAULT_COLUMNS;
	if (rows_ret)
		*rows_ret = size.ws_row ? size.ws_row : DEFAULT_ROWS;
}
