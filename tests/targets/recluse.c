/*
 * recluse [-c] [-r DIR] [-u UID] [-s] [-d] [-f] [N]
 *
 * Hides as daemons do, says "ready", waits for a line, calls work_a() N (1000) times, and prints that.
 *	-c	closes every descriptor but those of stdin and stdout
 *	-r DIR	makes DIR its root directory
 *	-u UID	becomes this user and group, and gives up everything else
 *	-s	allows itself read, write, exit and sigreturn alone (SECCOMP_MODE_STRICT); another call kills it
 *	-d	is not dumpable
 *	-f	maps every free page within 3 GiB of its text and libraries, without access
 */
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "target.h"
#include "work.h"

#define MAX_AREAS 512
#define REACH (UINT64_C(3) << 30)
#define PAGE UINT64_C(4096)

struct area {
	uint64_t start, end;
	bool is_file;
};

static size_t read_areas(struct area *areas)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], path[4096];
	unsigned long inode;
	size_t n = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps) && n < MAX_AREAS) {
		path[0] = '\0';
		CHECK(sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %lu %4095s", &areas[n].start, &areas[n].end,
			     &inode, path) >= 3);
		areas[n++].is_file = inode != 0;
	}
	fclose(maps);
	return n;
}

/* Whether any mapped file lies within reach of [low, high). */
static bool is_near_file(const struct area *areas, size_t n, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < n; i++)
		if (areas[i].is_file && areas[i].start < high + REACH && areas[i].end + REACH > low)
			return true;
	return false;
}

static void block(uint64_t low, uint64_t high)
{
	void *at = mmap((void *)low, high - low, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	CHECK(at == (void *)low);
}

/* The gaps between mappings, cut where reach ends. */
static void fill_neighborhood(void)
{
	static struct area areas[MAX_AREAS];
	uint64_t at = 0x10000;
	size_t n = read_areas(areas);

	for (size_t i = 0; i < n; i++) {
		uint64_t end = areas[i].start;

		/* The kernel keeps a gap below the stack that nothing can be mapped into. */
		if (end > UINT64_C(0x7fff00000000) + REACH)
			end = end > at + (UINT64_C(16) << 20) ? end - (UINT64_C(16) << 20) : at;
		for (uint64_t low = at; low < end; low += REACH / 4) {
			uint64_t high = low + REACH / 4 < end ? low + REACH / 4 : end;

			if (low > UINT64_C(0x800000000000))
				break;
			/* Nothing is near for terabytes: step over them. */
			if (!is_near_file(areas, n, low, high)) {
				if (end - low > 8 * REACH && !is_near_file(areas, n, low, end - 5 * REACH))
					low = (end - 5 * REACH) & ~(PAGE - 1);
				continue;
			}
			block(low, high);
		}
		at = areas[i].end;
	}
}

static void close_descriptors(void)
{
	CHECK(syscall(SYS_close_range, 2u, ~0u, 0u) == 0);
}

static void become(long user)
{
	CHECK(setgroups(0, NULL) == 0 && setresgid((gid_t)user, (gid_t)user, (gid_t)user) == 0);
	CHECK(setresuid((uid_t)user, (uid_t)user, (uid_t)user) == 0);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static void print_number(const char *name, long n)
{
	char text[64];

	snprintf(text, sizeof(text), "{\"%s\": %ld}\n", name, n);
	say(text);
}

int main(int argc, char **argv)
{
	bool closes = false, strict = false, hides = false, fills = false;
	const char *root = NULL;
	long user = -1, n;
	int option;

	while ((option = getopt(argc, argv, "cr:u:sdf")) != -1) {
		switch (option) {
		case 'c':
			closes = true;
			break;
		case 'r':
			root = optarg;
			break;
		case 'u':
			user = number(optarg);
			break;
		case 's':
			strict = true;
			break;
		case 'd':
			hides = true;
			break;
		case 'f':
			fills = true;
			break;
		default:
			return 2;
		}
	}
	n = optind < argc ? number(argv[optind]) : 1000;
	if (fills)
		fill_neighborhood();
	if (closes)
		close_descriptors();
	if (root)
		CHECK(chroot(root) == 0 && chdir("/") == 0);
	if (user >= 0)
		become(user);
	if (hides)
		CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
	if (strict)
		CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0);
	say("ready\n");
	wait_for_line();
	for (long i = 0; i < n; i++)
		CHECK(work_a((int)i, i * 77) == expect_a((int)i, i * 77));
	print_number("work_a", n);
	wait_for_line();
	syscall(SYS_exit, 0); /* exit_group is not among what strict allows */
	return 0;
}
