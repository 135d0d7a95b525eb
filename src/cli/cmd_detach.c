#include "cli/cmd_detach.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "probe/probe.h"

static const struct cli_option option = { 1, 'q', "quiet", NULL };

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void print_result(pid_t pid, const struct kymo_detach_result *result)
{
	bool was_anything_left =
		result->sites_restored || result->sites_clean || result->pages_verified || result->mappings_removed;

	for (size_t i = 0; i < result->n_recorders; i++)
		printf("recorder %d has ended its recording of process %d and taken its probes out\n",
		       result->recorders[i], pid);
	if (result->n_recorders && !was_anything_left)
		return;
	printf("process %d: %zu site%s restored", pid, result->sites_restored, plural(result->sites_restored));
	if (result->sites_clean)
		printf(", %zu had the original bytes already", result->sites_clean);
	printf(", %zu text page%s equal to the file, %zu mapping%s removed\n", result->pages_verified,
	       plural(result->pages_verified), result->mappings_removed, plural(result->mappings_removed));
	if (result->pads_left)
		puts("a thread may still return to a code pad, so the pads stay mapped; they do no harm, and detaching "
		     "again removes them");
}

static int detach(const char *text, bool quiet)
{
	struct kymo_detach_result result = { 0 };
	struct kymo_error *error;
	pid_t pid;

	if (!cli_parse_pid(text, &pid))
		return cli_usage("detach", "'%s' is no process id", text);
	error = kymo_detach(pid, &result);
	if (error)
		return cli_fail("detach", error);
	if (!quiet)
		print_result(pid, &result);
	if (result.note)
		cli_warn("%s", result.note);
	free(result.note);
	free(result.recorders);
	return 0;
}

int cmd_detach(int argc, char **argv)
{
	const char *pid;
	bool quiet;
	int status = cli_flag_and_process("detach", &option, argc, argv, &quiet, &pid);

	if (status >= 0)
		return status;
	return pid ? detach(pid, quiet)
		   : cli_usage("detach", "which process? give a PID; 'kymo status' lists those that are recorded");
}
