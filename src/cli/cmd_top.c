#include "cli/cmd_top.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cmd_record.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/screen.h"
#include "cli/terminal.h"

struct top {
	struct cli_screen screen;
	bool is_live;
	char *last; /* what was shown last on the screen */
	size_t size;
	char parent[PATH_MAX];
	char directory[PATH_MAX + 8]; /* of the recording, in the former */
};

/* ---- the recording, which is not kept ------------------------------------------------------- */

static bool make_directory(struct top *top)
{
	const char *where = getenv("TMPDIR");

	if (snprintf(top->parent, sizeof(top->parent), "%s/kymo-top.XXXXXX", where && *where ? where : "/tmp") >=
		    (int)sizeof(top->parent) ||
	    !mkdtemp(top->parent))
		return false;
	snprintf(top->directory, sizeof(top->directory), "%s/data", top->parent);
	return true;
}

static void remove_directory(const struct top *top)
{
	DIR *files = opendir(top->directory);
	struct dirent *entry;

	while (files && (entry = readdir(files)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(dirfd(files), entry->d_name, 0);
	if (files)
		closedir(files);
	rmdir(top->directory);
	rmdir(top->parent);
}

/* ---- the view -------------------------------------------------------------------------------- */

static bool wants_to_end(const struct top *top)
{
	struct pollfd keys = { .fd = top->screen.has_keys ? STDIN_FILENO : -1, .events = POLLIN };
	char key;

	return poll(&keys, 1, 0) > 0 && read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q');
}

static void stay(int number)
{
}

/* A stop would leave the terminal as it is. No signal is ignored: a command would inherit that. */
static void begin_screen(struct top *top)
{
	struct sigaction action = { .sa_handler = stay, .sa_flags = SA_RESTART };

	top->is_live = cli_screen_enter(&top->screen);
	if (top->is_live)
		sigaction(SIGTSTP, &action, NULL);
}

static bool show_tables(const struct kymo_aggr_table *tables, size_t n, uint64_t lost, void *data)
{
	struct kymo_report_options options = { .mode = KYMO_REPORT_TABLES };
	struct top *top = data;
	struct kymo_error *error;
	char count[32];
	FILE *out;

	cli_page_options(&options);
	if (top->is_live && !top->screen.is_entered)
		begin_screen(top);
	if (!top->is_live) {
		error = kymo_report_tables(tables, n, &options, stdout);
		kymo_error_destroy(error);
		return error; /* the reader has gone */
	}
	free(top->last);
	top->last = NULL;
	out = open_memstream(&top->last, &top->size);
	if (!out)
		return false;
	fputs("kymo top: q or Ctrl-C ends", out);
	if (lost)
		fprintf(out, "; %s hits lost", cli_format_count(lost, count));
	fputc('\n', out);
	kymo_error_destroy(kymo_report_tables(tables, n, &options, out));
	if (!fclose(out) && top->screen.is_entered)
		cli_screen_draw(top->last, top->size);
	return wants_to_end(top);
}

/* The last tables stay on the terminal. */
static void end_screen(void *data)
{
	struct top *top = data;
	const char *line;

	if (!top->is_live)
		return;
	cli_screen_leave(&top->screen);
	line = top->last ? strchr(top->last, '\n') : NULL;
	if (line)
		fputs(line + 1, stdout);
	fflush(stdout);
}

int cmd_top(int argc, char **argv)
{
	struct top top = { .is_live = false };
	const struct cli_record_view view = {
		.directory = top.directory, .show = show_tables, .end = end_screen, .data = &top
	};
	int status;

	if (!make_directory(&top))
		return cli_fail(argv[0],
				kymo_error_errno(errno, "cannot make a directory in %s; set TMPDIR", top.parent));
	top.is_live = cli_terminal_takes_codes(STDOUT_FILENO);
	status = cli_record(argc, argv, &view);
	cli_screen_leave(&top.screen);
	remove_directory(&top);
	free(top.last);
	return status;
}
