#include "report/syscalls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "report/text.h"
#include "syscall/call.h"
#include "syscall/copies.h"
#include "syscall/json.h"
#include "syscall/line.h"
#include "syscall/names.h"
#include "wire/copy.h"

static void swap(struct kymo_line *a, struct kymo_line *b)
{
	const struct kymo_line line = *a;

	*a = *b;
	*b = line;
}

static size_t read_copies(void *context, uint64_t address, void *out, size_t size)
{
	const struct syscalls *syscalls = context;

	return kymo_copies_read(syscalls->known, kymo_countof(syscalls->known), address, out, size);
}

static struct kymo_syscall_target target_of(struct syscalls *syscalls)
{
	return (struct kymo_syscall_target){ .context = syscalls,
					     .read = read_copies,
					     .string_size = syscalls->string_size,
					     .style = { .column = KYMO_SYSCALL_COLUMN } };
}

/* What the record has of the target's memory. */
static struct kymo_copies memory_of(const struct kymo_ctf_record *record)
{
	const struct kymo_ctf_event *event = record->event;
	struct kymo_copies copies = { 0 };

	for (uint32_t i = 0; i < event->n_fields; i++)
		if (event->fields[i].type == KYMO_TYPE_BYTES)
			copies.bytes = kymo_ctf_bytes(record, i, &copies.size);
	return copies;
}

static void know(struct syscalls *syscalls, struct kymo_copies first, struct kymo_copies second)
{
	syscalls->known[0] = first;
	syscalls->known[1] = second;
}

/* Nothing of the trace is trusted. */
static size_t string_size_of(const struct kymo_ctf_trace *trace)
{
	const char *text = kymo_ctf_trace_env(trace, "string_size");
	const unsigned long size = text ? strtoul(text, NULL, 10) : KYMO_SYSCALL_STRING_SIZE;

	return size < KYMO_SYSCALL_COPIED_MAX ? size : KYMO_SYSCALL_COPIED_MAX;
}

void kymo_syscalls_init(struct syscalls *syscalls, const struct kymo_ctf_trace *trace, bool is_json)
{
	*syscalls = (struct syscalls){ .is_json = is_json, .string_size = string_size_of(trace) };
}

static void free_kept(struct open_syscall *open)
{
	kymo_line_deinit(&open->text);
	free(open->memory);
	open->memory = NULL;
}

