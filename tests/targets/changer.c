/*
 * changer text
 * changer shared FILE
 *
 * Changes its own text for the first line on stdin: work_a() returns at once from then on. Or maps FILE, a copy of its
 * own, shared and writable and executable, and calls work_a() there 1,000 times. Says "ready" before, "done" behind,
 * and ends with the next line.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "target.h"
#include "work.h"

#define PAGE 4096ul
#define RET 0xc3

extern char __executable_start[];

static void change_text(void)
{
	unsigned char *page = (unsigned char *)((uintptr_t)work_a & ~(PAGE - 1));

	CHECK(mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
	*(unsigned char *)work_a = RET;
	CHECK(mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
}

/* The file's addresses are its offsets, as far as text goes: the linker lays it out so. */
static int (*map_shared(const char *path))(int, long)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	char *map;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	close(fd);
	return (int (*)(int, long))(map + ((char *)work_a - __executable_start));
}

int main(int argc, char **argv)
{
	bool shared = argc == 3 && !strcmp(argv[1], "shared");
	int (*function)(int, long) = work_a;

	if (!shared && (argc != 2 || strcmp(argv[1], "text") != 0))
		return 2;
	if (shared)
		function = map_shared(argv[2]);
	say("ready\n");
	wait_for_line();
	if (!shared)
		change_text();
	for (int i = 0; i < 1000 && shared; i++)
		CHECK(function(i, i * 3L) == expect_a(i, i * 3L));
	say("done\n");
	wait_for_line();
	return 0;
}
