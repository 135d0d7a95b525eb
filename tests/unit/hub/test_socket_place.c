/* Where the socket of a hub is. */
#include <errno.h>
#include <sys/stat.h>

#include "engines.h"
#include "hub/remote/socket.h"

static bool is_in(const char *directory, const struct hub_socket *place)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/%s", directory, place->name);
	return !access(name, F_OK);
}

static void a_directory_that_others_may_enter_is_not_used_and_what_is_left_over_is_removed(void **state)
{
	char top[] = "/tmp/kymo-test-XXXXXX", directory[64];
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char *before = runtime ? strdup(runtime) : NULL;
	struct hub_socket place, other;
	int fd;

	assert_non_null(mkdtemp(top));
	snprintf(directory, sizeof(directory), "%s/kymo", top);
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(chmod(directory, 0750), 0);
	setenv("XDG_RUNTIME_DIR", top, 1);
	assert_int_equal(hub_socket_open(getpid(), &place), 0);
	assert_false(is_in(directory, &place));
	hub_socket_close(&place);

	assert_int_equal(chmod(directory, 0700), 0);
	assert_int_equal(hub_socket_open(getpid(), &place), 0);
	assert_true(is_in(directory, &place));
	assert_int_equal(hub_socket_dial(getpid(), &fd), 0);
	close(fd);
	assert_int_equal(hub_socket_open(getppid(), &other), 0);
	assert_true(is_in(directory, &place));
	hub_socket_close(&other);

	close(place.socket); /* as if it had been killed */
	assert_int_equal(hub_socket_dial(getpid(), &fd), -ENOENT);
	assert_int_equal(hub_socket_open(getppid(), &other), 0);
	assert_false(is_in(directory, &place));
	hub_socket_close(&other);
	close(place.directory);

	if (before)
		setenv("XDG_RUNTIME_DIR", before, 1);
	else
		unsetenv("XDG_RUNTIME_DIR");
	free(before);
	assert_int_equal(rmdir(directory) + rmdir(top), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_that_others_may_enter_is_not_used_and_what_is_left_over_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
