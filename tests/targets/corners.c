/*
 * corners [-n ROUNDS] [-w] [-l] [CASE...]
 *
 * Calls the functions of corners.S and corners_operands.S, all or those named, ROUNDS (20) times each, and checks what
 * they return and leave behind. Prints how often each was called. -w says "ready" and waits for a line on stdin before
 * it begins; -l only lists the cases, one a line, with what the processor lacks for them.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>

#include "target.h"

#define STATUS_FLAGS 0xcd5 /* with the direction flag */

enum need { NOTHING, AVX2, AVX512 };

struct corner {
	const char *name;
	void (*check)(long i);
	enum need need;
};

#define DECLARE(name) extern long name(long a, long b, long c)
DECLARE(corner_ret_a);
DECLARE(corner_ret_b);
DECLARE(corner_ret_c);
DECLARE(corner_same);
DECLARE(corner_zero);
DECLARE(corner_seven);
DECLARE(corner_lea_ret);
DECLARE(corner_jump_next);
DECLARE(corner_jcc_back);
DECLARE(corner_jcc_inside);
DECLARE(corner_loop);
DECLARE(corner_jrcxz);
DECLARE(corner_conditions);
DECLARE(corner_hot);
DECLARE(corner_spin);
DECLARE(corner_table);
DECLARE(corner_data_in_text);
DECLARE(corner_line);
DECLARE(corner_page);
DECLARE(corner_call_stack);
DECLARE(corner_call_below);
DECLARE(corner_return_address);
DECLARE(corner_redzone);
DECLARE(corner_flags);
DECLARE(corner_carry);
DECLARE(corner_strings);
DECLARE(corner_lock);
DECLARE(corner_lock16);
DECLARE(corner_endbr);
DECLARE(corner_indirect);
DECLARE(corner_syscall);
DECLARE(corner_frames);
DECLARE(corner_add_one);
DECLARE(corner_rip_integer);
DECLARE(corner_rip_exchange);
DECLARE(corner_rip_branch);
DECLARE(corner_rip_sse);
DECLARE(corner_rip_x87);
DECLARE(corner_rip_avx);
DECLARE(corner_rip_evex);
DECLARE(corner_gather);
DECLARE(corner_gather_evex);
DECLARE(corner_zmm_live);
DECLARE(corner_ymm_live);
DECLARE(corner_switch);
DECLARE(corner_compiled);

/* ---- the compiler's -------------------------------------------------------------------------- */

PROBED long corner_switch(long a, long b, long c)
{
	switch (a) {
	case 0:
		return b + 3;
	case 1:
		return b * 5;
	case 2:
		return b ^ 0x77;
	case 3:
		return corner_lea_ret(b, 0, 0);
	case 4:
		return -b;
	case 5:
		return b << 3 | 1;
	case 6:
		return c - b;
	default:
		return 99;
	}
}

static void check_switch(long i)
{
	long b = i * 1001, expected[] = { b + 3, b * 5, b ^ 0x77, b + 1, -b, b << 3 | 1, 7 - b, 99 };

	for (long a = 0; a < 8; a++)
		CHECK(corner_switch(a, b, 7) == expected[a]);
}

/* A function that has all that a compiler spills and saves: a frame, an array, callee-saved registers, a call. */
PROBED long corner_compiled(long a, long b, long c)
{
	volatile long values[24];
	long sum = 0, product = 1, bits = a;

	for (int i = 0; i < 24; i++)
		values[i] = a * i + b;
	for (int i = 0; i < 24; i++) {
		sum += values[i];
		product = product * 31 + values[(i * 7) % 24];
		bits ^= corner_lea_ret(product, 0, 0) >> (i % 13);
		if (bits % 5 == 2)
			sum -= c;
	}
	return sum ^ product ^ bits;
}

/* The same by other means would be the same code: the first result of each argument is what the others are held to. */
static void check_compiled(long i)
{
	static long first[8];
	static bool known[8];
	long result = corner_compiled(i % 8, 3, 5);

	if (!known[i % 8])
		first[i % 8] = result;
	known[i % 8] = true;
	CHECK(result == first[i % 8]);
	CHECK(i % 8 != 1 || corner_compiled(1, 3, 5) == result);
}

/* ---- short functions, branches --------------------------------------------------------------- */

static void check_short(long i)
{
	corner_ret_a(i, 0, 0);
	corner_ret_b(i, 0, 0);
	corner_ret_c(i, 0, 0);
	CHECK(corner_same(i, 1, 2) == i);
	CHECK(corner_zero(i, 1, 2) == 0);
	CHECK(corner_seven(i, 1, 2) == 7);
	CHECK(corner_lea_ret(i, 1, 2) == i + 1);
}

