/*
 * The table of readable memory, with this process as its own target: threads read by it, while others take the memory
 * away, and one adds pages as the recorder does. No load may fault.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "arch/pad.h"
#include "arch/x86_64/guest_read.h"
#include "arch/x86_64/guest_strike.h"
#include "base/io.h"
#include "probe/install/readable_pages.h"
#include "probe/probes.h"
#include "probe/threads/readable.h"

#define PAGE 4096u
#define N_READERS 4
#define N_TAKERS 2
#define N_SLOTS 8u /* two pages each */
#define VALUE UINT64_C(0x5a5a5a5a5a5a5a5a)
#define REGISTER_FENCES 256

static char live[PAGE] __attribute__((aligned(PAGE)));
static struct kymo_wire_vforks vforks;
static struct kymo_probes *probes;
static struct kymo_wire_readable *table;
static char *memory;
static bool is_over;
static uint64_t n_read, n_in_place, n_faults, n_wrong;

static int64_t strike(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	const struct kymo_guest_frame frame = { .rax = (uint64_t)number, .rdx = c, .r10 = d };
	const struct kymo_guest_saved saved = { .rdi = a, .rsi = b, .r8 = UINT64_MAX };

	const struct kymo_guest_call call = kymo_guest_strike(&frame, live, 0, &saved);

	return call.is_made ? call.result
			    : syscall(number, a, b, c, d, -1, 0); /* as the pad, by the program's own instruction */
}

static void set_live(unsigned int at, uint64_t value)
{
	memcpy(live + at, &value, sizeof(value));
}

static int set_up(void **state)
{
	const size_t size = sizeof(struct kymo_wire_readable) + PAGE;
	int fd = memfd_create("table", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size) || syscall(SYS_membarrier, REGISTER_FENCES, 0, 0))
		return -1;
	probes = calloc(1, sizeof(*probes));
	probes->shared.data.fd = fd;
	probes->shared.data.head = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	probes->shared.readable_at = PAGE;
	probes->pid = getpid();
	probes->has_shared = true;
	probes->wanted.options.fast_reads = true;
	probes->threads.state = KYMO_PAD_RSEQ;
	probes->readable.is_registered = true;
	probes->reading.is_used = true;
	probes_prepare_readable(probes);
	table = (void *)((char *)probes->shared.data.head + PAGE);
	table->state = KYMO_WIRE_READABLE_OPEN;
	live[0] = KYMO_PAD_RSEQ;
	set_live(KYMO_PAD_LIVE_RSEQ_OFFSET, (uint64_t)__rseq_offset);
	set_live(KYMO_PAD_LIVE_VFORKS, (uint64_t)&vforks);
	set_live(KYMO_PAD_LIVE_READER, (uint64_t)getpid());
	set_live(KYMO_PAD_LIVE_READABLE, (uint64_t)table);
	memory = mmap(NULL, N_SLOTS * 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(memory, 0x5a, N_SLOTS * 2 * PAGE);
	return memory == MAP_FAILED;
}

/* What is written there once the kernel does not read any more tells by which way a value came. */
static bool is_readable(const void *at)
{
	const uint64_t page = (uint64_t)at / PAGE, gib = page / KYMO_WIRE_GIB_PAGES;

	return table->gib[gib % KYMO_WIRE_READABLE_GIB] == gib + 1 &&
	       table->pages[gib % KYMO_WIRE_READABLE_GIB][page % KYMO_WIRE_GIB_PAGES] == KYMO_WIRE_PAGE_READABLE;
}

static void add(const void *at)
{
	uint64_t value;

	kymo_guest_read((char *)&value, live, sizeof(value), (uint64_t)at);
	probes_look_at_readable(probes);
}

