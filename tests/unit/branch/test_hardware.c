/*
 * Threads whose branches a processor records: here a stand-in for one. And what is said where the kernel has none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "branch/branch.h"
#include "branch/hardware.h"
#include "branch/perf.h"
#include "branch/raw_bts.h"

/* ---- a processor ----------------------------------------------------------------------------- */

struct branch_perf {
	pid_t tid;
};

static _Atomic int n_open, n_opened, n_read, refusal;

static int fake_open(pid_t tid, size_t tail, struct branch_perf **ret)
{
	struct branch_perf *perf;

	assert_int_equal(tail, 100);
	if (refusal)
		return -refusal;
	perf = malloc(sizeof(*perf));
	assert_non_null(perf);
	perf->tid = tid;
	n_open++;
	n_opened++;
	*ret = perf;
	return 0;
}

/* As BTS: the thread has jumped from its id, and to the number of the reading. */
static int fake_read(struct branch_perf *perf, uint8_t **bytes, size_t *size, bool *is_overwritten)
{
	const uint64_t record[3] = { (uint64_t)perf->tid, 0x1000u + (uint64_t)++n_read, 0 };

	*bytes = malloc(sizeof(record));
	assert_non_null(*bytes);
	memcpy(*bytes, record, sizeof(record));
	*size = sizeof(record);
	*is_overwritten = perf->tid == 0;
	return 0;
}

static void fake_close(struct branch_perf *perf)
{
	n_open--;
	free(perf);
}

static const struct branch_hardware fake = { fake_open, fake_read, fake_close, branch_bts_decode };

static uint64_t stamp(void)
{
	static uint64_t now;

	return ++now;
}

static struct kymo_branches *record(char *const *command, pid_t pid, bool follow)
{
	struct kymo_branch_spec all;
	const struct kymo_branches_options options = { .specs = &all,
						       .n_specs = 1,
						       .tail = 100,
						       .follow = follow,
						       .stamp = stamp,
						       .hardware = &fake,
						       .command = command,
						       .pid = pid };
	struct kymo_branches *branches;

	n_opened = n_read = 0;
	assert_null(kymo_branch_spec_parse("all", &all));
	assert_null(kymo_branches_open(&options, &branches));
	assert_null(kymo_branches_begin(branches));
	for (int i = 0; i < (pid ? 20 : 3000) && kymo_branches_has_threads(branches); i++)
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	kymo_branches_end(branches);
	kymo_branch_spec_deinit(&all);
	assert_int_equal(n_open, 0);
	return branches;
}

static struct kymo_branch_thread thread_of(const struct kymo_branches *branches, size_t i)
{
	struct kymo_branch_thread thread;

	kymo_branches_thread(branches, i, &thread);
	return thread;
}

static void what_a_thread_has_is_read_when_it_ends(void **state)
{
	struct kymo_branches *branches = record((char *[]){ "true", NULL }, 0, false);
	const struct kymo_branch *branch;
	struct kymo_branch_thread thread;

	assert_int_equal(kymo_branches_threads(branches), 1);
	thread = thread_of(branches, 0);
	assert_true(thread.has_ended && !thread.status && !thread.is_overwritten);
	assert_int_equal(thread.kept, 2);
	assert_int_equal(kymo_branches_at(branches, 0, 0)->kind, KYMO_BRANCH_EXEC);
	branch = kymo_branches_at(branches, 0, 1);
	assert_int_equal(branch->kind, KYMO_BRANCH_JUMP);
	assert_int_equal(branch->from, thread.tid);
	assert_int_equal(branch->to, 0x1001);
	assert_null(kymo_branches_warning(branches));
	kymo_branches_destroy(branches);
}

static void a_program_that_executes_another_has_both(void **state)
{
	struct kymo_branches *branches = record((char *[]){ "sh", "-c", "exec true", NULL }, 0, false);

	assert_int_equal(kymo_branches_threads(branches), 1);
	assert_int_equal(thread_of(branches, 0).kept, 4);
	assert_int_equal(kymo_branches_at(branches, 0, 1)->to, 0x1001);
	assert_int_equal(kymo_branches_at(branches, 0, 2)->kind, KYMO_BRANCH_EXEC);
	assert_int_equal(kymo_branches_at(branches, 0, 3)->to, 0x1002);
	assert_int_equal(n_opened, 2);
	kymo_branches_destroy(branches);
}

