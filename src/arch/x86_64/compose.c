/*
 * Arguments that are composed before the record is begun, below the frame: because they read memory by a system call,
 * which can't be made within a sequence, nor under a ring's lock (docs/internals/reading.md). The record gets them as
 * it gets a payload.
 */
#include "arch/x86_64/compose.h"

#include "arch/x86_64/arguments.h"
#include "arch/x86_64/copy.h"
#include "arch/x86_64/form.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/guest.h"
#include "arch/x86_64/reads.h"
#include "wire/event.h"

/* What is composed, as far as it has come. */
struct composing {
	struct code *c;
	const struct kymo_pad_env *env;
	const struct x86_pad_site *site;
	int32_t begin; /* from the frame */
	uint32_t at;   /* where the next argument goes, after as many bytes more as the slot of the size says */
};

static void set_fault(const struct composing *to, unsigned int bit)
{
	byte(to->c, 0x80); /* orb $bit,faults(%rsp) */
	rsp_operand(to->c, 1, to->begin);
	byte(to->c, bit);
}

/* The same of elements whose size is no power of two. */
static void divide_elements(const struct composing *to, uint16_t size)
{
	struct code *c = to->c;

	EMIT(c, 0x31, 0xd2, 0x41, 0xbb); /* xor %edx,%edx; mov $size,%r11d */
	imm32(c, size);
	EMIT(c, 0x41, 0xf7, 0xf3); /* div %r11d */
	rsp_slot(c, 0x8d, R10, to->begin + (int32_t)to->at);
	rsp_slot(c, 0x03, R10, BELOW_COMPOSED_SIZE); /* add size(%rsp),%r10 */
	EMIT(c, 0x66, 0x41, 0x89, 0x02, 0x69, 0xc0); /* mov %ax,(%r10); imul $size,%eax,%eax */
	imm32(c, size);
}

/* Of %rax bytes that were read the elements that are whole, and their number in place of that of the bytes. */
static void count_elements(const struct composing *to, const struct kymo_fetch *fetch)
{
	const unsigned int size = kymo_type_size(kymo_element_type(fetch->array_of));
	struct code *c = to->c;

	if (fetch->element_size)
		divide_elements(to, fetch->element_size);
	if (size == 1)
		return;
	EMIT(c, 0x48, 0x83, 0xe0); /* and $-size,%rax */
	byte(c, -size);
	rsp_slot(c, 0x8d, R10, to->begin + (int32_t)to->at);
	rsp_slot(c, 0x03, R10, BELOW_COMPOSED_SIZE); /* add size(%rsp),%r10 */
	EMIT(c, 0x66, 0x41, 0xc1, 0x2a);             /* shrw $log2(size),(%r10) */
	byte(c, (unsigned int)__builtin_ctz(size));
}

/* It lies on the stack, or in the pad, and has a NUL. */
static bool is_own_text(const struct kymo_fetch *fetch)
{
	const struct kymo_form_op *op = fetch->form->ops;

	return fetch->type == KYMO_TYPE_STRING && fetch->form->n == 1 &&
	       (op->code == KYMO_FORM_TEXT || (op->code == KYMO_FORM_ASK && op->value != KYMO_FORM_CLOCK));
}

/* What the shared code is to read, by rdx: as many bytes as there is room for, or fewer where the form wants those. */
static void call_reader(const struct composing *to, const struct kymo_fetch *fetch, uint32_t entry)
{
	const bool is_string = fetch->type == KYMO_TYPE_STRING;
	const uint32_t limit = x86_limit_of(fetch), most = limit + is_string;
	struct label enough = { .n = 0 };
	struct code *c = to->c;

	if (!kymo_form_has(fetch->form, KYMO_FORM_WANT, NULL)) {
		x86_call_reader(c, to->env, entry, is_string ? KYMO_GUEST_STRING(limit, most) : most);
		return;
	}
	rsp_slot(c, 0x8b, RDX, BELOW_WANTED);
	EMIT(c, 0x48, 0x81, 0xfa); /* cmp $most,%rdx: a number below 0 is a large one */
	imm32(c, most);
	branch(c, &enough, "\x0f\x86", 2); /* jbe */
	byte(c, 0xba);                     /* mov $most,%edx */
	imm32(c, most);
	bind(c, &enough);
	if (is_string) {
		EMIT(c, 0x81, 0xca); /* or $limit << 16,%edx */
		imm32(c, KYMO_GUEST_STRING(limit, 0));
	}
	x86_call_reader_sized(c, to->env, entry);
}

