/*
 * Records of what breakpoints print (wire/prints.h).
 *
 * r10 is the memory, and r11 the slot in it, for as long as the thread owns that: from the exchange that has moved
 * `head` to the addition that completes the record. A thread that is brought out in between leaves the slot to the
 * tracer (arch/leave_pad.h). Whatever the words of the memory say, each store is within it.
 */
#include "arch/x86_64/print.h"

#include "arch/pad.h"
#include "arch/print.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/form.h"
#include "arch/x86_64/frame.h"
#include "wire/form.h"
#include "wire/prints.h"

enum {
	TRIES = 256,
	SLOT_TRIES = SLOT_TID, /* such a pad has no tid */
	SIZE_FIXED = 256,
	SIZE_ARGUMENT = 96,
	FAULTS_MAX = 60, /* jumps that a label has room for */
};

_Static_assert(offsetof(struct kymo_wire_prints, head) == 0 && offsetof(struct kymo_wire_print, state) == 0,
	       "no displacement below");

static uint32_t log2_of(uint32_t power)
{
	return (uint32_t)__builtin_ctz(power);
}

static bool is_power(uint32_t value)
{
	return value && !(value & (value - 1));
}

static uint32_t n_strings_of(const struct kymo_pad_print *print)
{
	return (uint32_t)__builtin_popcount(print->strings);
}

static unsigned int n_faults_of(const struct kymo_form *form)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < form->n; i++)
		n += form->ops[i].code == KYMO_FORM_DIVIDE || form->ops[i].code == KYMO_FORM_REMAINDER;
	return n;
}

bool kymo_pad_can_print(const struct kymo_form *form)
{
	return !kymo_form_has(form, KYMO_FORM_ASK, NULL) && !kymo_form_has_floats(form);
}

bool x86_print_is_valid(const struct kymo_pad_print *print)
{
	unsigned int n_faults = 0;

	if (!print)
		return true;
	if (print->n > KYMO_WIRE_PRINT_ARGS || print->strings >> print->n || !is_power(print->slot_size) ||
	    print->slot_size > KYMO_WIRE_PRINT_SIZE_MAX || !is_power(print->n_slots) || print->n_slots < 2 ||
	    print->n_slots > KYMO_WIRE_PRINTS_MAX ||
	    print->slot_size < kymo_wire_print_size((uint32_t)print->n, n_strings_of(print)))
		return false;
	for (size_t i = 0; i < print->n; i++) {
		if (!kymo_pad_can_print(&print->args[i]) || !x86_form_is_valid(&print->args[i]))
			return false;
		n_faults += n_faults_of(&print->args[i]);
	}
	return n_faults <= FAULTS_MAX;
}

size_t x86_print_size(const struct kymo_pad_print *print)
{
	return print ? SIZE_FIXED + print->n * SIZE_ARGUMENT : 0;
}

/* `opcode` with `reg` and disp32(%r10,%r11) */
static void slot_operand(struct code *c, unsigned int rex, unsigned int opcode, unsigned int reg, uint32_t disp)
{
	byte(c, 0x43 | rex | (reg >> 3) << 2);
	byte(c, opcode);
	byte(c, 0x84 | (reg & 7) << 3);
	byte(c, 0x1a);
	imm32(c, disp);
}

static void count_try(struct code *c, struct label *trap)
{
	EMIT(c, 0x83); /* subl $1,tries(%rsp) */
	rsp_operand(c, 5, SLOT_TRIES);
	byte(c, 1);
	JE(c, trap);
}

/* On if this is the thread that moves `head`, which is in rax, by one. */
static void move_head(struct code *c)
{
	EMIT(c, 0x48, 0x8d, 0x50, 0x01);       /* lea 1(%rax),%rdx */
	EMIT(c, 0xf0, 0x49, 0x0f, 0xb1, 0x12); /* lock cmpxchg %rdx,(%r10) */
}

/* Own a slot: r10 + r11. */
static void take_slot(struct code *c, const struct kymo_pad_print *print, struct label *full, struct label *trap,
		      struct kymo_pad_layout *layout)
{
	struct label is_free = { .n = 0 }, first = { .n = 0 }, is_late = { .n = 0 };
	size_t again;

