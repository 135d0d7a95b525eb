/*
 * Records' arguments: from registers, the frame and memory into the record.
 *
 * What is read at an address that the program gives is read only where that can't fault. Two stretches are there for
 * certain: the page of the frame, which the pad has written, up to the end of the page that the stack pointer points
 * to; and for the initial thread, whose stack's end is known, on to that end. The first has the red zone in it.
 */
#include "arch/x86_64/arguments.h"

#include <errno.h>
#include <stddef.h>

#include "arch/x86_64/form.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/reads.h"
#include "arch/x86_64/writes.h"
#include "wire/event.h"
#include "wire/shared.h"

static const uint8_t argument_register[] = { RDI, RSI, RDX, RCX, R8, R9 };

/* Registers and stack words alike: what an argument is once $argN is resolved. */
static struct kymo_fetch resolve_fetch(struct kymo_fetch fetch)
{
	if (fetch.kind != KYMO_FETCH_ARGUMENT)
		return fetch;
	if (fetch.value >= 1 && fetch.value <= 6) {
		fetch.kind = KYMO_FETCH_REGISTER;
		fetch.value = argument_register[fetch.value - 1];
	} else {
		fetch.kind = KYMO_FETCH_STACK;
		fetch.value = fetch.value > 6 ? fetch.value - 6 : -1;
	}
	return fetch;
}

int kymo_argument_operation(unsigned int n, struct kymo_form_op *ret)
{
	const struct kymo_fetch fetch =
		resolve_fetch((struct kymo_fetch){ .kind = KYMO_FETCH_ARGUMENT, .type = KYMO_TYPE_X64, .value = n });

	if (fetch.value < 0 || fetch.value > KYMO_FETCH_STACK_MAX)
		return -EINVAL;
	*ret = (struct kymo_form_op){ .code = fetch.kind == KYMO_FETCH_REGISTER ? KYMO_FORM_REGISTER : KYMO_FORM_STACK,
				      .value = fetch.value };
	return 0;
}

_Static_assert(KYMO_STACK_POINTER == RSP, "the number of the register");

static bool is_general(int64_t reg)
{
	return reg >= RAX && reg <= R15;
}

static bool is_operand(const struct kymo_fetch *f)
{
	if (f->value != (int32_t)f->value || (f->base != -1 && !is_general(f->base)))
		return false;
	if (f->index == -1)
		return true;
	return is_general(f->index) && f->index != RSP &&
	       (f->scale == 1 || f->scale == 2 || f->scale == 4 || f->scale == 8);
}

bool x86_fetch_is_valid(const struct kymo_fetch *fetch)
{
	struct kymo_fetch f = resolve_fetch(*fetch);

	if (f.kind == KYMO_FETCH_PAYLOAD)
		return f.type == KYMO_TYPE_STRING && is_general(f.value) && is_general(f.index);
	if (f.kind == KYMO_FETCH_COPY)
		return f.type == KYMO_TYPE_BYTES && f.limit && f.limit <= KYMO_FETCH_COPY_MAX;
	if (f.kind == KYMO_FETCH_CHAIN)
		return f.type == KYMO_TYPE_BYTES && f.limit <= KYMO_WIRE_CHAIN_MAX;
	if (f.kind == KYMO_FETCH_FORM && kymo_fetch_is_of_memory(&f))
		return f.form && !f.writes && f.limit <= KYMO_FETCH_LIMIT_MAX &&
		       (f.array_of <= KYMO_N_TYPES || kymo_type_is_real(kymo_element_type(f.array_of))) &&
		       (!f.element_size || (!f.array_of && f.element_size <= f.limit)) && x86_form_is_valid(f.form);
	if ((unsigned int)f.type >= KYMO_N_TYPES && !kymo_type_is_real(f.type))
		return false;
	switch (f.kind) {
	case KYMO_FETCH_REGISTER:
		return f.value >= RAX && f.value <= RFLAGS;
	case KYMO_FETCH_STACK:
		return f.value >= 0 && f.value <= KYMO_FETCH_STACK_MAX;
	case KYMO_FETCH_STACK_POINTER:
	case KYMO_FETCH_IMMEDIATE:
	case KYMO_FETCH_GLOBAL:
		return true;
	case KYMO_FETCH_RETVAL:
		return f.value == 0 || f.value == 1;
	case KYMO_FETCH_MEMORY:
		return is_operand(&f);
	case KYMO_FETCH_FORM:
		return f.form && (f.writes == KYMO_WRITE_MEMORY || x86_form_is_valid(f.form)) && x86_write_is_valid(&f);
	default:
		return false;
	}
}

/* A return value may be unknown at one exit of a function and known at the next: one layout serves both. */
bool kymo_pad_has_faults(const struct kymo_fetch *args, size_t n_args)
{
	for (size_t i = 0; i < n_args; i++)
		if (resolve_fetch(args[i]).kind == KYMO_FETCH_STACK || args[i].kind == KYMO_FETCH_RETVAL ||
		    args[i].kind == KYMO_FETCH_COPY || args[i].kind == KYMO_FETCH_CHAIN ||
		    args[i].kind == KYMO_FETCH_MEMORY ||
		    (args[i].kind == KYMO_FETCH_FORM &&
		     (args[i].writes || kymo_fetch_is_of_memory(&args[i]) || kymo_form_can_fault(args[i].form) ||
		      kymo_form_has_floats(args[i].form))))
			return true;
	return false;
}