static void a_signal_that_ends_it_is_noted(void **state)
{
	static const int signals[] = { SIGSEGV, SIGKILL };

	for (size_t i = 0; i < 2; i++) {
		char *script = signals[i] == SIGKILL ? "kill -KILL $$" : "kill -SEGV $$";
		struct kymo_branches *branches = record((char *[]){ "sh", "-c", script, NULL }, 0, false);
		const struct kymo_branch_thread thread = thread_of(branches, 0);
		int status;

		assert_true(kymo_branches_command_ended(branches, &status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		/* SIGKILL is told by the status alone. */
		assert_int_equal(thread.signal, signals[i] == SIGKILL ? 0 : signals[i]);
		assert_int_equal(thread.at != 0, signals[i] != SIGKILL);
		assert_int_equal(thread.kept, 2);
		kymo_branches_destroy(branches);
	}
}

static void children_are_recorded_when_they_are_followed(void **state)
{
	char *const command[] = { "sh", "-c", "(exit 3); (exit 4); exit 5", NULL };
	struct kymo_branches *branches = record(command, 0, false);

	assert_int_equal(kymo_branches_threads(branches), 1);
	kymo_branches_destroy(branches);
	branches = record(command, 0, true);
	assert_int_equal(kymo_branches_threads(branches), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(thread_of(branches, i).kept, i ? 1 : 2);
	kymo_branches_destroy(branches);
}

/* It runs on. */
static void what_a_process_has_is_read_at_the_end(void **state)
{
	const pid_t pid = fork();
	struct kymo_branches *branches;

	if (!pid)
		for (;;)
			pause();
	branches = record(NULL, pid, false);
	assert_int_equal(kymo_branches_threads(branches), 1);
	assert_int_equal(thread_of(branches, 0).kept, 1);
	assert_false(thread_of(branches, 0).has_ended);
	kymo_branches_destroy(branches);
	assert_int_equal(kill(pid, SIGKILL), 0);
	waitpid(pid, NULL, 0);
}

static void what_the_kernel_refuses_is_told(void **state)
{
	struct kymo_branches *branches;

	refusal = EPERM;
	branches = record((char *[]){ "true", NULL }, 0, false);
	refusal = 0;
	assert_int_equal(thread_of(branches, 0).kept, 1); /* the exec */
	assert_string_equal(kymo_branches_warning(branches),
			    "the kernel does not let kymo record some threads: their branches are not recorded");
	kymo_branches_destroy(branches);
}

/* ---- sentences and rings --------------------------------------------------------------------- */

static void check_refusal(enum kymo_branch_hardware which, int err, enum kymo_error_code code, const char *sentence)
{
	struct kymo_error *error = branch_perf_refusal(which, -err, 3);

	assert_string_equal(error->message, sentence);
	assert_int_equal(error->code, code);
	kymo_error_destroy(error);
}

static void each_refusal_says_what_is_missing(void **state)
{
	check_refusal(KYMO_BRANCH_PT, ENOENT, KYMO_ERROR_NOT_FOUND,
		      "Intel PT is not available: the kernel offers none (/sys/bus/event_source/devices/intel_pt); the "
		      "processor has none, or a virtual machine hides it");
	check_refusal(KYMO_BRANCH_BTS, ENODEV, KYMO_ERROR_NOT_FOUND,
		      "BTS is not available: the kernel offers none (/sys/bus/event_source/devices/intel_bts); the "
		      "processor has none, or a virtual machine hides it");
	check_refusal(KYMO_BRANCH_LBR, EOPNOTSUPP, KYMO_ERROR_NOT_FOUND,
		      "LBR is not available: the counters of this processor record no branches");
	check_refusal(KYMO_BRANCH_BTS, EACCES, KYMO_ERROR_PERMISSION,
		      "the kernel does not let this user have BTS: kernel.perf_event_paranoid is 3, and has to be 1 or "
		      "less, or kymo needs the capability CAP_PERFMON");
	check_refusal(KYMO_BRANCH_PT, EBUSY, KYMO_ERROR_BUSY, "Intel PT is in use by another tracer of this machine");
	check_refusal(KYMO_BRANCH_PT, ENOBUFS, KYMO_ERROR_PERMISSION,
		      "the kernel locks no more memory for buffers of Intel PT: raise kernel.perf_event_mlock_kb or "
		      "'ulimit -l'");
	check_refusal(KYMO_BRANCH_PT, ENOSYS, KYMO_ERROR_NOT_FOUND,
		      "Intel PT can't be decoded: the library libipt.so.2 is not installed");
	check_refusal(KYMO_BRANCH_LBR, EMFILE, KYMO_ERROR_FAILED,
		      "the kernel does not record branches by LBR: Too many open files");
}

static void rings_are_unwound(void **state)
{
	static const uint8_t ring[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, begun[8] = { 1, 2, 3 };
	uint8_t bytes[8];

	assert_true(branch_perf_unwind(ring, 8, 3, bytes));
	assert_memory_equal(bytes, "\4\5\6\7\10\1\2\3", 8);
	assert_true(branch_perf_unwind(ring, 8, 0, bytes));
	assert_memory_equal(bytes, ring, 8);
	assert_true(branch_perf_unwind(ring, 8, 11, bytes)); /* heads may count all that was written */
	assert_memory_equal(bytes, "\4\5\6\7\10\1\2\3", 8);
	assert_false(branch_perf_unwind(begun, 5, 3, bytes));
	assert_memory_equal(bytes, "\0\0\1\2\3", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_thread_has_is_read_when_it_ends),
		cmocka_unit_test(a_program_that_executes_another_has_both),
		cmocka_unit_test(a_signal_that_ends_it_is_noted),
		cmocka_unit_test(children_are_recorded_when_they_are_followed),
		cmocka_unit_test(what_a_process_has_is_read_at_the_end),
		cmocka_unit_test(what_the_kernel_refuses_is_told),
		cmocka_unit_test(each_refusal_says_what_is_missing),
		cmocka_unit_test(rings_are_unwound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
