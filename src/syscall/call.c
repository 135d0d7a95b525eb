/* A call from its entry to its result: walks along the row of the table. */
#include "syscall/call.h"

#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "syscall/decode.h"
#include "syscall/errors.h"
#include "syscall/file.h"
#include "syscall/line.h"
#include "syscall/names.h"
#include "syscall/print.h"
#include "syscall/signal.h"
#include "syscall/table.h"

bool kymo_syscall_is_end(uint64_t number)
{
	return number == SYS_exit || number == SYS_exit_group || number == SYS_rt_sigreturn;
}

bool kymo_syscall_can_return(uint64_t number, bool has_failed)
{
	return !kymo_syscall_is_end(number) && (has_failed || !kymo_syscall_replaces_memory(number));
}

bool kymo_syscall_replaces_memory(uint64_t number)
{
	return number == SYS_execve || number == SYS_execveat || number == SYS_rt_sigreturn;
}

/* How a 32-bit program's call shows what a 64-bit one shows by `kind`; NULL: it has no such argument. */
static const struct kind *i386_kind(const struct kind *kind, unsigned arg)
{
	static const struct kind *const same[] = { k_int,    k_pid,          k_uint,       k_ulong,      k_fd,
						   k_dirfd,  k_path,         k_string,     k_open_flags, k_mode,
						   k_signal, k_write_buffer, k_read_buffer };

	for (size_t i = 0; i < kymo_countof(same); i++)
		if (kind == same[i])
			return kind;
	return (kind->when & OWN_COMMA) && arg > 2 ? NULL
						   : k_hex; /* one that shows the argument before in another way */
}

/* Whose rows have another number of kinds than the call has arguments: a kind shows several, or what the call gives. */
static const struct {
	uint64_t number;
	unsigned n_args;
} joined[] = {
	{ SYS_ioctl, 3 }, { SYS_shmctl, 3 }, { SYS_clone, 5 }, { SYS_semctl, 4 },     { SYS_msgctl, 3 },
	{ SYS_fcntl, 3 }, { SYS_prctl, 5 },  { SYS_futex, 6 }, { SYS_arch_prctl, 2 }, { SYS_clone3, 2 },
};

static unsigned count_args(const struct kymo_syscall_call *call, const struct syscall_row *row)
{
	unsigned n = 0;

	for (size_t i = 0; i < kymo_countof(joined); i++)
		if (joined[i].number == call->number)
			return joined[i].n_args;
	while (n < 6 && row->args[n])
		n++;
	return n;
}

/* Unknown calls have six arguments, in hex. */
static const struct kind *arg_kind(const struct kymo_syscall_call *call, unsigned arg)
{
	const struct syscall_row *row = syscall_row(call->number);
	const struct kind *kind;

	if (arg >= 6)
		return NULL;
	kind = row ? row->args[arg] : k_hex;
	if (row && call->is_raw)
		return arg < count_args(call, row) ? k_hex : NULL;
	return kind && call->is_i386 ? i386_kind(kind, arg) : kind;
}

bool kymo_syscall_is_complete(const struct kymo_syscall_call *call)
{
	return call->is_stopped || !arg_kind(call, call->next);
}

static void print_args(struct decode *d)
{
	struct kymo_syscall_call *call = d->call;
	const struct kind *kind;

	while (!call->is_stopped && (kind = arg_kind(call, call->next))) {
		const struct kind *next;

		if ((kind->when & AT_EXIT) && !d->is_leaving)
			return;
		call->arg_at[call->n_args++] = (unsigned)d->text->n - call->base;
		d->is_output = kind->when & AT_EXIT;
		kind->print(d, call->next++, kind->data);
		next = arg_kind(call, call->next);
		if (next && !call->is_stopped && !(next->when & OWN_COMMA))
			kymo_line_puts(d->text, ", ");
	}
}

void kymo_syscall_enter(struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			struct kymo_line *text)
{
	struct decode d = { .call = call, .target = target, .text = text };
	const struct kind *kind;
	char buffer[32];

	call->next = call->n_args = 0;
	call->is_stopped = false;
	call->is_raw = target->is_raw;
	call->saved[0] = call->saved[1] = 0;
	kymo_line_puts(text, kymo_syscall_name_or_number(call->number, buffer));
	kymo_line_puts(text, "(");
	call->base = (unsigned)text->n;
	for (unsigned i = 0; (kind = arg_kind(call, i)); i++)
		if (kind->when & LOOKS_AT_ENTRY)
			kind->print(&d, i, kind->data);
	print_args(&d);
}

void kymo_syscall_leave(struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			struct kymo_line *text)
{
	struct decode d = { .call = call, .target = target, .text = text, .is_leaving = true };

	print_args(&d);
	call->arg_at[call->n_args] = (unsigned)text->n - call->base;
	kymo_line_puts(text, ")");
}

void kymo_syscall_result(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			 struct kymo_line *text)
{
	struct kymo_syscall_call copy = *call;
	struct decode d = { .call = &copy, .target = target, .text = text, .is_leaving = true };
	const struct syscall_row *row = syscall_row(call->number);

	if (call->is_raw && !kymo_syscall_failed(call))
		result_hex(&d);
	else if (kymo_syscall_failed(call))
		syscall_put_error(text, (int)-call->result);
	else if (row && row->result && (!call->is_i386 || row->result == result_hex))
		row->result(&d);
	else
		kymo_line_printf(text, "%" PRId64, call->result);
}

static void put_equals(const struct kymo_syscall_target *target, struct kymo_line *text)
{
	kymo_line_puts(text, " ");
	kymo_line_pad(text, target->style.column);
	kymo_line_puts(text, "= ");
}

void kymo_syscall_put_result(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			     struct kymo_line *text)
{
	put_equals(target, text);
	kymo_syscall_result(call, target, text);
}

void kymo_syscall_put_no_result(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
				struct kymo_line *text)
{
	kymo_line_puts(text, kymo_syscall_is_complete(call) ? ")" : " <unfinished ...>)");
	put_equals(target, text);
	kymo_line_puts(text, "?");
}

void kymo_syscall_put_resumed(const struct kymo_syscall_call *call, struct kymo_line *text)
{
	char buffer[32];

	kymo_line_printf(text, "<... %s resumed>", kymo_syscall_name_or_number(call->number, buffer));
}
