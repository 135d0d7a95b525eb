#include "cli/cmd_record.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/branch_options.h"
#include "cli/modules.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/record_options.h"
#include "cli/signals.h"
#include "report/report.h"
#include "syscall/call.h"

#define BUFFER_DEFAULT (UINT64_C(16) << 20)
#define SOON_MS 200

/* ---- signals --------------------------------------------------------------------------------- */

/* Of the recording that goes on: signal handlers change it. */
static struct kymo_record_control control;

/* An interrupt that is not the command's stops the recording. */
static void on_signal(int number)
{
	control.stop = 1;
}

static void on_pipe(int number)
{
}

static void on_snapshot(int number)
{
	control.snapshots++;
}

static void handle(int number, void (*handler)(int number))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, before;

	sigemptyset(&action.sa_mask);
	if (!sigaction(number, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

static void catch_signals(const struct kymo_record_options *options)
{
	cli_catch_signals(options->command, 0, on_signal);
	/* A closed stderr must not end a recording in disorder: it comes back as an error of write(). SIG_IGN would
	 * outlive exec in the command; handlers don't. */
	handle(SIGPIPE, on_pipe);
	if (options->overwrite || options->keep)
		handle(SIGUSR1, on_snapshot);
}

#define RATE_SECONDS 2.8
#define RATE_SILENCE 1.5 /* seconds */

/* ---- what the user sees ---------------------------------------------------------------------- */

/* Without a live line, print one line when all probes are in, for scripts that wait for it. A command's stderr is its
 * own. */
static void announce(struct cli_recording *recording, size_t n_sites, size_t n_processes)
{
	if (recording->announced || recording->quiet || recording->live.enabled || recording->options.command)
		return;
	if (recording->options.n_branches && !recording->options.n_specs) {
		fprintf(stderr, "kymo: recording branches of process %d\n", recording->options.pid);
		fflush(stderr);
		recording->announced = true;
		return;
	}
	if (recording->options.all)
		fprintf(stderr, "kymo: recording every process, ");
	else if (n_processes <= 1 &&
		 recording->options.n_pids <= 1) /* one that is recorded from outside is not counted */
		fprintf(stderr, "kymo: recording process %d, ", recording->options.pid);
	else
		fprintf(stderr, "kymo: recording %zu %s, ", n_processes, n_processes == 1 ? "process" : "processes");
	fprintf(stderr, "%zu %s\n", n_sites, n_sites == 1 ? "site" : "sites");
	fflush(stderr);
	recording->announced = true;
}

/* Hits that are aggregated are events, too. */
static uint64_t events_of(const struct kymo_record_progress *progress)
{
	return progress->events + progress->aggregated;
}

static const char *const phases[] = {
	[KYMO_RECORD_PLANNING] = "planning",
	[KYMO_RECORD_RUNNING] = "recording",
	[KYMO_RECORD_STOPPING] = "stopping",
	[KYMO_RECORD_DONE] = "done",
};

/*
 * Events a second. They come by the packet, and those of a slow program by what is read once a second: so the rate is
 * that between moments at which their number has changed, of three seconds or the last two of these. A number that
 * stands still for longer is a rate, too.
 */
static double rate_of(struct cli_recording *recording, const struct kymo_record_progress *progress)
{
	const struct cli_rate_sample now = { progress->seconds, events_of(progress) }, *before = recording->before;
	unsigned int n = recording->n_before, first;

	if (!n || before[(n - 1) % CLI_RATE_SAMPLES].events != now.events ||
	    now.seconds - before[(n - 1) % CLI_RATE_SAMPLES].seconds > RATE_SILENCE) {
		recording->before[n % CLI_RATE_SAMPLES] = now;
		recording->n_before = ++n;
	}
	const struct cli_rate_sample *newest = &before[(n - 1) % CLI_RATE_SAMPLES], *oldest = newest;

	for (first = n > CLI_RATE_SAMPLES ? n - CLI_RATE_SAMPLES : 0; n-- > first + 1;) {
		oldest = &before[(n - 1) % CLI_RATE_SAMPLES];
		if (newest->seconds - oldest->seconds >= RATE_SECONDS)
			break;
	}
	return newest->seconds > oldest->seconds && newest->events > oldest->events
		       ? (double)(newest->events - oldest->events) / (newest->seconds - oldest->seconds)
		       : 0;
}

static void draw(struct cli_recording *recording, const struct kymo_record_progress *progress)
{
	const double rate_now = rate_of(recording, progress);
	const char *sites = progress->n_sites == 1 ? "site" : "sites";
	char bytes[32], events[32], rate[32], lost[32], line[256];

	if (progress->phase == KYMO_RECORD_RUNNING)
		snprintf(line, sizeof(line),
			 "kymo: recording %.1f s   %s events   %s/s   %s   %s lost   %zu %s   (Ctrl-C stops)",
			 progress->seconds, cli_format_count(events_of(progress), events),
			 cli_format_count((uint64_t)rate_now, rate), cli_format_bytes(progress->bytes, bytes),
			 cli_format_count(progress->lost, lost), progress->n_sites, sites);
	else
		snprintf(line, sizeof(line), "kymo: %s   %zu %s", phases[progress->phase], progress->n_sites, sites);
	cli_live_show(&recording->live, line);
}

/* The command, if there is one, was forked. The process that started this may have ended: then it is over. */
static void become_worker(struct cli_recording *recording)
{
	if (!recording->has_left_job)
		cli_worker_leave_job();
	recording->has_left_job = true;
	if (cli_worker_is_alone(&recording->worker))
		control.stop = 1;
}

static void on_progress(const struct kymo_record_progress *progress, void *data)
{
	struct cli_recording *recording = data;
	bool running = progress->phase == KYMO_RECORD_RUNNING;

	recording->lost = progress->lost;
	if (progress->command_ended)
		cli_signals_are_ours();
	if (running && recording->worker.front >= 0)
		become_worker(recording);
	if (running)
		announce(recording, progress->n_sites, progress->n_processes);
	/* The terminal is the command's while it runs: it may be half way through a line, or an editor. */
	if (running && recording->options.command)
		cli_live_clear(&recording->live);
	else
		draw(recording, progress);
}

static void on_warning(const char *sentence, void *data)
{
	struct cli_recording *recording = data;

	cli_live_clear(&recording->live);
	cli_warn("%s", sentence);
}

static void on_tell(const char *sentence, void *data)
{
	struct cli_recording *recording = data;

	cli_live_clear(&recording->live);
	if (!recording->quiet)
		fprintf(stderr, "kymo: %s\n", sentence);
}

/* A larger buffer helps only where buffers were full. */
static void tell_losses(const struct cli_recording *recording, const struct kymo_record_result *result)
{
	char bytes[32], lost[32];

	if (result->lost_in_vforks)
		fprintf(stderr,
			"kymo: lost in vfork children before their exec, whose hits are counted and not recorded: %s\n",
			cli_format_count(result->lost_in_vforks, lost));
	if (result->lost == result->lost_in_vforks || recording->options.overwrite)
		return;
	if (result->were_full)
		fprintf(stderr, "kymo: a larger --buffer than %s a CPU loses less\n",
			cli_format_bytes(recording->options.buffer_size, bytes));
	else if (result->full_size)
		fprintf(stderr, "kymo: the buffers of children were full, which have %s a CPU whatever --buffer says\n",
			cli_format_bytes(result->full_size, bytes));
	else if (result->were_small_yet)
		fputs("kymo: a process filled a buffer before kymo had given it all of its memory, which a buffer gets "
		      "with use\n",
		      stderr);
	else
		fputs("kymo: no CPU's buffer was full: what was lost found them in use by other threads, no packet "
		      "that it fits into, or a stack that was nearly full\n",
		      stderr);
}

/* "1,234,567 branches, the last 4,096 of each thread in d". */
static void summarize_branches(const struct cli_recording *recording, const struct kymo_record_result *result)
{
	const char *directory = recording->options.directory;
	const bool is_elsewhere = strcmp(directory, "kymo.data") != 0;
	const bool has_crashed = result->has_crash || (result->command_ended && WIFSIGNALED(result->command_status));
	char taken[32], kept[32];

	if (result->are_overwritten)
		fprintf(stderr, "kymo: the newest %s %s (earlier ones were overwritten)",
			cli_format_count(result->kept_branches, kept),
			result->kept_branches == 1 ? "branch" : "branches");
	else if (result->kept_branches < result->branches)
		fprintf(stderr, "kymo: %s branches, the last %s of them", cli_format_count(result->branches, taken),
			cli_format_count(result->kept_branches, kept));
	else
		fprintf(stderr, "kymo: %s %s", cli_format_count(result->branches, taken),
			result->branches == 1 ? "branch" : "branches");
	fprintf(stderr, " in %s; '%s%s%s' shows them\n", directory,
		has_crashed ? "kymo report --crash" : "kymo branches", is_elsewhere ? " " : "",
		is_elsewhere ? directory : "");
}

/* "12,345 events (58.6 KiB), none lost, in d". Their number is exact unless it says so. */
static void summarize(const struct cli_recording *recording, const struct kymo_record_result *result)
{
	const char *directory = recording->options.directory;
	const bool is_elsewhere = strcmp(directory, "kymo.data") != 0;
	char bytes[32], events[32], lost[32];

	if (result->aggregated && !recording->has_written)
		fprintf(stderr, "kymo: %s %s aggregated", cli_format_count(result->aggregated, events),
			result->aggregated == 1 ? "hit" : "hits");
	else if (!result->events)
		fputs("kymo: no events", stderr);
	else
		fprintf(stderr, "kymo: %s%s %s (%s)", result->is_estimate ? "about " : "",
			cli_format_count(result->events, events), result->events == 1 ? "event" : "events",
			cli_format_bytes(result->bytes, bytes));
	if (result->in_no_row)
		fprintf(stderr, ", %s in no row", cli_format_count(result->in_no_row, lost));
	fprintf(stderr, ", %s lost, in %s; 'kymo report%s%s' shows them\n",
		result->lost ? cli_format_count(result->lost, lost) : "none", directory, is_elsewhere ? " " : "",
		is_elsewhere ? directory : "");
	if (result->lost)
		tell_losses(recording, result);
}

/* Probes, branches, or both. */
static void summarize_all(const struct cli_recording *recording, const struct kymo_record_result *result)
{
	struct kymo_record_result probes = *result;

	probes.events -= result->kept_branches;
	if (recording->options.n_specs)
		summarize(recording, &probes);
	if (recording->options.n_branches)
		summarize_branches(recording, result);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A while, in which the front may end. */
static bool waits_no_longer(const struct cli_recording *recording)
{
	poll(NULL, 0, SOON_MS);
	return cli_worker_is_alone(&recording->worker);
}

/* The recording was over before the command: wait for it, as its exit status is kymo's. A signal ends the waiting. */
static int wait_for_command(const struct cli_recording *recording)
{
	int status, last = 0;
	pid_t ended;

	if (!recording->quiet)
		fprintf(stderr, "kymo: waiting for %s to end\n", recording->options.command[0]);
	while (!control.stop) {
		if (recording->worker.front >= 0 && waits_no_longer(recording))
			break;
		ended = waitpid(-1, &status, recording->worker.front >= 0 ? WNOHANG : 0);
		if (ended > 0)
			last = cli_status_of(status);
		else if (ended < 0 && errno != EINTR)
			return last;
	}
	return 128 + cli_last_signal();
}

/* Tracers of followed processes work through this process. One that is about to leave is not told of. */
static void serve_others(struct kymo_record_result *result)
{
	bool is_anyone_left;
	pid_t who;

	control.stop = 0;
	is_anyone_left = kymo_record_serve(result, &control, SOON_MS, &who);
	if (is_anyone_left && !control.stop)
		fprintf(stderr,
			"kymo: kymo process %d still traces what was recorded, through this one, which stays for it; "
			"Ctrl-C ends that, too\n",
			who);
	while (is_anyone_left && !control.stop) {
		if (result->command_ended)
			cli_signals_are_ours(); /* no Ctrl-C is the command's any more */
		is_anyone_left = kymo_record_serve(result, &control, SOON_MS, &who);
	}
	kymo_record_leave(result);
}

static void on_tables(const struct kymo_aggr_table *tables, size_t n, void *data)
{
	const struct cli_recording *recording = data;

	if (recording->view->show(tables, n, recording->lost, recording->view->data))
		control.stop = 1;
}

/* What was asked for is shown at once where it is all that there is. */
static int show_tables(const struct cli_recording *recording)
{
	struct kymo_report_options options = { .mode = KYMO_REPORT_TABLES };
	struct kymo_error *error;

	if (recording->view || !recording->n_tables || recording->has_written)
		return 0;
	cli_page_options(&options);
	error = kymo_report(recording->options.directory, &options, stdout);
	return error ? cli_fail(recording->name, error) : 0;
}

/* The tables lack what was lost. */
static void end_view(const struct cli_recording *recording, const struct kymo_record_result *result)
{
	char lost[32];

	recording->view->end(recording->view->data);
	if (!result->lost || recording->quiet)
		return;
	fflush(stdout);
	fprintf(stderr, "kymo: %s %s lost\n", cli_format_count(result->lost, lost),
		result->lost == 1 ? "hit was" : "hits were");
	tell_losses(recording, result);
}

/* -1: go on; else this is the front, and it is over. What steps a thread must not be what a user kills: the thread
 * would die of it. */
static int begin_branches(struct cli_recording *recording)
{
	if (recording->options.branch_source == KYMO_RECORD_BRANCHES_CLONES)
		return -1;
	return cli_worker_begin(recording->options.command, CLI_WORKER_LOSS, &recording->worker);
}

static int run_recording(struct cli_recording *recording)
{
	struct kymo_record_result result = { 0 };
	struct kymo_error *error;
	bool was_stopped;
	int failed;

	cli_modules_close(); /* what probes mean is known */
	failed = recording->options.n_branches ? begin_branches(recording) : -1;
	if (failed >= 0)
		return failed;
	catch_signals(&recording->options);
	cli_worker_take_signals(&recording->worker);
	recording->options.tell = on_tell;
	cli_live_init(&recording->live, !recording->quiet && !recording->view);
	recording->options.progress = on_progress;
	recording->options.warn = on_warning;
	if (recording->view)
		recording->options.tables = on_tables;
	recording->options.data = recording;
	error = kymo_record(&recording->options, &result);
	cli_live_clear(&recording->live);
	if (error && recording->view)
		recording->view->end(recording->view->data);
	if (error)
		return cli_fail(recording->name, error);
	if (recording->view)
		end_view(recording, &result);
	else if (!recording->quiet)
		summarize_all(recording, &result);
	failed = show_tables(recording);
	was_stopped = control.stop;
	if (result.shared || result.shared_hub)
		serve_others(&result);
	if (!recording->options.command)
		return failed;
	if (result.command_ended)
		return cli_status_of(result.command_status);
	if (!was_stopped && !control.stop)
		return wait_for_command(recording);
	if (!recording->quiet)
		fprintf(stderr, "kymo: %s runs on\n", recording->options.command[0]);
	return 128 + cli_last_signal();
}

int cli_record(int argc, char **argv, const struct cli_record_view *view)
{
	struct cli_recording recording = { .name = argv[0],
					   .view = view,
					   .worker = { .front = -1 },
					   .options = { .directory = view ? view->directory : "kymo.data",
							.control = &control,
							.existing = true,
							.buffer_size = BUFFER_DEFAULT,
							.string_size = KYMO_SYSCALL_STRING_SIZE } };
	int status = cli_record_read_options(&recording, argc, argv);

	if (status < 0)
		status = run_recording(&recording);
	for (size_t i = 0; i < recording.specs.n; i++)
		kymo_spec_deinit(&recording.specs.items[i]);
	kymo_vec_deinit(&recording.specs);
	cli_branches_deinit(&recording);
	cli_aggregations_deinit(&recording.aggregations);
	cli_targets_deinit(&recording.targets);
	cli_config_deinit(&recording.config);
	return status;
}

int cmd_record(int argc, char **argv)
{
	return cli_record(argc, argv, NULL);
}
