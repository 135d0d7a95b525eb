/*
 * Events that read memory which may not be there, by a system call (docs/internals/reading.md): how large they may
 * become, the room for that below the frame, and a single value. compose.c has the rest.
 */
#include "arch/x86_64/reads.h"

#include <stddef.h>

#include "arch/x86_64/frame.h"
#include "arch/x86_64/guest.h"
#include "wire/event.h"
#include "wire/shared.h"

#define ANSWERS_SIZE (2 * KYMO_FORM_NAME_SIZE)
#define CUT_SIZE 4 /* KYMO_STRING_CUT and the NUL */

static bool asks(const struct kymo_form *form)
{
	return form && kymo_form_has(form, KYMO_FORM_ASK, NULL);
}

static bool loads(const struct kymo_form *form)
{
	return asks(form) ||
	       (form && (kymo_form_has(form, KYMO_FORM_LOAD, NULL) || kymo_form_has(form, KYMO_FORM_STORE, NULL)));
}

/* What cannot be done within a sequence, which restarts: read and write memory, ask the kernel, and use a vector
 * register of the program's. */
static bool reads(const struct kymo_form *form)
{
	return loads(form) || (form && kymo_form_has_floats(form));
}

uint32_t x86_limit_of(const struct kymo_fetch *fetch)
{
	return fetch->limit ? fetch->limit : KYMO_FETCH_LIMIT;
}

static uint32_t size_max(const struct kymo_fetch *fetch)
{
	if (fetch->kind == KYMO_FETCH_COPY)
		return kymo_type_size(fetch->type) + (uint32_t)sizeof(struct kymo_wire_stack);
	if (!kymo_fetch_is_of_memory(fetch))
		return kymo_type_size(fetch->type);
	return x86_limit_of(fetch) + (fetch->type == KYMO_TYPE_STRING ? CUT_SIZE : kymo_type_size(fetch->type));
}

uint32_t kymo_pad_composed_size(const struct kymo_fetch *args, size_t n_args)
{
	bool is_composed = false;
	uint32_t size = 1; /* the faults */

	for (size_t i = 0; i < n_args; i++) {
		is_composed |= kymo_fetch_is_of_memory(&args[i]) || args[i].kind == KYMO_FETCH_COPY ||
			       (args[i].kind == KYMO_FETCH_FORM && reads(args[i].form));
		size += size_max(&args[i]);
	}
	return is_composed ? size : 0;
}

bool x86_is_composed(const struct kymo_pad_event *event)
{
	return kymo_pad_composed_size(event->args, event->n_args) != 0;
}

bool kymo_pad_reads(const struct kymo_pad_event *event)
{
	return reads(event->filter) || x86_is_composed(event);
}

/* Of the program's. */
static bool is_of_memory(const struct kymo_fetch *fetch)
{
	return kymo_fetch_is_of_memory(fetch) && !kymo_form_has(fetch->form, KYMO_FORM_TEXT, NULL) &&
	       !kymo_form_has_words(fetch->form);
}

bool kymo_pad_reads_memory(const struct kymo_pad_event *event)
{
	bool does = loads(event->filter);

	for (size_t i = 0; i < event->n_args; i++)
		does |= is_of_memory(&event->args[i]) || event->args[i].kind == KYMO_FETCH_COPY ||
			(event->args[i].kind == KYMO_FETCH_FORM && loads(event->args[i].form));
	return does;
}

/* Whether the value before operation `i` is an address a known distance above the stack pointer, or in an answer of the
 * kernel. */
static bool is_at_stack_pointer(const struct kymo_form_op *ops, uint32_t i)
{
	if (i >= 3 && ops[i - 1].code == KYMO_FORM_ADD && ops[i - 2].code == KYMO_FORM_VALUE)
		i -= 2;
	return i >= 1 &&
	       (ops[i - 1].code == KYMO_FORM_ASK || (ops[i - 1].code == KYMO_FORM_REGISTER && ops[i - 1].value == RSP));
}

static bool loads_elsewhere(const struct kymo_form *form)
{
	for (uint32_t i = 0; form && i < form->n; i++)
		if (form->ops[i].code == KYMO_FORM_LOAD && !is_at_stack_pointer(form->ops, i))
			return true;
	return false;
}

bool kymo_pad_reads_elsewhere(const struct kymo_pad_event *event)
{
	bool does = loads_elsewhere(event->filter);

	for (size_t i = 0; i < event->n_args; i++)
		does |= event->args[i].kind == KYMO_FETCH_FORM &&
			(loads_elsewhere(event->args[i].form) ||
			 (is_of_memory(&event->args[i]) &&
			  !is_at_stack_pointer(event->args[i].form->ops, event->args[i].form->n)));
	return does;
}

int32_t x86_composed_at(const struct kymo_pad_event *event)
{
	return BELOW_COMPOSED - (int32_t)((kymo_pad_composed_size(event->args, event->n_args) + 7) & ~7u);
}

static bool event_asks(const struct kymo_pad_event *event)
{
	bool does = asks(event->filter);

	for (size_t i = 0; i < event->n_args; i++)
		does |= event->args[i].kind == KYMO_FETCH_FORM && asks(event->args[i].form);
	return does;
}

int32_t x86_reads_lowered(const struct kymo_pad_event *event)
{
	const int32_t answers = event_asks(event) ? ANSWERS_SIZE : 0;

	return kymo_pad_reads(event) ? (answers - x86_composed_at(event) + 15) & ~15 : 0;
}

int32_t x86_name_at(const struct code *c)
{
	return -c->lowered;
}

