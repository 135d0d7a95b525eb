/*
 * Writes to the program's registers and memory (docs/internals/writes.md). In the order of the pad:
 *
 *	nothing is written yet			a byte of the frame: a filter or a sample may leave the hit out
 *	the lease is looked at, once		it decides; a restart of the sequence does not decide again
 *	memory is written			as the record is composed; a write that fails is a fault in it
 *	the record				with the values, or with faults where nothing will be written
 *	committed: the registers are written	what is not committed does not come here
 *	the way out				or, of a function that returns: the frame is removed, and `ret`
 *
 * Values of registers are computed twice: for the record, and after it. Both times they are computed of constants and
 * of registers that the pad has not changed, so they are the same. All values are computed before the first register is
 * written.
 */
#include "arch/x86_64/writes.h"

#include "arch/pad.h"
#include "arch/writes.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/form.h"
#include "arch/x86_64/frame.h"

/* Where values wait: what the record has needed, and nothing else does after it at the end of a chain. */
static const int32_t value_at[KYMO_WRITES_MAX] = { SLOT_TSC, SLOT_RFLAGS, BELOW_LOADED, BELOW_COMPOSED_SIZE };

_Static_assert(BELOW_COMPOSED_SIZE >= -128 && BELOW_LOADED < BELOW_DIVISOR, "in the red zone, below a form's values");
_Static_assert(KYMO_PAD_LIVE_LEASE >= KYMO_PAD_LIVE_INNER_PID + 8 &&
		       KYMO_PAD_LIVE_LEASE + 8 <= KYMO_PAD_LIVE_READABLE &&
		       KYMO_PAD_LIVE_READABLE + 8 <= KYMO_PAD_LIVE_TRAPS,
	       "a word of its own: the one before it is written as eight bytes");
_Static_assert(SLOT_WRITES > SLOT_FLAGS + 1 && SLOT_WRITES < SLOT_TID, "between the flags and the thread");

bool kymo_form_can_be_written(const struct kymo_form *form)
{
	for (uint32_t i = 0; i < form->n; i++)
		switch (form->ops[i].code) {
		case KYMO_FORM_STACK:
		case KYMO_FORM_RETVAL:
		case KYMO_FORM_CONTEXT:
		case KYMO_FORM_ASK:
		case KYMO_FORM_THREAD:
		case KYMO_FORM_TEXT:
		case KYMO_FORM_FUNC:
		case KYMO_FORM_PROBE:
		case KYMO_FORM_VECTOR:
		case KYMO_FORM_LOAD:
			return false;
		default:
			break;
		}
	return !kymo_form_has_floats(form) && !kymo_form_can_fault(form);
}

bool kymo_pad_writes(const struct kymo_pad_event *event)
{
	for (size_t i = 0; i < event->n_args; i++)
		if (event->args[i].writes)
			return true;
	return false;
}

bool x86_may_return(const struct kymo_pad_event *event)
{
	for (size_t i = 0; i < event->n_args; i++)
		if (event->args[i].writes == KYMO_WRITE_RETURN)
			return true;
	return false;
}

/* … when the record is committed. */
static bool writes_register(const struct kymo_fetch *fetch)
{
	return fetch->writes && fetch->writes != KYMO_WRITE_MEMORY;
}

static unsigned int register_of(const struct kymo_fetch *fetch)
{
	return fetch->writes == KYMO_WRITE_RETURN ? RAX : fetch->writes - 1u;
}

bool x86_write_is_valid(const struct kymo_fetch *fetch)
{
	const unsigned int size = kymo_type_size(fetch->type);

	if (!fetch->writes)
		return true;
	if (fetch->writes == KYMO_WRITE_MEMORY)
		return fetch->kind == KYMO_FETCH_FORM && !kymo_fetch_is_of_memory(fetch) &&
		       x86_store_is_valid(fetch->form);
	return fetch->kind == KYMO_FETCH_FORM && register_of(fetch) <= R15 && register_of(fetch) != RSP &&
	       (size == 8 || size == 4) && !kymo_fetch_is_of_memory(fetch) && kymo_form_can_be_written(fetch->form);
}

/* What no write of memory changes, or what is of the recorder's own use. */
static bool is_of_stack(const struct kymo_fetch *fetch)
{
	return fetch->kind == KYMO_FETCH_COPY || fetch->kind == KYMO_FETCH_CHAIN ||
	       fetch->kind == KYMO_FETCH_STACK_POINTER;
}

