#include "testing.h"
#include "sym/files.h"

#include <unistd.h>

static void a_name_matches_the_file_that_it_means(void **state)
{
	static const struct {
		const char *name, *path, *soname;
	} same[] = {
		{ "libc", "/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6" },
		{ "libc", "/lib/x86_64-linux-gnu/libc-2.36.so", NULL },
		{ "libc", "/opt/odd/name", "libc.so.6" },
		{ "libc.so", "/lib/libc.so.6", NULL },
		{ "libc.so.6", "/lib/libc.so.6", NULL },
		{ "python3", "/usr/bin/python3.11", NULL },
		{ "python3.11", "/usr/bin/python3.11", NULL },
		{ "gcc", "/usr/bin/gcc-12", NULL },
		{ "libstdc++", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", "libstdc++.so.6" },
		{ "libglib", "/usr/lib/libglib-2.0.so.0", NULL },
		{ "libpython3", "/usr/lib/libpython3.11.so.1.0", NULL },
		{ "libcrypto", "/usr/lib/libcrypto.so.1.0.2k", NULL },
		{ "libcrypto.so.1", "/usr/lib/libcrypto.so.1.1", NULL },
		{ "/usr/bin/git", "/usr/bin/git", NULL },
		{ "/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", NULL },
		{ "./app", "/home/somebody/app", NULL },
		{ "../build/app", "/home/somebody/build/app", NULL },
		{ "[vdso]", "[vdso]", NULL },
	};

	for (size_t i = 0; i < kymo_countof(same); i++)
		if (!kymo_name_matches_file(same[i].name, same[i].path, same[i].soname))
			fail_msg("%s is not %s", same[i].name, same[i].path);
}

static void a_name_does_not_match_others(void **state)
{
	static const struct {
		const char *name, *path, *soname;
	} others[] = {
		{ "libc", "/lib/libcrypt.so.1", "libcrypt.so.1" },
		{ "libc", "/lib/libc++.so.1", NULL },
		{ "libz", "/lib/libz3.so.4", "libz3.so.4" },
		{ "lib", "/lib/libc.so.6", NULL },
		{ "python", "/usr/bin/python3.11", NULL },
		{ "python3", "/usr/bin/python3-config", NULL },
		{ "libm", "/lib/libmvec.so.1", NULL },
		{ "", "/lib/libc.so.6", NULL },
		{ "git", "/usr/bin/git-shell", NULL },
		{ "/usr/bin/git", "/opt/bin/git", NULL },
		{ "./app", "/home/somebody/myapp", NULL },
		{ "other/app", "/home/somebody/app", NULL },
		{ "x", "/x/y", NULL },
		{ "libc", "/lib/libc.sock", NULL },
		{ "./", "/home/somebody/", NULL },
	};

	for (size_t i = 0; i < kymo_countof(others); i++)
		if (kymo_name_matches_file(others[i].name, others[i].path, others[i].soname))
			fail_msg("%s is %s", others[i].name, others[i].path);
}

static void is_found(const char *name, const char *end)
{
	char *path = NULL;

	succeeds(kymo_find_file(name, &path));
	assert_int_equal(*path, '/');
	if (strlen(path) < strlen(end) || strcmp(path + strlen(path) - strlen(end), end))
		fail_msg("%s: %s", name, path);
	assert_int_equal(access(path, R_OK), 0);
	free(path);
}

static void programs_and_libraries_are_found_without_a_process(void **state)
{
	is_found("libc", "/libc.so.6");
	is_found("libc.so.6", "/libc.so.6");
	is_found("libm", "/libm.so.6");
	is_found("sh", "/sh");
	is_found("bash", "/bash");
	is_found("/bin/sh", "/bin/sh");
}

static void programs_come_before_the_scripts_that_wrap_them(void **state)
{
	kymo_cleanup_free char *path = NULL;
	char search[1024];

	snprintf(search, sizeof(search), "%s/nowhere:%s/wrap:%s/bin", directory, directory, directory);
	run("mkdir wrap bin && echo '#!/bin/sh' >wrap/tool && chmod +x wrap/tool && cp wrap/tool wrap/script && cp "
	    "/bin/true bin/tool && "
	    ": >bin/data");
	kymo_cleanup_free char *before = strdup(getenv("PATH"));

	setenv("PATH", search, 1);
	is_found("tool", "/bin/tool");
	is_found("script", "/wrap/script");
	/* Not executable. */
	fails(kymo_find_file("data", &path), KYMO_ERROR_NOT_FOUND, "data: no such program in PATH");
	setenv("PATH", before, 1);
	assert_null(path);
}

static void what_is_nowhere_is_not_found(void **state)
{
	char *path = NULL;

	fails(kymo_find_file("libnowhere", &path), KYMO_ERROR_NOT_FOUND,
	      "libnowhere: no such program in PATH, and no such library in ");
	fails(kymo_find_file("/nowhere/at/all", &path), KYMO_ERROR_NOT_FOUND, "/nowhere/at/all: No such file");
	fails(kymo_find_file("", &path), KYMO_ERROR_NOT_FOUND, "");
	assert_null(path);
}

static void a_link_and_the_file_that_it_leads_to_are_the_same_file(void **state)
{
	static const char *const none[] = { "no_such_file_at_all", "/nowhere/at/all", "/", "/dev/null" };
	char link[1024];

	run("ln -s /bin/true link");
	snprintf(link, sizeof(link), "%s/link", directory);
	assert_true(kymo_is_same_file(kymo_identify_file(link), kymo_identify_file("/bin/true")));
	assert_false(kymo_is_same_file(kymo_identify_file(link), kymo_identify_file("/bin/false")));
	for (size_t i = 0; i < kymo_countof(none); i++) {
		const struct kymo_file_id id = kymo_identify_file(none[i]);

		assert_int_equal(id.inode, 0);
		assert_false(kymo_is_same_file(id, id));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_matches_the_file_that_it_means),
		cmocka_unit_test(a_name_does_not_match_others),
		cmocka_unit_test(programs_and_libraries_are_found_without_a_process),
		cmocka_unit_test(programs_come_before_the_scripts_that_wrap_them),
		cmocka_unit_test(what_is_nowhere_is_not_found),
		cmocka_unit_test(a_link_and_the_file_that_it_leads_to_are_the_same_file),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