static void check_branches(long i)
{
	CHECK(corner_jump_next(i, 0, 0) == i + 2);
	CHECK(corner_jcc_back(i % 7 + 1, 0, 0) == 0);
	CHECK(corner_jcc_inside(i % 7 + 1, 0, 0) == i % 7 + 1);
	CHECK(corner_loop(i % 9 + 1, 0, 0) == 3 * (i % 9 + 1));
	CHECK(corner_jrcxz(0, 0, 0) == 1);
	CHECK(corner_jrcxz(1l << 32, 0, 0) == 2);
	CHECK(corner_jrcxz(i + 1, 0, 0) == 3);
	CHECK(corner_conditions(i, i, 0) == 108);
	CHECK(corner_conditions(i, 3 - i * 5, 0) == 8 + (i == 3 - i * 5 ? 100 : 0));
	CHECK(corner_hot(i, 0, 0) == i + 1);
	CHECK(corner_hot(-i - 1, 0, 0) == i + 2);
}

#define SPIN_US 2000 /* of CPU time that a thread goes round */

static sigjmp_buf out_of_spin;

static void on_spin(int number_of_signal)
{
	siglongjmp(out_of_spin, 1);
}

static atomic_int spinning;

static void *spin(void *arg)
{
	if (!sigsetjmp(out_of_spin, 1)) {
		spinning = 1;
		corner_spin(0, 0, 0);
	}
	spinning = 2;
	return NULL;
}

