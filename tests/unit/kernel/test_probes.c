/*
 * Probes of the running kernel's, in this very process. Skipped where this user may not have them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "wire/event.h"

/* Of struct pt_regs, x86-64. */
enum { AX = 80, SI = 104, DI = 112, SP = 152 };

#define CALLS 500
#define MARK UINT64_C(0x1122334455667788)

struct found {
	uint64_t values[4];
	int32_t tid, pid;
	uint32_t id;
	uint8_t faults;
	char name[16];
};

static struct found found[4 * CALLS];
static size_t n_found;
static uint64_t last_lost;
static const enum kymo_type *types;
static size_t n_types;
static bool has_faults;

__attribute__((noinline)) static long probed(long a, long b)
{
	__asm__ volatile("" : "+r"(a), "+r"(b)::"memory");
	return a * 3 + b;
}

__attribute__((noinline)) static long other(long a)
{
	__asm__ volatile("" : "+r"(a)::"memory");
	return a + 1;
}

static void check_none(struct kymo_error *error)
{
	if (error)
		fail_msg("%s", error->message);
}

/* Where in the file of this program a function is. */
static uint64_t offset_of(const void *function)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset, at = (unsigned long)function;
	uint64_t ret = 0;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && at >= start && at < end)
			ret = at - start + offset;
	fclose(maps);
	assert_true(ret);
	return ret;
}

static struct kymo_error *see(const struct kymo_kernel_sample *sample, void *data)
{
	struct found *next = &found[n_found % (sizeof(found) / sizeof(found[0]))];
	size_t at = KYMO_EVENT_ARGS_OFFSET;
	uint64_t header;

	memset(next, 0, sizeof(*next));
	memcpy(&header, sample->record, 8);
	memcpy(&next->tid, sample->record + KYMO_EVENT_TID_OFFSET, 4);
	assert_int_equal(next->tid, sample->tid);
	next->id = (uint32_t)header;
	next->pid = sample->pid;
	if (sample->name)
		snprintf(next->name, sizeof(next->name), "%s", sample->name);
	if (has_faults)
		next->faults = sample->record[at++];
	for (size_t i = 0; i < n_types; i++) {
		memcpy(&next->values[i], sample->record + at, kymo_type_size(types[i]));
		at += kymo_type_size(types[i]);
	}
	assert_int_equal(at, sample->size);
	assert_true(sample->lost >= last_lost);
	last_lost = sample->lost;
	n_found++;
	return NULL;
}

static struct kymo_kernel *open_kernel(struct kymo_kernel_options options)
{
	struct kymo_kernel *kernel = NULL;
	struct kymo_error *error;

	n_found = 0;
	last_lost = 0;
	if (!options.buffer_size)
		options.buffer_size = 1 << 20;
	error = kymo_kernel_create(&options, &kernel);
	if (error && (error->code == KYMO_ERROR_PERMISSION || error->code == KYMO_ERROR_NOT_FOUND)) {
		print_message("%s\n", error->message);
		kymo_error_destroy(error);
		skip();
	}
	check_none(error);
	return kernel;
}

static void attach(struct kymo_kernel *kernel, const void *function, uint32_t id, bool is_return,
		   const struct kymo_kernel_arg *args, size_t n_args, bool faults)
{
	static enum kymo_type of_args[KYMO_EVENT_MAX_ARGS];
	struct kymo_kernel_probe probe = {
		.is_return = is_return, .args = args, .n_args = n_args, .has_faults = faults
	};
	struct kymo_kernel_site place = { .id = id, .offset = offset_of(function), .err = 1 };

	probe.file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(probe.file >= 0);
	check_none(kymo_kernel_attach(kernel, &probe, &place, 1));
	close(probe.file);
	assert_int_equal(place.err, 0);
	for (size_t i = 0; i < n_args; i++)
		of_args[i] = args[i].type;
	types = of_args;
	n_types = n_args;
	has_faults = faults;
}

static uint64_t finish(struct kymo_kernel *kernel)
{
	uint64_t lost = 0;

	kymo_kernel_detach(kernel);
	check_none(kymo_kernel_drain(kernel, see, NULL));
	for (size_t i = 0; i < kymo_kernel_n_rings(kernel); i++)
		lost += kymo_kernel_lost(kernel, i);
	kymo_kernel_destroy(kernel);
	return lost;
}

static void call_many(long (*function)(long, long))
{
	for (long i = 0; i < CALLS; i++)
		assert_int_equal(function(i, -i), 2 * i);
}

