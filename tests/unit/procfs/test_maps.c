/* Files that a process has mapped, while it runs and when it has ended. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_process_that_has_ended_that_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
