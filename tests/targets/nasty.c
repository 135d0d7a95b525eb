/*
 * nasty
 *
 * Two threads check their results, a large array and text that has no probes, while four forked children without rights
 * attack: each changes its user to 65534. Then it writes random and chosen values over all of kymo's writable memory,
 * tries to make the rest writable, and passes probes. A child lives for a fifth of a second, or until it harms itself;
 * then there is another one. What it should not be able to do it names on stderr: "breach: …". Ends by SIGTERM.
 */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "target.h"
#include "work.h"

#define N_CHILDREN 4
#define N_MAPS 512
#define N_DATA (1u << 16)
#define LIFE_NS 200000000
#define PAGE 4096ul
#define QUIET __attribute__((section("quiet_text"), noinline))

struct map {
	unsigned long start, end, inode;
	char rights[5];
	bool is_kymos;
};

static struct map maps[N_MAPS], parents[N_MAPS];
static size_t n_maps, n_parents;
static uint64_t data[N_DATA];
static volatile sig_atomic_t is_over;
static _Atomic long n_rounds, n_children;
static uint64_t seed;

extern const uint8_t __start_quiet_text[], __stop_quiet_text[];

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

static uint64_t random_value(void)
{
	return mix(seed++);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- the parent ------------------------------------------------------------------------------ */

QUIET static uint64_t sum_of(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint64_t sum = size;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + at[i];
	return sum;
}

static void *check_all(void *unused)
{
	uint64_t text = sum_of(__start_quiet_text, (size_t)(__stop_quiet_text - __start_quiet_text)),
		 all = sum_of(data, sizeof(data));

	for (int i = 0; !is_over; i++) {
		CHECK(work_a(i, i * 5l) == expect_a(i, i * 5l));
		CHECK(work_b(i, 9) == expect_b(i, 9));
		CHECK(work_deep(20) == 210);
		CHECK(work_redzone(i) == work_redzone(i));
		if (i % 5000 == 0) {
			CHECK(sum_of(data, sizeof(data)) == all);
			CHECK(sum_of(__start_quiet_text, (size_t)(__stop_quiet_text - __start_quiet_text)) == text);
			n_rounds++;
		}
	}
	return unused;
}

/* ---- a child --------------------------------------------------------------------------------- */

static size_t read_maps(struct map *out)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[4400];
	size_t n = 0;

	while (file && n < N_MAPS && fgets(line, sizeof(line), file)) {
		struct map map = { 0 };

		if (sscanf(line, "%lx-%lx %4s %*x %*s %lu", &map.start, &map.end, map.rights, &map.inode) != 4)
			continue;
		map.is_kymos = strstr(line, "/memfd:kymo") != NULL;
		out[n++] = map;
	}
	if (file)
		fclose(file);
	return n;
}

/* Private memory without a file between two mappings of kymo's: a live page. */
static bool is_between(const struct map *map, size_t i, size_t n)
{
	return i > 0 && i + 1 < n && !map->inode && map[-1].is_kymos && map[1].is_kymos && map[-1].end == map->start &&
	       map->end == map[1].start;
}

static bool is_parents(const struct map *map)
{
	for (size_t i = 0; i < n_parents; i++)
		if (parents[i].is_kymos && parents[i].inode == map->inode && parents[i].rights[3] == 's')
			return map->rights[3] == 's';
	return false;
}

static void breach(const char *what, const struct map *map)
{
	static int n;

	if (n++ < 20)
		dprintf(STDERR_FILENO, "breach: %s (%lx-%lx %s)\n", what, map->start, map->end, map->rights);
}

/* The parent's memory, if all of it is not writable: try to change that. A writable copy is kept, for what is written
 * later. */
static void open_up(const struct map *map)
{
	size_t size = map->end - map->start;
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint8_t byte;
	void *copy;

	if (memory >= 0 && pread(memory, &byte, 1, (off_t)map->start) == 1 &&
	    pwrite(memory, &byte, 1, (off_t)map->start) == 1)
		breach("/proc/self/mem writes to memory of the parent's", map);
	if (memory >= 0)
		close(memory);
	copy = mremap((void *)map->start, 0, size, MREMAP_MAYMOVE);
	if (copy != MAP_FAILED && !mprotect(copy, size, PROT_READ | PROT_WRITE))
		breach("a copy by mremap() can be made writable", map);
	if (copy != MAP_FAILED)
		munmap(copy, size);
	if (!mprotect((void *)map->start, size, PROT_READ | PROT_WRITE))
		breach("mprotect() makes memory of the parent's writable", map);
}