bool x86_writes_are_valid(const struct kymo_pad_event *event)
{
	uint32_t written = 0, n = 0;
	bool is_after_store = false;

	for (size_t i = 0; i < event->n_args; i++) {
		const struct kymo_fetch *fetch = &event->args[i];

		/* What is recorded is what the program had. */
		if (is_after_store && fetch->writes != KYMO_WRITE_MEMORY && !is_of_stack(fetch))
			return false;
		is_after_store |= fetch->writes == KYMO_WRITE_MEMORY;
		if (!writes_register(fetch))
			continue;
		if (register_of(fetch) > R15 || written >> register_of(fetch) & 1)
			return false;
		written |= 1u << register_of(fetch);
		n++;
	}
	return n <= KYMO_WRITES_MAX && (!kymo_pad_writes(event) || (!event->adds_number && !event->trap));
}

/* mov or cmp of the byte in the frame, by the opcode and its extension */
static void with_byte(struct code *c, unsigned int opcode, unsigned int extension, enum x86_writes value)
{
	byte(c, opcode);
	rsp_operand(c, extension, SLOT_WRITES);
	byte(c, value);
}

static void set_byte(struct code *c, enum x86_writes value)
{
	with_byte(c, 0xc6, 0, value); /* movb $value,writes(%rsp) */
}

void x86_begin_writes(struct code *c, const struct kymo_pad_event *event)
{
	if (kymo_pad_writes(event))
		set_byte(c, X86_WRITES_NOTHING);
}

void x86_decide_writes(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event)
{
	struct label none = { .n = 0 }, over = { .n = 0 };

	if (!kymo_pad_writes(event))
		return;
	compare_byte(c, env->live, 0); /* where nothing is recorded the clock may be forbidden */
	JE(c, &none);
	movabs(c, R10, env->lease);
	EMIT(c, 0x4d, 0x8b, 0x12);                         /* mov (%r10),%r10 */
	EMIT(c, 0x0f, 0x31);                               /* rdtsc */
	EMIT(c, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0); /* shl $32,%rdx; or %rdx,%rax */
	EMIT(c, 0x49, 0x29, 0xc2);                         /* sub %rax,%r10 */
	EMIT(c, 0x49, 0xc1, 0xea, KYMO_PAD_LEASE_BITS);    /* shr $bits,%r10 */
	JNE(c, &over);
	set_byte(c, X86_WRITES);
	JMP(c, &none);
	/* A clock that goes back later must not bring it to life again. */
	bind(c, &over);
	movabs(c, R10, env->lease);
	EMIT(c, 0x49, 0x83, 0x3a, 0); /* cmpq $0,(%r10) */
	JE(c, &none);
	EMIT(c, 0x49, 0xc7, 0x02, 0, 0, 0, 0); /* movq $0,(%r10) */
	bind(c, &none);
}

void x86_check_writes(struct code *c, struct label *fault)
{
	with_byte(c, 0x80, 7, X86_WRITES_NOTHING); /* cmpb $0,writes(%rsp) */
	JE(c, fault);
}

/* The register gets what is at `from`. */
static void write_register(struct code *c, const struct kymo_fetch *fetch, int32_t from)
{
	const unsigned int reg = register_of(fetch);

	if (x86_slot_of(reg) < 0) {
		rsp_slot(c, 0x8b, reg, from);
		return;
	}
	rsp_slot(c, 0x8b, RAX, from);
	rsp_slot(c, 0x89, RAX, x86_slot_of(reg));
}

void x86_commit_writes(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		       const struct x86_pad_site *site)
{
	struct label none = { .n = 0 };
	size_t n = 0;

	if (!kymo_pad_writes(event))
		return;
	x86_check_writes(c, &none);
	for (size_t i = 0; i < event->n_args; i++) {
		if (!writes_register(&event->args[i]))
			continue;
		x86_emit_form(c, env, site, event->args[i].form, false, &none); /* without faults */
		if (kymo_type_size(event->args[i].type) == 4)
			EMIT(c, 0x89, 0xc0); /* mov %eax,%eax */
		rsp_slot(c, 0x89, RAX, value_at[n++]);
	}
	n = 0;
	for (size_t i = 0; i < event->n_args; i++)
		if (writes_register(&event->args[i]))
			write_register(c, &event->args[i], value_at[n++]);
	if (x86_may_return(event))
		set_byte(c, X86_WRITES_RETURN);
	bind(c, &none);
}

void x86_check_return(struct code *c, struct label *runs)
{
	with_byte(c, 0x80, 7, X86_WRITES_RETURN); /* cmpb $2,writes(%rsp) */
	JNE(c, runs);
}
