/*
 * The thread that writes the trace: a recorder within the program, the same files as `kymo record` makes.
 *
 * It blocks all signals, and sleeps on a futex that producers wake when they have filled a sub-buffer. Twice a second
 * it closes sub-buffers that are partly full. It takes no lock of the library's, so exit() can wait for it wherever it
 * was called.
 */
#include "record_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "trace/command.h"

#define MS UINT64_C(1000000)
#define FLUSH_NS (500 * MS)
#define LOOK_NS (1000 * MS)
#define WRITER_NICE (-10)
#define WRITER_NAME "kymo-marker"

/* ---- futexes --------------------------------------------------------------------------------- */

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* While the word is `value`, and no longer than `ns`; 0: for ever. */
static void wait(uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec timeout = { (time_t)(ns / (1000 * MS)), (long)(ns % (1000 * MS)) };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, ns ? &timeout : NULL, NULL, 0);
}

static bool is_ending(const struct self_recording *recording)
{
	return __atomic_load_n(&recording->memory.shared->is_ending, __ATOMIC_ACQUIRE);
}

void kymo_record_writer_end(struct record_rings *rings)
{
	__atomic_store_n(&rings->is_ending, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&rings->is_asleep, 0, __ATOMIC_SEQ_CST);
	wake(&rings->is_asleep);
}

void kymo_record_writer_wait(struct record_rings *rings)
{
	if (__atomic_load_n(&rings->writer, __ATOMIC_RELAXED) == gettid())
		return;
	while (!__atomic_load_n(&rings->is_done, __ATOMIC_ACQUIRE))
		wait(&rings->is_done, 0, 0);
}

/* ---- the metadata ---------------------------------------------------------------------------- */

static void keep_first(struct self_recording *recording, struct kymo_error *error)
{
	recording->error = kymo_error_first(recording->error, error);
}

/* The other threads' names. They may change between two looks, or the threads come and go. */
static void note_threads(struct self_recording *recording)
{
	struct record_rings *rings = recording->memory.shared;
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	while (tasks && (entry = readdir(tasks))) {
		kymo_cleanup_free char *comm = NULL;
		pid_t tid = (pid_t)atoi(entry->d_name);
		char path[64];

		if (tid <= 0 || tid == rings->writer)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
		if (kymo_read_file(AT_FDCWD, path, 256, &comm, NULL))
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		if (*comm)
			kymo_error_destroy(
				kymo_ctf_trace_add_thread(&recording->output.trace, tid, rings->pid, 0, comm));
	}
	if (tasks)
		closedir(tasks);
}

static struct kymo_error *describe_process(struct self_recording *recording)
{
	struct kymo_ctf_trace *trace = &recording->output.trace;
	pid_t pid = recording->memory.shared->pid;
	kymo_cleanup_free char *command = kymo_command_of(pid);
	struct kymo_error *error;
	char number[16];

	if (!command)
		return &kymo_error_no_memory;
	snprintf(number, sizeof(number), "%d", pid);
	error = kymo_ctf_trace_set_env(trace, "kymo_version", KYMO_VERSION);
	if (!error)
		error = kymo_ctf_trace_set_env(trace, "pid", number);
	if (!error)
		error = kymo_ctf_trace_set_env(trace, "command", command);
	if (!error)
		error = kymo_ctf_trace_set_env(trace, "mode", "discard");
	return error ? error : kymo_ctf_trace_add_process(trace, pid, 0, 0, command);
}

/* With the clock as it is known by now: to some parts in a thousand at first, as records don't wait, and better from
 * the next second on. */
static struct kymo_error *write_metadata(struct self_recording *recording)
{
	struct kymo_clock_sample now = kymo_clock_sample();
	struct kymo_error *error;

	kymo_clock_describe(&recording->begin, &now, &recording->output.trace);
	error = kymo_trace_metadata(&recording->output);
	recording->n_threads = recording->output.trace.n_threads;
	recording->has_rough_clock = now.monotonic_ns - recording->begin.monotonic_ns < LOOK_NS / 2;
	recording->has_metadata = true;
	return error;
}

/* Events that have come since the last time, in the order of their ids. */
static struct kymo_error *take_news(struct self_recording *recording)
{
	struct kymo_ctf_trace *trace = &recording->output.trace;
	struct record_news *news = __atomic_exchange_n(&recording->news, NULL, __ATOMIC_ACQUIRE), *list = NULL;
	struct kymo_ctf_event *grown;
	size_t n = 0;

	while (news) {
		struct record_news *next = news->next;

		news->next = list;
		list = news;
		news = next;
		n++;
	}
	grown = n ? reallocarray(trace->events, trace->n_events + n, sizeof(*grown)) : NULL;
	if (n && !grown) {
		kymo_record_news_destroy(list);
		return &kymo_error_no_memory;
	}
	if (n)
		trace->events = grown;
	while (list) {
		struct record_news *next = list->next;

		trace->events[trace->n_events++] = list->event;
		free(list);
		list = next;
	}
	return n ? kymo_trace_index_events(&recording->output) : NULL;
}

/* Before the first record of an event is written the metadata has the event. */
static struct kymo_error *update_metadata(struct self_recording *recording)
{
	struct kymo_error *error;