static void a_page_is_added_when_it_was_read_and_struck_when_it_goes(void **state)
{
	uint64_t value = 0;

	assert_false(is_readable(memory));
	add(memory);
	assert_true(is_readable(memory));
	assert_true(is_readable(memory + PAGE)); /* what is around it, too */
	assert_int_equal(kymo_guest_read((char *)&value, live, 8, (uint64_t)memory + PAGE - 4), 8);
	assert_int_equal(value, VALUE);
	assert_int_equal(strike(SYS_mprotect, (uint64_t)memory, PAGE, PROT_NONE, 0), 0);
	assert_false(is_readable(memory));
	assert_true(is_readable(memory + PAGE));
	assert_int_not_equal(kymo_guest_read((char *)&value, live, 8, (uint64_t)memory + PAGE - 4), 8);
	probes_look_at_readable(probes);
	assert_false(is_readable(memory));
	assert_int_equal(mprotect(memory, PAGE, PROT_READ | PROT_WRITE), 0);
	add(memory);
	assert_true(is_readable(memory));
	assert_int_equal(table->begun, table->ended);
}

static void sizes_of_all_kinds_are_read_in_place(void **state)
{
	add(memory);
	set_live(KYMO_PAD_LIVE_READER, 1); /* a call would fail: init's memory, if it may be read, is not here */
	for (uint64_t size = 1; size <= 600; size++) {
		char bytes[601] = { 0 };

		if (size > 512)
			set_live(KYMO_PAD_LIVE_READER, (uint64_t)getpid());
		assert_int_equal(kymo_guest_read(bytes, live, size, (uint64_t)memory + PAGE - size / 2), size);
		for (uint64_t i = 0; i < size; i++)
			assert_int_equal(bytes[i], 0x5a);
		assert_int_equal(bytes[size], 0);
	}
}

static void nothing_is_added_while_a_call_is_under_way(void **state)
{
	add(memory + 2 * PAGE);
	assert_ptr_equal((void *)strike(SYS_mmap, (uint64_t)memory + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED),
			 memory + 2 * PAGE);
	assert_false(is_readable(memory + 2 * PAGE));
	memset(memory + 2 * PAGE, 0x5a, PAGE);
	table->begun++;
	add(memory + 2 * PAGE);
	assert_false(is_readable(memory + 2 * PAGE));
	table->ended++;
	add(memory + 2 * PAGE);
	assert_true(is_readable(memory + 2 * PAGE));
}

static void code_that_is_new_closes_the_table(void **state)
{
	const uint64_t before = table->state;
	void *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_int_equal(strike(SYS_mprotect, (uint64_t)code, PAGE, PROT_READ | PROT_EXEC, 0), 0);
	assert_int_equal(table->state, before + 2 - KYMO_WIRE_READABLE_OPEN);
	munmap(code, PAGE);
	table->state |= KYMO_WIRE_READABLE_OPEN;
}

static void a_forked_child_uses_no_table(void **state)
{
	const uint64_t own = (uint64_t)table;
	uint64_t value = 0;

	set_live(KYMO_PAD_LIVE_READABLE, 0); /* as its live page has it */
	assert_int_equal(kymo_guest_read((char *)&value, live, 8, (uint64_t)memory), 8);
	assert_int_equal(strike(SYS_mprotect, (uint64_t)memory + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE, 0), 0);
	set_live(KYMO_PAD_LIVE_READABLE, own);
	live[0] = KYMO_PAD_LIVE; /* its guards are lost: by the call */
	assert_int_equal(kymo_guest_read((char *)&value, live, 8, (uint64_t)memory), 8);
	live[0] = KYMO_PAD_RSEQ;
	vforks.n = 1;
	assert_int_equal(kymo_guest_read((char *)&value, live, 8, (uint64_t)memory), 8);
	vforks.n = 0;
	assert_int_equal(value, VALUE);
}

