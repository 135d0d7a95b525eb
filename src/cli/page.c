#include "cli/page.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/numbers.h"
#include "cli/terminal.h"

#define DEFAULT_WIDTH 80
#define FILE_WIDTH 120

bool cli_page_parse_width(const char *text, unsigned int *ret)
{
	uint64_t width;

	if (!cli_parse_number(text, &width) || width < CLI_WIDTH_MIN || width > CLI_WIDTH_MAX)
		return false;
	*ret = (unsigned int)width;
	return true;
}

/* COLUMNS as the user sets it, else the terminal's, else 80. Pipes and files have no width, and nothing is cut there.
 */
static void take_output_width(struct kymo_report_options *options)
{
	const char *columns = getenv("COLUMNS");
	int own;

	if (columns && cli_page_parse_width(columns, &options->width))
		return;
	options->whole = !isatty(STDOUT_FILENO);
	cli_terminal_size(STDOUT_FILENO, &own, NULL);
	options->width = options->whole ? FILE_WIDTH : own < CLI_WIDTH_MIN ? DEFAULT_WIDTH : (unsigned int)own;
}

/* On a terminal that knows colors, unless the user has set NO_COLOR (https://no-color.org/). */
static bool wants_color(void)
{
	const char *no_color = getenv("NO_COLOR");

	return cli_terminal_takes_codes(STDOUT_FILENO) && !(no_color && *no_color);
}

void cli_page_options(struct kymo_report_options *options)
{
	setlocale(LC_CTYPE, "");
	options->unicode = !strcmp(nl_langinfo(CODESET), "UTF-8");
	options->color = wants_color();
	take_output_width(options);
}