static int by_first(const void *a, const void *b)
{
	int64_t x = (int64_t)((const struct found *)a)->values[0], y = (int64_t)((const struct found *)b)->values[0];

	return (x > y) - (x < y);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void check_registers(bool no_multi)
{
	static const struct kymo_kernel_arg args[] = {
		{ .source = KYMO_KERNEL_REGISTER, .type = KYMO_TYPE_U64, .at = DI, .value = 0 },
		{ .source = KYMO_KERNEL_REGISTER, .type = KYMO_TYPE_S16, .at = SI, .value = 0 },
		{ .source = KYMO_KERNEL_IMMEDIATE, .type = KYMO_TYPE_X64, .at = 0, .value = (int64_t)MARK },
		{ .source = KYMO_KERNEL_REGISTER, .type = KYMO_TYPE_U8, .at = DI, .value = 7 },
	};
	struct kymo_kernel *kernel =
		open_kernel((struct kymo_kernel_options){ .pid = getpid(), .names = true, .no_multi = no_multi });

	attach(kernel, probed, 77, false, args, 4, false);
	call_many(probed);
	assert_int_equal(finish(kernel), 0);
	assert_int_equal(n_found, CALLS);
	qsort(found, CALLS, sizeof(found[0]), by_first);
	for (size_t i = 0; i < CALLS; i++) {
		assert_int_equal(found[i].id, 77);
		assert_int_equal(found[i].tid, getpid());
		assert_int_equal(found[i].pid, getpid());
		assert_string_equal(found[i].name, "unit-kernel-pro");
		assert_true(found[i].values[0] == i && found[i].values[1] == (uint16_t)-i &&
			    found[i].values[2] == MARK && found[i].values[3] == (uint8_t)(i + 7));
	}
}

static void each_call_gives_its_registers(void **state)
{
	check_registers(false);
}

static void perf_events_serve_where_there_are_no_links_for_many(void **state)
{
	check_registers(true);
}

static void more_than_one_by_one_can_serve_are_refused_before_the_first(void **state)
{
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid(), .no_multi = true });
	struct kymo_kernel_site *places = calloc(KYMO_KERNEL_MAX_SINGLE + 1, sizeof(*places));
	const struct kymo_kernel_probe probe = { .file = -1 };
	struct kymo_error *error;

	assert_non_null(places);
	error = kymo_kernel_attach(kernel, &probe, places, KYMO_KERNEL_MAX_SINGLE + 1);
	assert_non_null(error);
	assert_int_equal(error->code, KYMO_ERROR_UNSAFE);
	assert_non_null(strstr(error->message, "1001 would take 50 s; ask for 1000 at most"));
	kymo_error_destroy(error);
	free(places);
	kymo_kernel_destroy(kernel);
}

static void memory_is_read_and_faults_are_told(void **state)
{
	static const struct kymo_kernel_arg args[] = {
		{ .source = KYMO_KERNEL_MEMORY, .type = KYMO_TYPE_X64, .at = DI, .value = 8 },
		{ .source = KYMO_KERNEL_MEMORY, .type = KYMO_TYPE_X32, .at = SI, .value = 0 },
	};
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid() });
	uint64_t words[2] = { 1, MARK };

	attach(kernel, probed, 1, false, args, 2, true);
	probed((long)words, 8);
	assert_int_equal(finish(kernel), 0);
	assert_int_equal(n_found, 1);
	assert_true(found[0].values[0] == MARK && found[0].values[1] == 0 && found[0].faults == 2);
}

static void returns_give_what_is_returned(void **state)
{
	static const struct kymo_kernel_arg args[] = {
		{ .source = KYMO_KERNEL_REGISTER, .type = KYMO_TYPE_S64, .at = AX, .value = 0 }
	};
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid() });

	attach(kernel, probed, 5, true, args, 1, false);
	call_many(probed);
	assert_int_equal(finish(kernel), 0);
	assert_int_equal(n_found, CALLS);
	qsort(found, CALLS, sizeof(found[0]), by_first);
	for (size_t i = 0; i < CALLS; i++)
		assert_int_equal(found[i].values[0], 2 * i);
}

static void *thread(void *data)
{
	call_many(probed);
	*(int *)data = (int)syscall(SYS_gettid);
	return NULL;
}

static void threads_to_come_are_recorded(void **state)
{
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid() });
	pthread_t id;
	int tid = 0;

	attach(kernel, probed, 1, false, NULL, 0, false);
	assert_int_equal(pthread_create(&id, NULL, thread, &tid), 0);
	pthread_join(id, NULL);
	assert_int_equal(finish(kernel), 0);
	assert_int_equal(n_found, CALLS);
	for (size_t i = 0; i < CALLS; i++)
		assert_true(found[i].tid == tid && found[i].pid == getpid());
}