/* ---- many threads ---------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	return x * UINT64_C(0xc4ceb9fe1a85ec53);
}

static void look(uint64_t seed)
{
	static const uint8_t sizes[] = { 1, 2, 4, 8, 8, 8, 23, 130 };
	const uint64_t size = sizes[seed >> 60 & 7];
	char *at = memory + seed % (N_SLOTS * 2 * PAGE - 256);
	uint8_t bytes[256];
	int64_t n;

	n = kymo_guest_read((char *)bytes, live, size, (uint64_t)at);
	__atomic_fetch_add(&n_read, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&n_faults, n != (int64_t)size, __ATOMIC_RELAXED);
	for (int64_t i = 0; i < n; i++)
		if (bytes[i] && bytes[i] != 0x5a)
			__atomic_fetch_add(&n_wrong, 1, __ATOMIC_RELAXED);
}

static void *read_on(void *data)
{
	uint64_t seed = (uintptr_t)data + 1;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		look(seed = mix(seed + 1));
		__atomic_fetch_add(&n_in_place, is_readable(memory + seed % (N_SLOTS * 2 * PAGE - 256)),
				   __ATOMIC_RELAXED);
	}
	return NULL;
}

static void map_back(char *at)
{
	mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset(at, 0x5a, 2 * PAGE);
}

static void *take_away(void *data)
{
	uint64_t seed = (uintptr_t)data + 100;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		char *at = memory +
			   ((seed = mix(seed + 1)) % (N_SLOTS / N_TAKERS) * N_TAKERS + (uintptr_t)data) * 2 * PAGE;

		switch (seed >> 40 & 3) {
		case 0:
			strike(SYS_mprotect, (uint64_t)at, 2 * PAGE, PROT_NONE, 0);
			break;
		case 1:
			strike(SYS_mprotect, (uint64_t)at + PAGE, PAGE, PROT_NONE, 0);
			break;
		case 2:
			strike(SYS_madvise, (uint64_t)at, PAGE, 102 /* MADV_GUARD_INSTALL */, 0);
			break;
		default:
			/* no hole: another mapping might get that */
			strike(SYS_mmap, (uint64_t)at, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
			break;
		}
		for (uint64_t i = 0; i < (seed >> 50) % 64; i++)
			sched_yield();
		map_back(at);
		for (uint64_t i = 0; i < (seed >> 56) % 64; i++)
			sched_yield();
	}
	return NULL;
}

static void *add_on(void *data)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		probes_look_at_readable(probes);
	return NULL;
}

/* Handlers read and strike in the middle of both. */
static void on_alarm(int signal)
{
	static uint64_t seed;
	const int saved = errno;

	look(seed = mix(seed + 7));
	strike(SYS_mprotect, (uint64_t)live, 0, PROT_NONE, 0);
	errno = saved;
}

static uint64_t seconds(void)
{
	const char *text = getenv("KYMO_TORTURE_SECONDS");

	return text ? strtoull(text, NULL, 10) : 1;
}

static void no_load_faults_while_memory_comes_and_goes(void **state)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	const uint64_t end = kymo_now_ns() + seconds() * UINT64_C(1000000000);
	pthread_t threads[N_READERS + N_TAKERS + 1];

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uintptr_t i = 0; i < N_READERS + N_TAKERS + 1; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < N_READERS              ? read_on
						: i < N_READERS + N_TAKERS ? take_away
									   : add_on,
						(void *)(i < N_READERS ? i : i - N_READERS)),
				 0);
	while (kymo_now_ns() < end)
		usleep(1000);
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	setitimer(ITIMER_REAL, &never, NULL);
	for (size_t i = 0; i < N_READERS + N_TAKERS + 1; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(n_wrong, 0);
	assert_true(n_read > n_faults);
	assert_true(n_in_place > 0);
	assert_int_equal(table->begun, table->ended);
	print_message("%llu reads, of %llu a page was readable, %llu faults, %llu calls\n", (unsigned long long)n_read,
		      (unsigned long long)n_in_place, (unsigned long long)n_faults, (unsigned long long)table->begun);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_is_added_when_it_was_read_and_struck_when_it_goes),
		cmocka_unit_test(sizes_of_all_kinds_are_read_in_place),
		cmocka_unit_test(nothing_is_added_while_a_call_is_under_way),
		cmocka_unit_test(code_that_is_new_closes_the_table),
		cmocka_unit_test(a_forked_child_uses_no_table),
		cmocka_unit_test(no_load_faults_while_memory_comes_and_goes),
	};

	if (!__rseq_size) {
		puts("skipped: no restartable sequences are registered here");
		return 77;
	}
	return cmocka_run_group_tests_name("probe-readable", tests, set_up, NULL);
}
