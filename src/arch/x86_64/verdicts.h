/* What an instruction does to its function. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_VERDICTS_H
#define KYMO_ARCH_X86_64_VERDICTS_H

struct x86_body;
struct x86_insn;
struct x86_state;

enum x86_verdict {
	X86_STAYS,
	X86_JOINS, /* its target is a part that is not known as one yet */
	X86_RETURNS,
	X86_LEAVES,  /* by a jump */
	X86_REFUSED, /* `refusal` is filled in */
};

/* What an instruction (decoded in full) does that is passed in this state. */
enum x86_verdict x86_judge(struct x86_body *body, const struct x86_insn *insn, const struct x86_state *state);

#endif
