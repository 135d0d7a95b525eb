#include "cli/record_syscalls.h"

#include "arch/syscall_pad.h"
#include "base/vec.h"
#include "cli/output.h"
#include "cli/record_options.h"
#include "probe/resolve/syscalls.h"
#include "syscall/sets.h"

int cli_record_take_syscalls(struct cli_recording *recording, const char *text)
{
	struct kymo_syscall_set set;
	struct kymo_error *error = kymo_syscall_set_parse(text, &set);

	if (error)
		return cli_fail(recording->name, error);
	for (unsigned int i = 0; i < KYMO_SYSCALL_MAX; i++)
		if (kymo_syscall_set_has(&set, i))
			recording->syscalls.bits[i / 64] |= 1ull << i % 64;
	if (!recording->syscalls_text)
		recording->syscalls_text = text;
	return 0;
}

int cli_record_add_syscalls(struct cli_recording *recording)
{
	struct kymo_spec spec;
	struct kymo_error *error;

	_Static_assert(KYMO_SYSCALL_MAX == KYMO_PAD_SYSCALLS, "a set is what a pad knows");
	if (!recording->syscalls_text)
		return 0;
	error = kymo_spec_make_syscalls(recording->syscalls_text, recording->syscalls.bits, &spec);
	if (error)
		return cli_fail(recording->name, error);
	if (!kymo_vec_push(&recording->specs, spec)) {
		kymo_spec_deinit(&spec);
		return cli_fail(recording->name, &kymo_error_no_memory);
	}
	return 0;
}