const struct kymo_fetch *x86_payload(const struct kymo_pad_event *event)
{
	return event->n_args && event->args[0].kind == KYMO_FETCH_PAYLOAD ? &event->args[0] : NULL;
}

uint32_t x86_header_size(const struct kymo_pad_event *event)
{
	return event->adds_number || event->id >= KYMO_PACKED_WIDE ? KYMO_PACKED_WIDE_SIZE : KYMO_PACKED_COMPACT_SIZE;
}

uint32_t kymo_pad_body_size(const struct kymo_fetch *args, size_t n_args)
{
	uint32_t size = kymo_pad_has_faults(args, n_args);

	for (size_t i = 0; i < n_args; i++)
		if (args[i].kind != KYMO_FETCH_PAYLOAD)
			size += kymo_type_size(args[i].type);
	return size;
}

const struct kymo_fetch *x86_copy(const struct kymo_pad_event *event)
{
	const struct kymo_fetch *last = event->n_args ? &event->args[event->n_args - 1] : NULL;

	return last && last->kind == KYMO_FETCH_COPY ? last : NULL;
}

bool kymo_pad_wants_flags(const struct kymo_pad_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < events[i].n_args; k++)
			if (events[i].args[k].kind == KYMO_FETCH_REGISTER && events[i].args[k].value == RFLAGS)
				return true;
	return false;
}

/* The register that has the program's value of `reg`: itself, or rax. */
static unsigned int load_register(struct code *c, unsigned int reg, const struct x86_pad_site *site)
{
	if (reg == RFLAGS)
		rsp_slot(c, 0x8b, RAX, SLOT_RFLAGS);
	else if (reg == RIP)
		movabs(c, RAX, site->address);
	else if (reg == RSP || x86_slot_of(reg) >= 0)
		x86_load_saved(c, RAX, reg);
	else
		return reg;
	return RAX;
}

/* The value is in rax; from `fault` come threads that have none: then it is 0, and the fault bit is set. */
static void end_faults(struct code *c, struct label *fault, unsigned int faults, unsigned int bit)
{
	struct label done = { .n = 0 };

	if (!fault->n)
		return;
	JMP(c, &done);
	bind(c, fault);
	EMIT(c, 0x31, 0xc0);             /* xor %eax,%eax */
	EMIT(c, 0x43, 0x80, 0x4c, 0x1a); /* orb $bit,faults(%r10,%r11) */
	byte(c, faults);
	byte(c, bit);
	bind(c, &done);
}

/* rax = base + index * scale + displacement, of what the registers held; rdx is changed. */
static void load_address(struct code *c, const struct kymo_fetch *f)
{
	unsigned int scale = f->scale == 8 ? 3 : f->scale >> 1, sib = scale << 6 | RDX << 3;

	if (f->index >= 0)
		x86_load_saved(c, RDX, (unsigned int)f->index);
	if (f->base >= 0)
		x86_load_saved(c, RAX, (unsigned int)f->base);
	if (f->base >= 0 && f->index >= 0) {
		EMIT(c, 0x48, 0x8d, 0x84); /* lea disp(%rax,%rdx,scale),%rax */
		byte(c, sib | RAX);
	} else if (f->base >= 0) {
		EMIT(c, 0x48, 0x8d, 0x80); /* lea disp(%rax),%rax */
	} else if (f->index >= 0) {
		EMIT(c, 0x48, 0x8d, 0x04); /* lea disp(,%rdx,scale),%rax */
		byte(c, sib | 5);
	} else {
		EMIT(c, 0x48, 0xc7, 0xc0); /* mov $disp,%rax */
	}
	imm32(c, f->value);
}

unsigned int x86_load_argument(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
			       const struct kymo_fetch *fetch, struct label *fault)
{
	const struct kymo_fetch f = resolve_fetch(*fetch);
	const unsigned int size = kymo_type_size(f.type);

	switch (f.kind) {
	case KYMO_FETCH_REGISTER:
		return load_register(c, (unsigned int)f.value, site);
	case KYMO_FETCH_STACK_POINTER:
		x86_load_saved(c, RAX, RSP);
		break;
	case KYMO_FETCH_IMMEDIATE:
		movabs(c, RAX, (uint64_t)f.value);
		break;
	case KYMO_FETCH_RETVAL:
		if (f.value)
			JMP(c, fault);
		else
			x86_load_saved(c, RAX, RAX);
		break;
	case KYMO_FETCH_STACK:
		rsp_slot(c, 0x8d, RAX, (int32_t)(FRAME + 8 * f.value));
		x86_check_readable(c, env, 8, fault);
		x86_load_bytes(c, 8);
		break;
	case KYMO_FETCH_MEMORY:
		load_address(c, &f);
		x86_check_readable(c, env, size, fault);
		x86_load_bytes(c, size);
		break;
	case KYMO_FETCH_GLOBAL:
		movabs(c, RAX, site->bias + (uint64_t)f.value);
		x86_load_bytes(c, size);
		break;
	case KYMO_FETCH_FORM:
		if (f.writes)
			x86_check_writes(c, fault);
		x86_emit_form(c, env, site, f.form, !f.value, fault);
		break;
	case KYMO_FETCH_COPY:     /* of events that are composed, in a way of its own */
	case KYMO_FETCH_CHAIN:    /* after all others, as chain.c has it */
	case KYMO_FETCH_ARGUMENT: /* resolved */
	case KYMO_FETCH_PAYLOAD:
		break;
	}
	return RAX;
}