void kymo_syscalls_deinit(struct syscalls *syscalls)
{
	for (size_t i = 0; i < syscalls->items.n; i++)
		free_kept(&syscalls->items.items[i]);
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

/* Six arguments; and, of one with memory, the stack pointer and the copies. */
static bool has_fields(const struct kymo_ctf_event *event, uint32_t n_integers)
{
	for (uint32_t i = 0; i < n_integers; i++)
		if (!kymo_type_is_integer(event->fields[i].type))
			return false;
	return true;
}

static bool has_memory(const struct kymo_ctf_event *event)
{
	return event->n_fields == 8 && has_fields(event, 7) && event->fields[7].type == KYMO_TYPE_BYTES;
}

bool kymo_syscalls_read(const struct kymo_ctf_record *record, struct kymo_syscall_call *ret)
{
	const struct kymo_ctf_event *event = record->event;
	const size_t n = kymo_countof(ret->args);

	*ret = (struct kymo_syscall_call){ .number = event->offset };
	if (event->kind != KYMO_CTF_SYSCALL || event->offset >= KYMO_SYSCALL_MAX)
		return false;
	if (!has_memory(event) && (event->n_fields != n || !has_fields(event, (uint32_t)n)))
		return false;
	if (record->faults & ((1u << (event->n_fields == n ? n : n + 1)) - 1))
		return false;
	memcpy(ret->args, record->values, sizeof(ret->args));
	if (event->n_fields > n)
		ret->stack_pointer = record->values[n];
	return true;
}

/* ---- those that are open --------------------------------------------------------------------- */

static struct open_syscall *add_open(struct syscalls *syscalls, uint64_t *number_ret)
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

static void close_syscall(struct syscalls *syscalls, uint64_t number)
{
	struct open_syscall *open = &syscalls->items.items[number - 1];

	free_kept(open);
	open->order = 0;
	open->next_free = syscalls->free;
	syscalls->free = number;
}

static int compare_orders(const void *a, const void *b, void *data)
{
	const struct open_syscall *items = data, *x = &items[*(const uint64_t *)a - 1],
				  *y = &items[*(const uint64_t *)b - 1];

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

/* ---- lines ----------------------------------------------------------------------------------- */

/* In the kernel a signal handler's return looks like that of any other call. */
static bool is_end(const struct kymo_ctf_record *record)
{
	const uint64_t number = record->event->offset;

	return kymo_syscall_is_end(number) && !(number == SYS_rt_sigreturn && has_memory(record->event));
}

/* Some of it could not be copied as the call was made. */
static bool lacks_memory(const struct kymo_ctf_record *record)
{
	return has_memory(record->event) && record->faults && !is_end(record);
}

bool kymo_syscalls_waits(const struct syscalls *syscalls, const struct kymo_ctf_record *record)
{
	return syscalls->is_json || lacks_memory(record);
}

/* The end of a call of which no return is known. */
static void stop_syscall(struct syscalls *syscalls, struct kymo_syscall_call *call, uint64_t begin)
{
	const struct kymo_syscall_target target = target_of(syscalls);

	if (syscalls->is_json)
		kymo_syscall_stop(call, &syscalls->text);
	else
		kymo_syscall_put_no_result(call, &target, &syscalls->text);
	syscalls->call = *call;
	syscalls->begin = begin;
}

/* The beginning waits: for what is missing of its memory. */
static bool keep_memory(struct open_syscall *open, const struct kymo_copies *copies)
{
	open->memory = malloc(copies->size + 1);
	if (!open->memory)
		return false;
	memcpy(open->memory, copies->bytes, copies->size);
	open->memory_size = copies->size;
	return true;
}

struct kymo_error *kymo_syscalls_enter(struct syscalls *syscalls, size_t thread, const struct kymo_ctf_record *record,
				       uint64_t *ret)
{
	const struct kymo_syscall_target target = target_of(syscalls);
	const struct kymo_copies memory = memory_of(record);
	const bool is_late = lacks_memory(record);
	struct kymo_syscall_call call;
	struct open_syscall *open;

	*ret = 0;
	kymo_syscalls_read(record, &call);
	if (!is_late) {
		know(syscalls, memory, (struct kymo_copies){ 0 });
		kymo_line_clear(&syscalls->text);
		syscalls->done = 0;
		kymo_syscall_enter(&call, &target, &syscalls->text);
	}
	if (is_end(record)) {
		stop_syscall(syscalls, &call, record->tsc);
		return NULL;
	}
	open = add_open(syscalls, ret);
	if (!open)
		return &kymo_error_no_memory;
	*open = (struct open_syscall){
		.call = call, .thread = thread, .begin = record->tsc, .order = ++syscalls->order
	};
	if (is_late)
		return keep_memory(open, &memory) ? NULL : &kymo_error_no_memory;
	if (syscalls->is_json)
		swap(&open->text, &syscalls->text);
	else
		syscalls->open = *ret;
	return NULL;
}

/* Go on with the line, or with a new one if it is not open. `later`: memory that is known now. */
static bool take_up(struct syscalls *syscalls, uint64_t number, struct kymo_copies later)
{
	const struct kymo_syscall_target target = target_of(syscalls);
	struct open_syscall *open = &syscalls->items.items[number - 1];

	syscalls->done = syscalls->text.n;
	if (syscalls->open == number) {
		syscalls->open = 0;
		return false;
	}
	kymo_line_clear(&syscalls->text);
	syscalls->done = 0;
	if (open->memory) {
		know(syscalls, (struct kymo_copies){ open->memory, open->memory_size }, later);
		kymo_syscall_enter(&open->call, &target, &syscalls->text);
	} else if (syscalls->is_json) {
		swap(&open->text, &syscalls->text);
	} else {
		kymo_syscall_put_resumed(&open->call, &syscalls->text);
	}
	return true;
}

bool kymo_syscalls_leave(struct syscalls *syscalls, uint64_t number, const struct kymo_ctf_record *record, uint64_t ns)
{
	const struct kymo_syscall_target target = target_of(syscalls);
	const struct kymo_copies memory = memory_of(record);
	struct open_syscall *open = &syscalls->items.items[number - 1];
	const bool is_new = take_up(syscalls, number, memory);
	char seconds[TEXT_NUMBER];

	know(syscalls, memory, (struct kymo_copies){ 0 });
	open->call.result = (int64_t)record->values[0];
	kymo_syscall_leave(&open->call, &target, &syscalls->text);
	if (!syscalls->is_json) {
		kymo_syscall_put_result(&open->call, &target, &syscalls->text);
		kymo_line_printf(&syscalls->text, " <%s>", kymo_text_seconds(seconds, (int64_t)ns, 9));
	}
	syscalls->call = open->call;
	syscalls->begin = open->begin;
	close_syscall(syscalls, number);
	return is_new;
}

bool kymo_syscalls_give_up(struct syscalls *syscalls, uint64_t number)
{
	const bool is_new = take_up(syscalls, number, (struct kymo_copies){ 0 });
	struct open_syscall *open = &syscalls->items.items[number - 1];

	stop_syscall(syscalls, &open->call, open->begin);
	close_syscall(syscalls, number);
	return is_new;
}

void kymo_syscalls_write_json(struct syscalls *syscalls, FILE *out, bool has_result, uint64_t ns)
{
	const struct kymo_syscall_target target = target_of(syscalls);

	kymo_syscall_write_json(out, &syscalls->call, syscalls->call.number, &syscalls->text);
	if (has_result)
		kymo_syscall_write_json_result(out, &syscalls->call, &target, ns, &syscalls->text);
	else
		fputs(", \"result\": null", out);
}

/* ---- one alone ------------------------------------------------------------------------------- */

static bool has_result(const struct kymo_ctf_record *leave)
{
	return leave->event->kind == KYMO_CTF_SYSRET && leave->event->n_fields &&
	       kymo_type_is_integer(leave->event->fields[0].type) && !(leave->faults & 1);
}

bool kymo_syscalls_text(struct syscalls *syscalls, const struct kymo_ctf_record *entry,
			const struct kymo_ctf_record *leave, struct kymo_line *text)
{
	const struct kymo_syscall_target target = target_of(syscalls);
	const struct kymo_copies later = leave ? memory_of(leave) : (struct kymo_copies){ 0 };
	struct kymo_syscall_call call;

	kymo_line_clear(text);
	if (!kymo_syscalls_read(entry, &call) || (leave && !has_result(leave)))
		return false;
	know(syscalls, memory_of(entry), later);
	kymo_syscall_enter(&call, &target, text);
	if (!leave) {
		kymo_line_puts(text, kymo_syscall_is_complete(&call) ? ")" : call.n_args ? ", ...)" : "...)");
		return true;
	}
	know(syscalls, later, (struct kymo_copies){ 0 });
	call.result = (int64_t)leave->values[0];
	kymo_syscall_leave(&call, &target, text);
	kymo_line_puts(text, " = ");
	kymo_syscall_result(&call, &target, text);
	return true;
}

bool kymo_syscalls_result_text(struct syscalls *syscalls, uint64_t number, const struct kymo_ctf_record *leave,
			       struct kymo_line *text)
{
	const struct kymo_syscall_target target = target_of(syscalls);
	struct kymo_syscall_call call = { .number = number };

	kymo_line_clear(text);
	if (number >= KYMO_SYSCALL_MAX || !has_result(leave))
		return false;
	know(syscalls, memory_of(leave), (struct kymo_copies){ 0 });
	call.result = (int64_t)leave->values[0];
	kymo_syscall_result(&call, &target, text);
	return true;
}

bool kymo_syscalls_interrupt(struct syscalls *syscalls)
{
	const bool was_open = syscalls->open != 0;

	syscalls->open = 0;
	return was_open;
}