int32_t x86_clock_at(const struct code *c)
{
	return -c->lowered + KYMO_FORM_NAME_SIZE;
}

uint32_t kymo_pad_reads_stack(const struct kymo_pad_event *event)
{
	const uint32_t lowered = (uint32_t)x86_reads_lowered(event);

	return lowered ? lowered + KYMO_PAD_READER_STACK : 0;
}

/* Another thread's stack: a jump to `enough` unless it ends before rax, which the stack pointer is to become. */
static void check_thread_stack(struct code *c, const struct kymo_pad_env *env, struct label *enough)
{
	rip_to(c, "\x4c\x8b\x15", 3, env->live + KYMO_PAD_LIVE_THREAD_STACK, 0); /* mov stack(%rip),%r10 */
	EMIT(c, 0x4d, 0x85, 0xd2);                                               /* test %r10,%r10 */
	JE(c, enough);
	EMIT(c, 0x64, 0x4c, 0x8b, 0x1c, 0x25, 0x10, 0, 0, 0); /* mov %fs:16,%r11 */
	EMIT(c, 0x64, 0x4c, 0x3b, 0x1c, 0x25, 0, 0, 0, 0);    /* cmp %fs:0,%r11 */
	JNE(c, enough);
	EMIT(c, 0x64, 0x4d, 0x8b, 0x12); /* mov %fs:(%r10),%r10 */
	EMIT(c, 0x4c, 0x39, 0xd4);       /* cmp %r10,%rsp */
	JB(c, enough);
	rip_to(c, "\x4c\x03\x15", 3, env->live + KYMO_PAD_LIVE_THREAD_LOW, 0); /* add low(%rip),%r10 */
	EMIT(c, 0x4c, 0x39, 0xd0);                                             /* cmp %r10,%rax */
	JAE(c, enough);
}

void x86_begin_reads(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		     struct label *no_room)
{
	const int32_t lowered = x86_reads_lowered(event);
	struct label enough = { .n = 0 }, low = { .n = 0 };

	rsp_slot(c, 0x8d, RAX, -lowered);
	rip_to(c, "\x48\x3b\x05", 3, env->live + KYMO_PAD_LIVE_STACK_ENOUGH, 0); /* cmp enough(%rip),%rax */
	JAE(c, &enough);
	rip_to(c, "\x48\x3b\x25", 3, env->live + KYMO_PAD_LIVE_STACK_LOW, 0); /* cmp low(%rip),%rsp */
	JAE(c, &low);
	check_thread_stack(c, env, &enough);
	bind(c, &low);
	compare_byte(c, env->live, 0); /* there may be no rings */
	JE(c, no_room);
	movabs(c, R10, env->rings + offsetof(struct kymo_wire_ring, lost));
	EMIT(c, 0xf0, 0x49, 0xff, 0x02); /* lock incq (%r10) */
	JMP(c, no_room);
	bind(c, &enough);
	EMIT(c, 0x48, 0x89, 0xc4); /* mov %rax,%rsp */
	c->lowered = lowered;
}

void x86_end_reads(struct code *c)
{
	rsp_slot(c, 0x8d, RSP, 0);
	c->lowered = 0;
}

void x86_call_reader_sized(struct code *c, const struct kymo_pad_env *env, uint32_t entry)
{
	byte(c, 0xe8);
	rel32_to(c, env->guest + entry);
}

void x86_call_reader(struct code *c, const struct kymo_pad_env *env, uint32_t entry, uint32_t size)
{
	byte(c, 0xba); /* mov $size,%edx */
	imm32(c, size);
	x86_call_reader_sized(c, env, entry);
}

void x86_load_live_page(struct code *c, const struct kymo_pad_env *env)
{
	rip_to(c, "\x4c\x8d\x1d", 3, env->live, 0); /* lea live(%rip),%r11 */
}

/* The shared code's `entry` takes or fills the `size` bytes at BELOW_LOADED, all of them. They come to rax then; or a
 * jump to `fault`. */
static void call_with_slot(struct code *c, const struct kymo_pad_env *env, uint32_t entry, unsigned int size,
			   struct label *fault)
{
	rsp_slot(c, 0x8d, R10, BELOW_LOADED);
	x86_load_live_page(c, env);
	x86_call_reader(c, env, entry, size);
	EMIT(c, 0x48, 0x83, 0xf8); /* cmp $size,%rax */
	byte(c, size);
	JNE(c, fault);
	rsp_slot(c, 0x8b, RAX, BELOW_LOADED);
}

void x86_emit_load(struct code *c, const struct kymo_pad_env *env, unsigned int size, struct label *fault)
{
	struct label uncertain = { .n = 0 }, done = { .n = 0 };
	struct kymo_guest_image guest;

	kymo_guest_image(&guest);
	x86_check_readable(c, env, size, &uncertain);
	x86_load_bytes(c, size);
	JMP(c, &done);
	bind(c, &uncertain);
	EMIT(c, 0x48, 0xc7); /* movq $0,LOADED(%rsp) */
	rsp_operand(c, 0, BELOW_LOADED);
	imm32(c, 0);
	call_with_slot(c, env, guest.read, size, fault);
	bind(c, &done);
}

void x86_emit_store(struct code *c, const struct kymo_pad_env *env, unsigned int size, int32_t address,
		    struct label *fault)
{
	struct kymo_guest_image guest;

	kymo_guest_image(&guest);
	rsp_slot(c, 0x89, RAX, BELOW_LOADED);
	rsp_slot(c, 0x8b, RAX, address);
	call_with_slot(c, env, guest.write, size, fault);
}