void x86_store_arguments(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			 const struct x86_pad_site *site)
{
	const unsigned int faults = x86_header_size(event);
	unsigned int at = faults;

	if (kymo_pad_has_faults(event->args, event->n_args)) {
		EMIT(c, 0x43, 0xc6, 0x44, 0x1a); /* movb $0,at(%r10,%r11) */
		byte(c, at++);
		byte(c, 0);
	}
	for (size_t i = 0; i < event->n_args; i++) {
		struct label fault = { .n = 0 };
		const unsigned int size = kymo_type_size(event->args[i].type);
		unsigned int reg;

		if (event->args[i].kind == KYMO_FETCH_CHAIN)
			break;
		reg = x86_load_argument(c, env, site, &event->args[i], &fault);
		end_faults(c, &fault, faults, 1u << i);
		store(c, reg, size, at);
		at += size;
	}
}

/*
 * A loop in the four registers that are free: no string instruction, because those go by DF, which is the program's.
 * Eight bytes at a time, the last eight of them again if need be; less than eight one by one. rdx bytes from r10 to
 * r11, which point after source and record then; rdx counts up to 0.
 */
static void copy(struct code *c)
{
	struct label small = { .n = 0 }, done = { .n = 0 };
	size_t again;

	EMIT(c, 0x49, 0x01, 0xd2);        /* add %rdx,%r10 */
	EMIT(c, 0x49, 0x01, 0xd3);        /* add %rdx,%r11 */
	EMIT(c, 0x48, 0xf7, 0xda);        /* neg %rdx */
	EMIT(c, 0x48, 0x83, 0xc2, 0x08);  /* add $8,%rdx */
	branch(c, &small, "\x0f\x8f", 2); /* jg */
	again = c->n;
	EMIT(c, 0x49, 0x8b, 0x44, 0x12, 0xf8); /* mov -8(%r10,%rdx),%rax */
	EMIT(c, 0x49, 0x89, 0x44, 0x13, 0xf8); /* mov %rax,-8(%r11,%rdx) */
	EMIT(c, 0x48, 0x83, 0xc2, 0x08);       /* add $8,%rdx */
	branch_back(c, "\x0f\x8e", 2, again);  /* jle */
	EMIT(c, 0x49, 0x8b, 0x42, 0xf8);       /* mov -8(%r10),%rax */
	EMIT(c, 0x49, 0x89, 0x43, 0xf8);       /* mov %rax,-8(%r11) */
	JMP(c, &done);
	bind(c, &small);
	EMIT(c, 0x48, 0x83, 0xea, 0x08); /* sub $8,%rdx */
	JE(c, &done);
	again = c->n;
	EMIT(c, 0x41, 0x0f, 0xb6, 0x04, 0x12); /* movzbl (%r10,%rdx),%eax */
	EMIT(c, 0x41, 0x88, 0x04, 0x13);       /* mov %al,(%r11,%rdx) */
	EMIT(c, 0x48, 0xff, 0xc2);             /* inc %rdx */
	branch_back(c, "\x0f\x85", 2, again);  /* jne */
	bind(c, &done);
}

void x86_store_payload(struct code *c, const struct kymo_pad_event *event)
{
	const struct kymo_fetch *payload = x86_payload(event);

	rsp_slot(c, 0x89, R10, BELOW_RING);
	EMIT(c, 0x4f, 0x8d, 0x5c, 0x1a); /* lea header's size(%r10,%r11),%r11 */
	byte(c, x86_header_size(event));
	if (payload) {
		x86_load_saved(c, R10, (unsigned int)payload->value);
		x86_load_saved(c, RDX, (unsigned int)payload->index);
	} else {
		rsp_slot(c, 0x8d, R10, x86_composed_at(event));
		rsp_slot(c, 0x8b, RDX, BELOW_COMPOSED_SIZE);
	}
	copy(c);
	if (x86_copy(event)) {
		x86_load_saved(c, R10, RSP);
		rsp_slot(c, 0x8b, RDX, BELOW_COPY_SIZE);
		copy(c);
	}
	rsp_slot(c, 0x8b, R10, BELOW_RING);
	EMIT(c, 0x4d, 0x29, 0xd3); /* sub %r10,%r11 */
}