/* CPU time of a thread, in microseconds: on a busy machine a thread that is ready need not run. */
static long cpu_us(pthread_t thread)
{
	struct timespec time = { 0 };
	clockid_t clock;

	CHECK(pthread_getcpuclockid(thread, &clock) == 0 && clock_gettime(clock, &time) == 0);
	return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* A thread goes round until it is sent a signal, the handler of which jumps out of it. */
static void check_spin(long i)
{
	struct sigaction action = { .sa_handler = on_spin };
	pthread_t thread;

	if (i % 10)
		return;
	spinning = 0;
	sigaction(SIGUSR2, &action, NULL);
	CHECK(pthread_create(&thread, NULL, spin, NULL) == 0);
	while (!spinning || cpu_us(thread) < SPIN_US)
		usleep(100);
	CHECK(spinning == 1);
	pthread_kill(thread, SIGUSR2);
	CHECK(pthread_join(thread, NULL) == 0 && spinning == 2);
}

/* ---- tables, lines, the stack ---------------------------------------------------------------- */

static void check_tables(long i)
{
	static const unsigned char data[] = { 0xe9, 0x0f, 0x05, 0xcc, 0xc3, 0xeb, 0xfe, 0xf0 };

	CHECK(corner_table(i, 0, 0) == 10 + (i & 3) * 11);
	CHECK(corner_data_in_text(i, 0, 0) == data[i & 7]);
}

static void check_lines(long i)
{
	CHECK(corner_line(i, 0, 0) == i + 5);
	CHECK(corner_page(i, 0, 0) == i + 5);
}

static void check_stack(long i)
{
	CHECK(corner_call_stack(i, 0, 0) == i + 1);
	CHECK(corner_call_below(i, 0, 0) == i + 2);
	CHECK(corner_return_address(i, 0, 0) == 0);
	CHECK(corner_redzone(i, 0, 0) == 16 * i + 120);
	CHECK(corner_frames(i, 0, 0) == i);
}

static void check_flags(long i)
{
	long flags = (long)((unsigned long)i * 0x9e3779b9u & STATUS_FLAGS) | 0x202;

	CHECK((corner_flags(flags, i, 0) & STATUS_FLAGS) == (flags & STATUS_FLAGS));
	CHECK(corner_carry(-1, 1, 0) == 2);
	CHECK(corner_carry(i, 5, 0) == i + 6);
}

/* ---- special instructions -------------------------------------------------------------------- */

static void check_strings(long i)
{
	char from[512], to[512];

	for (size_t k = 0; k < sizeof(from); k++)
		from[k] = (char)(i * 7 + (long)k * 13);
	memset(to, 0, sizeof(to));
	CHECK(corner_strings((long)to, 8 + i % 60 * 8, (long)from) == 0);
	CHECK(!memcmp(to, from, (size_t)(8 + i % 60 * 8)));
	CHECK(to[sizeof(to) - 1] == 0);
}

static void check_locks(long i)
{
	static _Alignas(16) long words[2];
	long before = words[0];

	CHECK(corner_lock((long)words, i, 0) == before && words[0] == before + i);
	words[1] = i * 3;
	CHECK(corner_lock16((long)words, 0, 0) == 1 && words[0] == before + i && words[1] == i * 3);
}

static void check_indirect(long i)
{
	CHECK(corner_endbr(i, 0, 0) == i + 1);
	CHECK(corner_indirect(i, 0, 0) == i + 2);
}

static void check_syscall(long i)
{
	CHECK(corner_syscall(0, 0, 0) == getpid() + EBADF);
}

/* ---- operands -------------------------------------------------------------------------------- */

static void check_rip(long i)
{
	CHECK(corner_add_one(i, 0, 0) == i + 1);
	CHECK(corner_rip_integer(i, 0, 0) == i + 100);
	CHECK(corner_rip_exchange(i, 0, 0) == i);
	CHECK(corner_rip_branch(i, 0, 0) == i + 3);
	CHECK(corner_rip_sse(i, 0, 0) == i + 4);
	CHECK(corner_rip_x87(i, 0, 0) == i + 2);
}

static void check_avx(long i)
{
	CHECK(corner_rip_avx(i, 0, 0) == i + 10);
	CHECK(corner_gather(i, 0, 0) == i + 16);
}

static void check_ymm_live(long i)
{
	unsigned char from[512], to[512];

	for (size_t k = 0; k < sizeof(from); k++)
		from[k] = (unsigned char)(i + (long)k * 11);
	corner_ymm_live((long)from, (long)to, 0);
	CHECK(!memcmp(from, to, sizeof(from)));
}

static void check_evex(long i)
{
	CHECK(corner_rip_evex(i, 0, 0) == i + 30);
	CHECK(corner_gather_evex(i, 0, 0) == i + 16);
}

static void check_zmm_live(long i)
{
	unsigned char from[2048 + 64], to[2048 + 64];

	for (size_t k = 0; k < sizeof(from); k++)
		from[k] = (unsigned char)(i + (long)k * 11);
	corner_zmm_live((long)from, (long)to, 0);
	CHECK(!memcmp(from, to, sizeof(from)));
}

/* ---- all ------------------------------------------------------------------------------------- */

static const struct corner corners[] = {
	{ "short", check_short, NOTHING },
	{ "branches", check_branches, NOTHING },
	{ "spin", check_spin, NOTHING },
	{ "switch", check_switch, NOTHING },
	{ "compiled", check_compiled, NOTHING },
	{ "tables", check_tables, NOTHING },
	{ "lines", check_lines, NOTHING },
	{ "stack", check_stack, NOTHING },
	{ "flags", check_flags, NOTHING },
	{ "strings", check_strings, NOTHING },
	{ "locks", check_locks, NOTHING },
	{ "indirect", check_indirect, NOTHING },
	{ "syscall", check_syscall, NOTHING },
	{ "rip", check_rip, NOTHING },
	{ "avx", check_avx, AVX2 },
	{ "ymm-live", check_ymm_live, AVX2 },
	{ "evex", check_evex, AVX512 },
	{ "zmm-live", check_zmm_live, AVX512 },
};

#define N_CORNERS (sizeof(corners) / sizeof(*corners))

static const char *lacks(enum need need)
{
	if (need == AVX2 && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
			      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")))
		return "AVX2";
	if (need == AVX512 && !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")))
		return "AVX-512";
	return NULL;
}

static bool is_wanted(const struct corner *corner, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(*names, corner->name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	bool waits = false, lists = false, comma = false;
	long rounds = 20;
	int option;

	while ((option = getopt(argc, argv, "n:wl")) != -1) {
		switch (option) {
		case 'n':
			rounds = number(optarg);
			break;
		case 'w':
			waits = true;
			break;
		case 'l':
			lists = true;
			break;
		default:
			return 2;
		}
	}
	for (size_t i = 0; lists && i < N_CORNERS; i++)
		printf("%s %s\n", corners[i].name, lacks(corners[i].need) ? lacks(corners[i].need) : "");
	if (lists)
		return 0;
	if (waits) {
		say("ready\n");
		wait_for_line();
	}
	printf("{");
	for (size_t i = 0; i < N_CORNERS; i++) {
		if (!is_wanted(&corners[i], argv + optind) || lacks(corners[i].need))
			continue;
		for (long k = 0; k < rounds; k++)
			corners[i].check(k);
		printf("%s\"%s\": %ld", comma ? ", " : "", corners[i].name, rounds);
		comma = true;
	}
	printf("}\n");
	fflush(stdout);
	return 0;
}
