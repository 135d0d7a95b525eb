/* Files that a process has mapped, while it runs and when it has ended. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "procfs/maps.h"

static void no_error(struct kymo_error *error)
{
	if (error)
		print_error("%s\n", error->message);
	assert_null(error);
}

static const struct kymo_map *first_of_a_file(const struct kymo_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].path[0] == '/')
			return &maps->items[i];
	fail_msg("no file is mapped");
	return NULL;
}

static void check_has_ended(pid_t pid, const struct kymo_map *map)
{
	struct kymo_error *error;
	char said[64];
	int fd = -1;

	error = kymo_open_mapped(pid, map, &fd);
	assert_non_null(error);
	assert_int_equal(error->code, KYMO_ERROR_GONE);
	snprintf(said, sizeof(said), "process %d has ended", pid);
	assert_string_equal(error->message, said);
	assert_int_equal(fd, -1);
	kymo_error_destroy(error);
}

/* An attach that is late says that, and no word of files that are missing. */
static void of_a_process_that_has_ended_that_is_said(void **state)
{
	const struct kymo_map *map;
	struct kymo_maps maps;
	siginfo_t info;
	pid_t pid;
	int fd;

	pid = fork();
	if (!pid)
		for (;;)
			pause();
	assert_true(pid > 0);
	no_error(kymo_maps_read(pid, &maps));
	map = first_of_a_file(&maps);
	no_error(kymo_open_mapped(pid, map, &fd));
	close(fd);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	check_has_ended(pid, map);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	check_has_ended(pid, map);
	kymo_maps_deinit(&maps);
}

/* Anonymous memory, all permissions, the kernel's own names, and a file with every character that is special here. Of a
 * child that does nothing: reading changes the own mappings. */
static void lines_are_read_as_scanf_reads_them(void **state)
{
	static const char name[] = "/tmp/kymo-maps-a  b\n(deleted) -:";
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *text = NULL;
	struct kymo_maps maps;
	char line[8192], permissions[5];
	struct kymo_map map;
	bool has_named = false;
	char of_child[64];
	size_t n = 0;
	pid_t pid;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 3 * 4096), 0);
	assert_true(mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 4096) != MAP_FAILED);
	assert_true(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	assert_true(mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	unlink(name);
	close(fd);
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	assert_true(pid > 0);
	no_error(kymo_maps_read(pid, &maps));
	snprintf(of_child, sizeof(of_child), "/proc/%d/maps", pid);
	text = fopen(of_child, "re");
	for (; fgets(line, sizeof(line), text) && n < maps.n; n++) {
		const struct kymo_map *read = &maps.items[n];

		assert_int_equal(
			sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64,
			       &map.start, &map.end, permissions, &map.offset, &map.major, &map.minor, &map.inode),
			7);
		assert_int_equal(read->start, map.start);
		assert_int_equal(read->offset, map.offset);
		assert_int_equal(read->inode, map.inode);
		assert_true(read->major == map.major && read->minor == map.minor);
		assert_true(read->readable == (permissions[0] == 'r') && read->writable == (permissions[1] == 'w') &&
			    read->executable == (permissions[2] == 'x') && read->shared == (permissions[3] == 's'));
		assert_int_equal(read->end, map.end);
		if (!strcmp(read->path, name)) {
			assert_true(read->deleted);
			has_named = true;
		}
	}
	fclose(text);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(n, maps.n);
	assert_true(has_named);
	kymo_maps_deinit(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read_as_scanf_reads_them),
		cmocka_unit_test(of_a_process_that_has_ended_that_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
