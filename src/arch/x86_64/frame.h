/* What the files that write pads share: the frame, and records' arguments. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_FRAME_H
#define KYMO_ARCH_X86_64_FRAME_H

#include "arch/pad.h"
#include "arch/x86_64/code.h"

/* The pad's frame below the red zone. */
enum {
	SLOT_RDX = 0,
	SLOT_RAX = 8,
	SLOT_R10 = 16,
	SLOT_R11 = 24,
	SLOT_FLAGS = 32, /* ax as lahf and seto left it */
	SLOT_TID = 36,
	SLOT_RFLAGS = 40, /* whole, only where an argument wants them */
	SLOT_TSC = 48,    /* the stamp of the record before this one, of this pad or of the one that it comes behind; 0:
			     none */
	FRAME = 128 + 56,

	/* In the frame's own red zone, which signal handlers step over: for as long as nothing is called. */
	BELOW_RING = -8,
	BELOW_VALUES = -8, /* of a form: the first but one of its values, others below it; the last is in rax */
	BELOW_DIVISOR = -8 * (KYMO_FORM_DEPTH_MAX + 1),

	/* Of an event that reads memory: the stack pointer is lower then, so that what is called keeps these. */
	BELOW_LOADED = BELOW_DIVISOR - 8,       /* where a read of one value puts it */
	BELOW_COPY_SIZE = BELOW_LOADED,         /* bytes of the stack to be copied, when everything else is read */
	BELOW_COMPOSED_SIZE = BELOW_LOADED - 8, /* bytes of what is composed */
	BELOW_COMPOSED = BELOW_COMPOSED_SIZE,   /* that ends here */
};

_Static_assert(BELOW_COMPOSED >= -128, "within the red zone as long as nothing is composed");

/* Where a pad's site is. */
struct x86_site {
	uint64_t address; /* runtime */
	uint64_t bias;    /* of its module: runtime address - vaddr */
	bool adds_number; /* of a system call, which is in rax, to the event's id */
};

/* Whether an argument is one that can be fetched. */
bool x86_fetch_is_valid(const struct kymo_fetch *fetch);

/* The payload, of an event that has one; else NULL. */
const struct kymo_fetch *x86_payload(const struct kymo_pad_event *event);

/* Whether arguments are composed below the frame before the record is begun: because they read memory, which takes a
 * system call. */
bool x86_is_composed(const struct kymo_pad_event *event);

/* Where that begins, from the frame. */
int32_t x86_composed_at(const struct kymo_pad_event *event);

/*
 * Around an event that reads memory: the stack pointer goes below all that the event keeps there. To `no_room`, with
 * the stack pointer as it was, where the initial thread's stack would not have it.
 */
void x86_begin_reads(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		     struct label *no_room);
void x86_end_reads(struct code *c);

/* The copy of the stack, of an event that has one; else NULL. Its size is at BELOW_COPY_SIZE once all is composed. */
const struct kymo_fetch *x86_copy(const struct kymo_pad_event *event);

/* Find out how many bytes of the stack are copied, and compose what comes before them at r10 + r11 + `at`. All four
 * free registers are changed. */
void x86_compose_copy(struct code *c, const struct kymo_pad_env *env, const struct x86_site *site,
		      const struct kymo_fetch *fetch, int32_t begin, uint32_t at);

/* How far that is, for code of the event that is made elsewhere. 0: it reads nothing. */
int32_t x86_reads_lowered(const struct kymo_pad_event *event);

/* The most bytes of a string, or how many bytes. */
uint32_t x86_limit_of(const struct kymo_fetch *fetch);

/* r11 = the process that the shared code is to read, as it is called here; 0: none. */
void x86_load_reader(struct code *c, const struct kymo_pad_env *env);

/* Call what reads (guest.c): `size` bytes at rax, of the process r11, to r10. All four free registers are changed. */
void x86_call_reader(struct code *c, const struct kymo_pad_env *env, uint32_t entry, uint32_t size);

/* Compose the arguments: all of the record that follows the thread's id. All four free registers are changed. */
void x86_compose(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		 const struct x86_site *site);

/* rax = the `size` bytes at rax, whatever is there, with zeros before them; or a jump to `fault`. All four free
 * registers are changed. The event is one that reads memory. */
void x86_emit_load(struct code *c, const struct kymo_pad_env *env, unsigned int size, struct label *fault);

/* Where the frame has a general register, or -1: it is as the program left it. */
int32_t x86_slot_of(unsigned int reg);

/* mov what the program has in `reg`, a general register, to `to`. */
void x86_load_saved(struct code *c, unsigned int to, unsigned int reg);

/* Store the arguments of a record at r10 + r11; rax and rdx are free, what they held is in the frame. */
void x86_store_arguments(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			 const struct x86_site *site);

/* What a register of the program's, a word, a form … has, as one argument: the register with the value, or a jump to
 * `fault`. rax and rdx are changed, and what is below the frame; of a composed event r10 and r11, too. */
unsigned int x86_load_argument(struct code *c, const struct kymo_pad_env *env, const struct x86_site *site,
			       const struct kymo_fetch *fetch, struct label *fault);

/* A jump to `fault` unless the `size` bytes at rax can be read for certain. rdx is changed. */
void x86_check_readable(struct code *c, const struct kymo_pad_env *env, unsigned int size, struct label *fault);

/* rax = the `size` bytes at rax, with zeros before them; no byte more is read. */
void x86_load_bytes(struct code *c, unsigned int size);

/* rax = the value of a checked form; a jump to `fault` where it has none. rdx is changed, and what is below the frame.
 */
void x86_emit_form(struct code *c, const struct kymo_pad_env *env, const struct x86_site *site,
		   const struct kymo_form *form, bool retval_is_known, struct label *fault);

/* Store the payload of a record at r10 + r11, or its composed arguments, where there is room for it, and commit the
 * record with the last instruction. rax, rdx and r11 are changed. */
void x86_store_payload(struct code *c, const struct kymo_pad_event *event);

#endif
