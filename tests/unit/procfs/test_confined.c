/* Labels of security modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "procfs/confined.h"

static void test_labels_of_unconfined_processes(void **state)
{
	assert_true(kymo_is_unconfined_label(""));
	assert_true(kymo_is_unconfined_label("unconfined"));
	assert_true(kymo_is_unconfined_label("unconfined\n"));
	assert_true(kymo_is_unconfined_label("unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023"));
	assert_true(kymo_is_unconfined_label("user_u:user_r:unconfined_t"));
}

static void test_labels_of_confined_processes(void **state)
{
	assert_false(kymo_is_unconfined_label("docker-default (enforce)\n"));
	assert_false(kymo_is_unconfined_label("unconfined_tool (enforce)\n"));
	assert_false(kymo_is_unconfined_label("unconfined//&:lxd://tool (enforce)\n"));
	assert_false(kymo_is_unconfined_label(":lxd://unconfined\n"));
	assert_false(kymo_is_unconfined_label("unconfined_u:unconfined_r:mozilla_plugin_t:s0"));
	assert_false(kymo_is_unconfined_label("system_u:system_r:unconfined_service_t:s0"));
	assert_false(kymo_is_unconfined_label("unconfined_u:unconfined_r"));
	assert_false(kymo_is_unconfined_label("_"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_of_unconfined_processes),
		cmocka_unit_test(test_labels_of_confined_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