static uint64_t chosen_value(const struct map *map)
{
	const uint64_t values[] = { 0,
				    1,
				    UINT64_MAX,
				    UINT64_MAX - 16,
				    INT64_MAX,
				    UINT64_C(1) << 63,
				    UINT32_MAX,
				    4096,
				    65536,
				    map->start,
				    map->end,
				    (uint64_t)(uintptr_t)data - map->start,
				    (uint64_t)(uintptr_t)data,
				    'R',
				    'L',
				    random_value(),
				    random_value() % (map->end - map->start) };

	return values[random_value() % (sizeof(values) / sizeof(values[0]))];
}

/* Heads of rings and of the whole come first in a mapping: most of what is written goes there. */
static void write_over(const struct map *map)
{
	size_t n = (map->end - map->start) / 8, head = n < 16384 ? n : 16384;

	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t *word = (uint64_t *)map->start + random_value() % (i % 4 ? head : n);

		__atomic_store_n(word, chosen_value(map), __ATOMIC_RELAXED);
	}
}

static void attack(void)
{
	n_maps = read_maps(maps);
	for (size_t i = 0; i < n_maps; i++) {
		bool is_theirs = is_parents(&maps[i]);

		if (!maps[i].is_kymos && !is_between(&maps[i], i, n_maps))
			continue;
		if (is_theirs && maps[i].rights[1] == 'w')
			breach("memory of the parent's is writable", &maps[i]);
		if (is_theirs && maps[i].rights[1] != 'w')
			open_up(&maps[i]);
		else if (maps[i].rights[1] != 'w')
			mprotect((void *)maps[i].start, maps[i].end - maps[i].start,
				 PROT_READ | PROT_WRITE | PROT_EXEC);
	}
	n_maps = read_maps(maps);
	for (size_t i = 0; i < n_maps; i++)
		if ((maps[i].is_kymos || is_between(&maps[i], i, n_maps)) && maps[i].rights[1] == 'w')
			write_over(&maps[i]);
}

static void be_child(unsigned int i)
{
	int64_t end = now_ns() + LIFE_NS;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	signal(SIGTERM, SIG_DFL);
	alarm(10);
	seed = mix((uint64_t)getpid() << 8 | i);
	CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
	prctl(PR_SET_DUMPABLE, 1); /* else its own /proc/self/mem is root's */
	while (now_ns() < end) {
		for (int k = 0; k < 100; k++)
			work_a(k, k);
		attack();
	}
	_exit(0);
}

static void on_term(int signal)
{
	is_over = signal;
}

static void start_child(pid_t *pid, unsigned int i)
{
	n_parents = read_maps(parents); /* a followed child gets some of its own */
	*pid = fork();
	if (!*pid)
		be_child(i);
	CHECK(*pid > 0);
	n_children++;
}

int main(int argc, char **argv)
{
	pid_t children[N_CHILDREN] = { 0 };
	pthread_t threads[2];

	CHECK(argc == 1 && argv[0]);
	signal(SIGTERM, on_term);
	for (size_t i = 0; i < N_DATA; i++)
		data[i] = mix(i);
	for (unsigned int i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, check_all, NULL));
	say("ready\n");
	for (unsigned int i = 0; !is_over; i++) {
		unsigned int at = i % N_CHILDREN;

		if (!children[at] || waitpid(children[at], NULL, WNOHANG) == children[at])
			start_child(&children[at], i);
		usleep(5000);
	}
	for (unsigned int i = 0; i < N_CHILDREN; i++) {
		if (!children[i])
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	for (unsigned int i = 0; i < 2; i++)
		CHECK(!pthread_join(threads[i], NULL));
	printf("{\"rounds\": %ld, \"children\": %ld}\n", n_rounds, n_children);
	return 0;
}