static pid_t call_in_child(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		call_many(probed);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return pid;
}

static void children_are_left_out_unless_followed(void **state)
{
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid() });

	attach(kernel, probed, 1, false, NULL, 0, false);
	call_in_child();
	assert_int_equal(finish(kernel), 0);
	assert_int_equal(n_found, 0);
}

static void followed_children_are_recorded_from_their_first_call(void **state)
{
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid(), .follow = true });
	size_t of_child = 0;
	pid_t pid;

	attach(kernel, probed, 1, false, NULL, 0, false);
	call_many(probed);
	pid = call_in_child();
	assert_true(kymo_kernel_has_processes(kernel));
	assert_int_equal(finish(kernel), 0);
	assert_int_equal(n_found, 2 * CALLS);
	for (size_t i = 0; i < n_found; i++)
		of_child += found[i].pid == pid;
	assert_int_equal(of_child, CALLS);
}

static void ids_are_those_of_the_process_itself(void **state)
{
	struct kymo_kernel *kernel;
	int go[2], status;
	pid_t pid;
	char c;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0)
		skip();
	if (!pid) {
		if (read(go[0], &c, 1) == 1 && getpid() == 1)
			call_many(probed);
		_exit(0);
	}
	kernel = open_kernel((struct kymo_kernel_options){ .pid = pid });
	attach(kernel, probed, 1, false, NULL, 0, false);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(go[0]);
	close(go[1]);
	assert_int_equal(finish(kernel), 0);
	assert_int_equal(n_found, CALLS);
	for (size_t i = 0; i < CALLS; i++)
		assert_true(found[i].tid == 1 && found[i].pid == 1);
}

static void several_events_at_one_place_are_told_apart(void **state)
{
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid() });
	size_t seen[10] = { 0 };

	attach(kernel, probed, 3, false, NULL, 0, false);
	attach(kernel, probed, 4, false, NULL, 0, false);
	attach(kernel, other, 9, false, NULL, 0, false);
	probed(1, 2);
	other(5);
	other(6);
	assert_int_equal(finish(kernel), 0);
	for (size_t i = 0; i < n_found; i++)
		seen[found[i].id]++;
	assert_true(seen[3] == 1 && seen[4] == 1 && seen[9] == 2 && n_found == 4);
}

static void losses_are_counted_exactly(void **state)
{
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid(), .buffer_size = 4096 });
	uint64_t lost;

	attach(kernel, probed, 1, false, NULL, 0, false);
	call_many(probed);
	lost = finish(kernel);
	assert_true(lost > 0);
	assert_int_equal(n_found + lost, CALLS);
}

static void a_place_that_the_kernel_refuses_is_told_alone(void **state)
{
	struct kymo_kernel *kernel = open_kernel((struct kymo_kernel_options){ .pid = getpid() });
	struct kymo_kernel_probe probe = { .args = NULL };
	struct kymo_kernel_site places[3] = {
		{ .id = 1, .offset = offset_of(probed) },
		{ .id = 2, .offset = UINT64_C(1) << 50 }, /* far beyond the end of the file */
		{ .id = 3, .offset = offset_of(other) },
	};

	probe.file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	check_none(kymo_kernel_attach(kernel, &probe, places, 3));
	close(probe.file);
	assert_int_equal(places[0].err, 0);
	assert_true(places[1].err < 0);
	assert_int_equal(places[2].err, 0);
	n_types = 0;
	has_faults = false;
	other(probed(1, 2));
	finish(kernel);
	assert_int_equal(n_found, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_gives_its_registers),
		cmocka_unit_test(perf_events_serve_where_there_are_no_links_for_many),
		cmocka_unit_test(more_than_one_by_one_can_serve_are_refused_before_the_first),
		cmocka_unit_test(memory_is_read_and_faults_are_told),
		cmocka_unit_test(returns_give_what_is_returned),
		cmocka_unit_test(threads_to_come_are_recorded),
		cmocka_unit_test(children_are_left_out_unless_followed),
		cmocka_unit_test(followed_children_are_recorded_from_their_first_call),
		cmocka_unit_test(ids_are_those_of_the_process_itself),
		cmocka_unit_test(several_events_at_one_place_are_told_apart),
		cmocka_unit_test(losses_are_counted_exactly),
		cmocka_unit_test(a_place_that_the_kernel_refuses_is_told_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
