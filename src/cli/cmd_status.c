#include "cli/cmd_status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "probe/probe.h"
#include "sym/demangle.h"

static const struct cli_option option = { 1, 0, "json", NULL };

/* How one process is written; `first` tells whether it is the first. */
typedef void print_fn(const struct kymo_status *status, bool first);

static void print_json(const struct kymo_status *status, bool first)
{
	printf("%s\n {\"pid\": %d, \"comm\": ", first ? "" : ",", status->pid);
	kymo_json_string(stdout, status->comm);
	printf(", \"recorder\": %d, \"started_ns\": %" PRIu64 ", \"directory\": ", status->recorder,
	       status->started_wall_ns);
	kymo_json_string(stdout, status->directory);
	printf(", \"bytes\": %" PRIu64 ", \"lost\": %" PRIu64, status->recorded_bytes, status->lost_events);
	if (status->n_catches)
		printf(", \"catches\": %zu, \"ring_bytes\": %" PRIu64, status->n_catches, status->ring_bytes);
	fputs(", \"sites\": [", stdout);
	for (size_t i = 0; i < status->n_sites; i++) {
		const struct kymo_status_site *site = &status->sites[i];

		printf("%s\n  {\"address\": %" PRIu64 ", \"event\": %" PRIu32 ", \"name\": ", i ? "," : "",
		       site->address, site->event_id);
		cli_print_json_name(stdout, site->name);
		fputs(", \"tactic\": ", stdout);
		kymo_json_string(stdout, site->tactic);
		putchar('}');
	}
	fputs("]}", stdout);
}

static void print_time(uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000u);
	struct tm local;
	char text[64];

	if (wall_ns && localtime_r(&seconds, &local) && strftime(text, sizeof(text), "%F %T", &local))
		printf(" since %s", text);
}

/* One line a process, for the list of all. */
static void print_line(const struct kymo_status *status, bool first)
{
	char bytes[32], lost[32];

	printf("%7d  ", status->pid);
	kymo_utf8_print(stdout, status->comm);
	if (status->n_catches)
		printf(": function clones, %s catches, %s of rings, in ", cli_format_count(status->n_catches, lost),
		       cli_format_bytes(status->ring_bytes, bytes));
	else
		printf(": %zu site%s, %s, %s lost, in ", status->n_sites, status->n_sites == 1 ? "" : "s",
		       cli_format_bytes(status->recorded_bytes, bytes), cli_format_count(status->lost_events, lost));
	kymo_utf8_print(stdout, status->directory);
	fputs("; recorded", stdout);
	print_time(status->started_wall_ns);
	if (status->recorder == KYMO_RECORDER_ELSEWHERE)
		printf(" from another PID namespace\n");
	else if (status->recorder)
		printf(" by process %d\n", status->recorder);
	else
		printf(" by a process that is gone; 'kymo detach %d' cleans up\n", status->pid);
}

static void print_whole(const struct kymo_status *status, bool first)
{
	print_line(status, first);
	for (size_t i = 0; i < status->n_sites; i++) {
		const struct kymo_status_site *site = &status->sites[i];

		printf("%20s0x%012" PRIx64 "  ", "", site->address);
		kymo_utf8_print(stdout, site->tactic);
		fputs("  ", stdout);
		kymo_print_shown(stdout, site->name);
		putchar('\n');
	}
}

/* All recordings of a process; NOT_FOUND where there is none. */
static struct kymo_error *show_process(pid_t pid, print_fn *print, bool *any)
{
	struct kymo_status *all = NULL;
	struct kymo_error *error;
	size_t n = 0;

	error = kymo_status(pid, &all, &n);
	for (size_t i = 0; i < n; i++) {
		print(&all[i], !*any);
		*any = true;
		kymo_status_deinit(&all[i]);
	}
	free(all);
	return error;
}

static int show_one(const char *text, bool json)
{
	struct kymo_error *error;
	bool any = false;
	pid_t pid;

	if (!cli_parse_pid(text, &pid))
		return cli_usage("status", "'%s' is no process id", text);
	if (json)
		putchar('[');
	error = show_process(pid, json ? print_json : print_whole, &any);
	if (json)
		puts(any ? "\n]" : "]");
	return error ? cli_fail("status", error) : 0;
}

static bool show_each(const pid_t *pids, size_t n, print_fn *print)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		struct kymo_error *error = show_process(pids[i], print, &any);

		/* It may have ended, or been left, since it was listed. */
		if (error && error->code != KYMO_ERROR_GONE && error->code != KYMO_ERROR_NOT_FOUND)
			cli_warn("%s", error->message);
		kymo_error_destroy(error);
	}
	return any;
}

static int show_all(bool json)
{
	kymo_cleanup_free pid_t *pids = NULL;
	struct kymo_error *error;
	size_t n = 0;
	bool any;

	error = kymo_status_all(&pids, &n);
	if (error)
		return cli_fail("status", error);
	if (json)
		putchar('[');
	any = show_each(pids, n, json ? print_json : print_line);
	if (json)
		puts(any ? "\n]" : "]");
	else if (!any)
		puts("no process that is visible to you is being recorded");
	return 0;
}

int cmd_status(int argc, char **argv)
{
	const char *pid;
	bool json;
	int status = cli_flag_and_process("status", &option, argc, argv, &json, &pid);

	if (status >= 0)
		return status;
	return pid ? show_one(pid, json) : show_all(json);
}
