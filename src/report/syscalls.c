#include "report/syscalls.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "report/text.h"

static size_t read_nothing(void *context, uint64_t address, void *out, size_t size)
{
	(void)context;
	(void)address;
	(void)out;
	(void)size;
	return 0;
}

static const struct kymo_syscall_target target = { .read = read_nothing, .string_size = KYMO_SYSCALL_STRING_SIZE };

void kymo_syscalls_init(struct syscalls *syscalls)
{
	*syscalls = (struct syscalls){ 0 };
}

void kymo_syscalls_deinit(struct syscalls *syscalls)
{
	kymo_vec_deinit(&syscalls->items);
	kymo_line_deinit(&syscalls->text);
}

bool kymo_syscalls_has_any(const struct kymo_ctf_trace *trace)
{
	for (size_t i = 0; i < trace->n_events; i++)
		if (trace->events[i].kind == KYMO_CTF_SYSCALL)
			return true;
	return false;
}

bool kymo_syscalls_read(const struct kymo_ctf_record *record, struct kymo_syscall_call *ret)
{
	const struct kymo_ctf_event *event = record->event;

	*ret = (struct kymo_syscall_call){ .number = event->offset };
	if (event->kind != KYMO_CTF_SYSCALL || event->offset >= KYMO_SYSCALL_MAX || event->n_fields != kymo_countof(ret->args) || record->faults)
		return false;
	for (uint32_t i = 0; i < event->n_fields; i++) {
		if (!kymo_type_is_integer(event->fields[i].type))
			return false;
		ret->args[i] = record->values[i];
	}
	return true;
}

/* ---- those that are open ----------------------------------------------------------------------------------------- */

static struct open_syscall *add(struct syscalls *syscalls, uint64_t *number_ret)
{
	size_t at = syscalls->free;

	if (at)
		syscalls->free = syscalls->items.items[at - 1].next_free;
	else if (kymo_vec_push(&syscalls->items, (struct open_syscall){ 0 }))
		at = syscalls->items.n;
	*number_ret = at;
	return at ? &syscalls->items.items[at - 1] : NULL;
}

bool kymo_syscalls_is_open(const struct syscalls *syscalls, size_t thread, const struct frame *frame)
{
	const struct open_syscall *open = frame->line ? kymo_syscalls_at(syscalls, frame->line) : NULL;

	return open && open->order && open->thread == thread && open->begin == frame->begin;
}

static void take_out(struct syscalls *syscalls, uint64_t number)
{
	struct open_syscall *open = &syscalls->items.items[number - 1];

	open->order = 0;
	open->next_free = syscalls->free;
	syscalls->free = number;
}

static int compare_orders(const void *a, const void *b, void *data)
{
	const struct open_syscall *items = data, *x = &items[*(const uint64_t *)a - 1], *y = &items[*(const uint64_t *)b - 1];

	return x->order < y->order ? -1 : x->order > y->order;
}

uint64_t *kymo_syscalls_left(const struct syscalls *syscalls, size_t *n_ret)
{
	uint64_t *numbers = calloc(syscalls->items.n + 1, sizeof(*numbers));
	size_t n = 0;

	for (size_t i = 0; numbers && i < syscalls->items.n; i++)
		if (syscalls->items.items[i].order)
			numbers[n++] = i + 1;
	if (n)
		qsort_r(numbers, n, sizeof(*numbers), compare_orders, syscalls->items.items);
	*n_ret = n;
	return numbers;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

struct kymo_error *kymo_syscalls_enter(struct syscalls *syscalls, size_t thread, const struct kymo_ctf_record *record, uint64_t *ret)
{
	struct kymo_syscall_call call;
	struct open_syscall *open;

	kymo_line_clear(&syscalls->text);
	syscalls->done = 0;
	*ret = 0;
	kymo_syscalls_read(record, &call);
	kymo_syscall_enter(&call, &target, &syscalls->text);
	if (kymo_syscall_is_end(call.number)) {
		kymo_syscall_put_no_result(&call, &syscalls->text);
		return NULL;
	}
	open = add(syscalls, ret);
	if (!open)
		return &kymo_error_no_memory;
	*open = (struct open_syscall){ .call = call, .thread = thread, .begin = record->tsc, .order = ++syscalls->order };
	syscalls->open = *ret;
	return NULL;
}

/* Go on with the line, or with a new one if it is not open. */
static bool take_up(struct syscalls *syscalls, uint64_t number)
{
	const bool is_new = syscalls->open != number;

	syscalls->done = syscalls->text.n;
	if (is_new) {
		kymo_line_clear(&syscalls->text);
		kymo_syscall_put_resumed(&syscalls->items.items[number - 1].call, &syscalls->text);
		syscalls->done = 0;
	} else {
		syscalls->open = 0;
	}
	return is_new;
}

bool kymo_syscalls_leave(struct syscalls *syscalls, uint64_t number, int64_t result, uint64_t ns)
{
	struct open_syscall *open = &syscalls->items.items[number - 1];
	const bool is_new = take_up(syscalls, number);
	char seconds[TEXT_NUMBER];

	open->call.result = result;
	kymo_syscall_leave(&open->call, &target, &syscalls->text);
	kymo_syscall_put_result(&open->call, &target, &syscalls->text);
	kymo_line_printf(&syscalls->text, " <%s>", kymo_text_seconds(seconds, (int64_t)ns, 9));
	take_out(syscalls, number);
	return is_new;
}

bool kymo_syscalls_give_up(struct syscalls *syscalls, uint64_t number)
{
	const bool is_new = take_up(syscalls, number);

	kymo_syscall_put_no_result(&syscalls->items.items[number - 1].call, &syscalls->text);
	take_out(syscalls, number);
	return is_new;
}

bool kymo_syscalls_interrupt(struct syscalls *syscalls)
{
	const bool was_open = syscalls->open != 0;

	syscalls->open = 0;
	return was_open;
}