	EMIT(c, 0xc7); /* movl $tries,tries(%rsp) */
	rsp_operand(c, 0, SLOT_TRIES);
	imm32(c, TRIES);
	movabs(c, R10, print->memory);
	JMP(c, &first);
	again = c->n;
	count_try(c, trap);
	bind(c, &first);
	EMIT(c, 0x49, 0x8b, 0x02); /* mov (%r10),%rax */
	EMIT(c, 0x41, 0x89, 0xc3); /* mov %eax,%r11d */
	EMIT(c, 0x41, 0x81, 0xe3); /* and $n - 1,%r11d */
	imm32(c, print->n_slots - 1);
	EMIT(c, 0x49, 0xc1, 0xe3); /* shl $size,%r11 */
	byte(c, log2_of(print->slot_size));
	EMIT(c, 0x49, 0x81, 0xc3); /* add $slots,%r11 */
	imm32(c, KYMO_WIRE_PRINTS_SLOTS);
	EMIT(c, 0x4b, 0x8b, 0x14, 0x1a); /* mov (%r10,%r11),%rdx */
	EMIT(c, 0x48, 0x29, 0xc2);       /* sub %rax,%rdx */
	JE(c, &is_free);
	EMIT(c, 0x48, 0x81, 0xfa); /* cmp $1 - n,%rdx */
	imm32(c, 1 - (int64_t)print->n_slots);
	JE(c, full);
	EMIT(c, 0x48, 0x81, 0xfa); /* cmp $-n,%rdx */
	imm32(c, -(int64_t)print->n_slots);
	JE(c, &is_late);
	move_head(c);
	jump_back(c, again);
	bind(c, &is_late);
	EMIT(c, 0x48, 0x2d); /* sub $n,%rax */
	imm32(c, print->n_slots);
	EMIT(c, 0x48, 0x89, 0xc2);                   /* mov %rax,%rdx */
	EMIT(c, 0x48, 0x0f, 0xba, 0xea, 63);         /* bts $63,%rdx */
	EMIT(c, 0xf0, 0x4b, 0x0f, 0xb1, 0x14, 0x1a); /* lock cmpxchg %rdx,(%r10,%r11) */
	jump_back(c, again);
	bind(c, &is_free);
	move_head(c);
	layout->claim = (uint32_t)c->n;
	branch_back(c, "\x0f\x85", 2, again); /* jne */
}

/* rax is the address of a string, and r11 leads to the slot: its text, `at` in the slot. Then r11 is as before. */
static void copy_text(struct code *c, const struct kymo_pad_print *print, uint32_t at, struct label *give_up)
{
	struct label done = { .n = 0 };
	size_t again;

	EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
	JE(c, &done);
	again = c->n;
	EMIT(c, 0x0f, 0xb6, 0x10); /* movzbl (%rax),%edx */
	slot_operand(c, 0, 0x88, RDX, at);
	EMIT(c, 0x84, 0xd2); /* test %dl,%dl */
	JE(c, &done);
	EMIT(c, 0x48, 0xff, 0xc0); /* inc %rax */
	EMIT(c, 0x49, 0xff, 0xc3); /* inc %r11 */
	EMIT(c, 0x44, 0x89, 0xda); /* mov %r11d,%edx */
	EMIT(c, 0x81, 0xe2);       /* and $size - 1,%edx */
	imm32(c, print->slot_size - 1);
	EMIT(c, 0x83, 0xfa); /* cmp $most,%edx */
	byte(c, KYMO_WIRE_PRINT_TEXT);
	branch_back(c, "\x0f\x82", 2, again); /* jb */
	JMP(c, give_up);
	bind(c, &done);
	EMIT(c, 0x49, 0x81, 0xe3); /* and $-size,%r11 */
	imm32(c, -(int64_t)print->slot_size);
}

static void complete(struct code *c)
{
	EMIT(c, 0x4b, 0xff, 0x04, 0x1a); /* incq (%r10,%r11) */
}

static void store_number(struct code *c, uint32_t number)
{
	slot_operand(c, 0, 0xc7, 0, offsetof(struct kymo_wire_print, number)); /* movl $number,… */
	imm32(c, number);
}

void x86_emit_print(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
		    const struct kymo_pad_event *event, struct label *full, struct label *trap,
		    struct kymo_pad_layout *layout)
{
	const struct kymo_pad_print *print = event->print;
	const uint32_t args = offsetof(struct kymo_wire_print, args);
	uint32_t text = args + 8 * (uint32_t)print->n;
	struct label give_up = { .n = 0 }, done = { .n = 0 };

	take_slot(c, print, full, trap, layout);
	for (size_t i = 0; i < print->n; i++) {
		x86_emit_form(c, env, site, &print->args[i], false, &give_up);
		slot_operand(c, 8, 0x89, RAX, args + 8 * (uint32_t)i);
		if (!(print->strings >> i & 1))
			continue;
		copy_text(c, print, text, &give_up);
		text += KYMO_WIRE_PRINT_TEXT;
	}
	store_number(c, print->number);
	if (give_up.n) {
		JMP(c, &done);
		bind(c, &give_up);
		EMIT(c, 0x49, 0x81, 0xe3); /* and $-size,%r11 */
		imm32(c, -(int64_t)print->slot_size);
		store_number(c, KYMO_WIRE_PRINT_VOID);
		complete(c);
		layout->gave_up = (uint32_t)c->n;
		JMP(c, trap);
		bind(c, &done);
	}
	complete(c);
}

void x86_print_full(struct code *c, struct label *full, struct kymo_pad_layout *layout)
{
	bind(c, full);
	layout->full = (uint32_t)c->n;
	EMIT(c, 0xf0, 0x49, 0xff, 0x42, offsetof(struct kymo_wire_prints, n_lost)); /* lock incq lost(%r10) */
	layout->counted = (uint32_t)c->n;
	jump_back(c, layout->displaced);
}