/* Where nothing is: all that there is room for is wanted there. */
static void want_nothing_there(struct code *c, const struct kymo_fetch *fetch)
{
	EMIT(c, 0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff); /* mov $-1,%rax */
	if (kymo_form_has(fetch->form, KYMO_FORM_WANT, NULL))
		rsp_slot(c, 0x89, RAX, BELOW_WANTED);
}

/* Its least size is in `at`, the rest is added to the slot. */
static void compose_memory(struct composing *to, const struct kymo_fetch *fetch, unsigned int bit)
{
	struct label fault = { .n = 0 }, uncertain = { .n = 0 }, call = { .n = 0 };
	const bool is_string = fetch->type == KYMO_TYPE_STRING;
	struct kymo_guest_image guest;
	struct code *c = to->c;

	kymo_guest_image(&guest);
	x86_emit_form(c, to->env, to->site, fetch->form, !fetch->value, &fault);
	if (!is_own_text(fetch))
		x86_check_readable(c, to->env, x86_limit_of(fetch) + is_string, &uncertain);
	EMIT(c, 0x49, 0xc7, 0xc3, 0xff, 0xff, 0xff, 0xff); /* mov $-1,%r11: for certain */
	JMP(c, &call);
	bind(c, &fault);
	want_nothing_there(c, fetch);
	bind(c, &uncertain);
	x86_load_live_page(c, to->env);
	bind(c, &call);
	rsp_slot(c, 0x8d, R10, to->begin + (int32_t)to->at);
	rsp_slot(c, 0x03, R10, BELOW_COMPOSED_SIZE); /* add size(%rsp),%r10 */
	call_reader(to, fetch, is_string ? guest.string : fetch->ends_at_null ? guest.list : guest.block);
	EMIT(c, 0x48, 0x85, 0xc0);       /* test %rax,%rax */
	branch(c, &call, "\x0f\x89", 2); /* jns */
	EMIT(c, 0x48, 0xf7, 0xd0);       /* not %rax */
	set_fault(to, bit);
	bind(c, &call);
	if (!is_string)
		count_elements(to, fetch);
	rsp_slot(c, 0x01, RAX, BELOW_COMPOSED_SIZE); /* add %rax,size(%rsp) */
}

static void compose_value(struct composing *to, const struct kymo_fetch *fetch, unsigned int bit)
{
	struct label fault = { .n = 0 }, done = { .n = 0 };
	struct code *c = to->c;
	const unsigned int reg = x86_load_argument(c, to->env, to->site, fetch, &fault);

	if (fault.n) {
		JMP(c, &done);
		bind(c, &fault);
		EMIT(c, 0x31, 0xc0); /* xor %eax,%eax */
		set_fault(to, bit);
		bind(c, &done);
	}
	rsp_slot(c, 0x8d, R10, to->begin);
	rsp_slot(c, 0x8b, R11, BELOW_COMPOSED_SIZE);
	store(c, reg, kymo_type_size(fetch->type), to->at);
}

void x86_compose(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		 const struct x86_pad_site *site)
{
	struct composing to = { .c = c, .env = env, .site = site, .begin = x86_composed_at(event), .at = 1 };

	EMIT(c, 0x48, 0xc7); /* movq $0,size(%rsp) */
	rsp_operand(c, 0, BELOW_COMPOSED_SIZE);
	imm32(c, 0);
	byte(c, 0xc6); /* movb $0,faults(%rsp) */
	rsp_operand(c, 0, to.begin);
	byte(c, 0);
	for (size_t i = 0; i < event->n_args; i++) {
		if (event->args[i].kind == KYMO_FETCH_COPY) {
			x86_compose_copy(c, env, site, &event->args[i], to.begin, to.at);
			to.at += sizeof(struct kymo_wire_stack);
		} else if (kymo_fetch_is_of_memory(&event->args[i]))
			compose_memory(&to, &event->args[i], 1u << i);
		else if (event->args[i].kind != KYMO_FETCH_CHAIN) /* the size of which comes last */
			compose_value(&to, &event->args[i], 1u << i);
		to.at += kymo_type_size(event->args[i].type);
	}
	EMIT(c, 0x48, 0x81); /* addq $at,size(%rsp) */
	rsp_operand(c, 0, BELOW_COMPOSED_SIZE);
	imm32(c, to.at);
}