	if (recording->has_metadata && !__atomic_load_n(&recording->news, __ATOMIC_RELAXED))
		return NULL;
	error = take_news(recording);
	return error ? error : write_metadata(recording);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* One round. Returns how many packets were written. */
static size_t drain_ring(struct self_recording *recording)
{
	struct record_memory *memory = &recording->memory;
	size_t n_all = 0, n;

	for (size_t i = 0; i < memory->n_rings && !recording->error; i++) {
		struct kymo_ring_packet packet;

		if (!kymo_ring_peek(&memory->rings[i], &packet))
			continue;
		keep_first(recording, update_metadata(recording));
		if (recording->error)
			break;
		keep_first(recording, kymo_trace_drain(&recording->output, &memory->positions[i], &memory->rings[i],
						       memory->rings[i].cpu, &n));
		if (!recording->error)
			n_all += n;
	}
	return n_all;
}

static void flush_writer(struct self_recording *recording)
{
	for (size_t i = 0; i < recording->memory.n_rings; i++)
		kymo_ring_flush(&recording->memory.rings[i], kymo_clock_tsc());
}

static bool has_packets(const struct self_recording *recording)
{
	struct kymo_ring_packet packet;

	for (size_t i = 0; i < recording->memory.n_rings && !recording->error; i++)
		if (kymo_ring_peek(&recording->memory.rings[i], &packet))
			return true;
	return false;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* What has not been closed, and losses after the last packet. */
static void finish_rings(struct self_recording *recording)
{
	struct record_memory *memory = &recording->memory;

	for (size_t i = 0; i < memory->n_rings; i++)
		kymo_ring_finish(&memory->rings[i], kymo_clock_tsc());
	while (drain_ring(recording))
		;
	for (size_t i = 0; i < memory->n_rings; i++) {
		recording->lost += kymo_ring_lost(&memory->rings[i]);
		if (!recording->error)
			keep_first(recording,
				   kymo_trace_finish(&recording->output, &memory->positions[i], &memory->rings[i],
						     memory->rings[i].cpu, kymo_clock_tsc()));
	}
}

static void finish_writer(struct self_recording *recording)
{
	bool is_sealed = kymo_record_memory_seal(&recording->memory);
	struct record_rings *rings = recording->memory.shared;
	struct kymo_error *error;

	finish_rings(recording);
	note_threads(recording);
	if (__atomic_load_n(&rings->is_at_exit, __ATOMIC_RELAXED))
		kymo_ctf_trace_end_process(&recording->output.trace, rings->pid, kymo_clock_tsc());
	error = take_news(recording);
	kymo_clock_settle(&recording->begin);
	if (!error)
		error = write_metadata(recording);
	keep_first(recording, error);
	kymo_record_memory_release(&recording->memory, is_sealed);
	__atomic_store_n(&rings->is_done, 1, __ATOMIC_RELEASE);
	wake(&rings->is_done);
}

/*
 * Whether all threads of the program have ended: a process ends with its last thread, which must not be this one. Its
 * first thread, when it has ended before the others, is there as a zombie.
 */
static bool is_alone(void)
{
	kymo_cleanup_free char *stat = NULL;
	char *behind;
	char state;
	long n;

	if (kymo_read_file(AT_FDCWD, "/proc/self/stat", 4096, &stat, NULL))
		return false;
	behind = strrchr(stat, ')');
	return behind &&
	       sscanf(behind, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state, &n) ==
		       2 &&
	       state == 'Z' && n == 2;
}

/* ---- while it goes on ------------------------------------------------------------------------ */

static void look_after_writer(struct self_recording *recording)
{
	uint64_t now = kymo_now_ns();

	if (now >= recording->next_flush_ns) {
		recording->next_flush_ns = now + FLUSH_NS;
		flush_writer(recording);
	}
	if (now < recording->next_look_ns)
		return;
	recording->next_look_ns = now + LOOK_NS;
	note_threads(recording);
	if ((recording->has_rough_clock || recording->output.trace.n_threads != recording->n_threads) &&
	    !recording->error)
		keep_first(recording, write_metadata(recording));
	if (is_alone()) {
		__atomic_store_n(&recording->memory.shared->is_at_exit, 1, __ATOMIC_RELAXED);
		kymo_record_writer_end(recording->memory.shared);
	}
}

/* Producers look at `is_asleep` when they have changed a sub-buffer, so packets are looked for once more after it. */
static void sleep_a_while(struct self_recording *recording)
{
	struct record_rings *rings = recording->memory.shared;
	uint64_t now = kymo_now_ns();

	__atomic_store_n(&rings->is_asleep, 1, __ATOMIC_SEQ_CST);
	if (!is_ending(recording) && !has_packets(recording) && now < recording->next_flush_ns)
		wait(&rings->is_asleep, 1, recording->next_flush_ns - now);
	__atomic_store_n(&rings->is_asleep, 0, __ATOMIC_RELAXED);
}

static void *write_trace(void *data)
{
	struct self_recording *recording = data;

	prctl(PR_SET_NAME, WRITER_NAME);
	__atomic_store_n(&recording->memory.shared->writer, gettid(), __ATOMIC_RELAXED);
	/* On a busy machine a writer that gets its turn late loses records. May be refused. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), WRITER_NICE);
	note_threads(recording);
	keep_first(recording, describe_process(recording));
	if (!recording->error)
		keep_first(recording, update_metadata(recording));
	while (!is_ending(recording)) {
		if (!drain_ring(recording))
			sleep_a_while(recording);
		look_after_writer(recording);
	}
	finish_writer(recording);
	return NULL;
}

int kymo_record_writer_start(struct self_recording *recording)
{
	sigset_t all, before;
	int err;

	recording->next_flush_ns = kymo_now_ns() + FLUSH_NS;
	recording->next_look_ns = kymo_now_ns() + LOOK_NS;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&recording->thread, NULL, write_trace, recording);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}
