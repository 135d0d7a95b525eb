/* The thread pointer in forms, on machines where programs may read the FS base, and on others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "pad_checks.h"
#include "wire/form.h"

#define MAY_READ_FS_BASE 2u /* of AT_HWCAP2 */

static bool is_old_machine;

/* In place of the C library's: also for the code that makes pads. */
unsigned long getauxval(unsigned long type)
{
	unsigned long words[2] = { AT_NULL }, found = 0;
	const int fd = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);

	while (read(fd, words, sizeof(words)) == sizeof(words) && words[0] != AT_NULL)
		if (words[0] == type)
			found = words[1];
	close(fd);
	return type == AT_HWCAP2 && is_old_machine ? found & ~(unsigned long)MAY_READ_FS_BASE : found;
}

static uint64_t thread_pointer(void)
{
	uint64_t pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

/* As a value and as a filter. */
static void check_pointer(enum kind kind, uint8_t *stack, bool is_there)
{
	const struct kymo_form pointer = { .n = 1, .ops = { { .code = KYMO_FORM_THREAD } } };
	const struct kymo_fetch arg = { .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &pointer };
	const struct kymo_pad_event events[] = { { .id = 1, .args = &arg, .n_args = 1 },
						 { .id = 2, .args = &arg, .n_args = 1, .filter = &pointer } };
	struct registers in, out;
	struct world world;
	struct site site;

	world_init(&world, kind, roomy);
	world_landing(&world, events, 2, &site);
	randomise(&in, 1, stack);
	enter(&site, &in, &out);
	check_unchanged(&in, &out);
	world_read_all(&world);
	assert_int_equal(world.records.n, is_there ? 2 : 1);
	assert_int_equal(world.records.items[0].args[0], !is_there);
	assert_int_equal(value(&world.records.items[0], 1, 8), is_there ? thread_pointer() : 0);
	world_deinit(&world);
}

static void it_is_read_where_the_machine_allows_it(void **state)
{
	uint8_t *stack = stack_create();

	is_old_machine = false;
	if (!(getauxval(AT_HWCAP2) & MAY_READ_FS_BASE))
		skip();
	for_each_kind(kind)
	{
		check_pointer(kind, stack, true);
	}
	stack_destroy(stack);
}

static void else_a_control_block_of_glibc_tells_it(void **state)
{
	uint8_t *stack = stack_create();

	is_old_machine = true;
	for_each_kind(kind)
	{
		check_pointer(kind, stack, kind == SEQUENCES);
	}
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_read_where_the_machine_allows_it),
		cmocka_unit_test(else_a_control_block_of_glibc_tells_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
