/* Forms as text, for users who ask what was made of their words, and for tests. */
#include "expr/form_dump.h"

#include <inttypes.h>

static const char *const code_names[KYMO_FORM_N_CODES] = {
	[KYMO_FORM_VALUE] = "value",
	[KYMO_FORM_REGISTER] = "register",
	[KYMO_FORM_STACK] = "stack",
	[KYMO_FORM_RETVAL] = "retval",
	[KYMO_FORM_CONTEXT] = "context",
	[KYMO_FORM_ASK] = "ask",
	[KYMO_FORM_THREAD] = "thread",
	[KYMO_FORM_ADDRESS] = "address",
	[KYMO_FORM_FILE] = "file",
	[KYMO_FORM_TEXT] = "text",
	[KYMO_FORM_FUNC] = "func",
	[KYMO_FORM_PROBE] = "probe",
	[KYMO_FORM_VECTOR] = "vector",
	[KYMO_FORM_PICK] = "pick",
	[KYMO_FORM_LOAD] = "load",
	[KYMO_FORM_EXTEND] = "extend",
	[KYMO_FORM_NEGATE] = "negate",
	[KYMO_FORM_COMPLEMENT] = "complement",
	[KYMO_FORM_TRUTH] = "truth",
	[KYMO_FORM_NOT] = "not",
	[KYMO_FORM_ADD] = "add",
	[KYMO_FORM_SUBTRACT] = "subtract",
	[KYMO_FORM_MULTIPLY] = "multiply",
	[KYMO_FORM_DIVIDE] = "divide",
	[KYMO_FORM_REMAINDER] = "remainder",
	[KYMO_FORM_AND] = "and",
	[KYMO_FORM_OR] = "or",
	[KYMO_FORM_XOR] = "xor",
	[KYMO_FORM_SHIFT_LEFT] = "shift-left",
	[KYMO_FORM_SHIFT_RIGHT] = "shift-right",
	[KYMO_FORM_EQUAL] = "equal",
	[KYMO_FORM_DIFFERENT] = "different",
	[KYMO_FORM_LESS] = "less",
	[KYMO_FORM_LESS_OR_EQUAL] = "less-or-equal",
	[KYMO_FORM_DROP] = "drop",
	[KYMO_FORM_WANT] = "want",
	[KYMO_FORM_TO_FLOAT] = "to-float",
	[KYMO_FORM_FROM_FLOAT] = "from-float",
	[KYMO_FORM_RESIZE_FLOAT] = "resize-float",
	[KYMO_FORM_FLOAT_ADD] = "float-add",
	[KYMO_FORM_FLOAT_SUBTRACT] = "float-subtract",
	[KYMO_FORM_FLOAT_MULTIPLY] = "float-multiply",
	[KYMO_FORM_FLOAT_DIVIDE] = "float-divide",
	[KYMO_FORM_FLOAT_EQUAL] = "float-equal",
	[KYMO_FORM_FLOAT_LESS] = "float-less",
	[KYMO_FORM_FLOAT_LESS_OR_EQUAL] = "float-less-or-equal",
	[KYMO_FORM_SWAP] = "swap",
	[KYMO_FORM_STORE] = "store",
	[KYMO_FORM_JUMP] = "jump",
	[KYMO_FORM_JUMP_IF_ZERO] = "jump-if-zero",
};

static const char *const context_names[KYMO_FORM_N_CONTEXTS] = {
	[KYMO_FORM_PID] = "pid",
	[KYMO_FORM_TID] = "tid",
	[KYMO_FORM_CPU] = "cpu",
};

static const char *const question_names[KYMO_FORM_N_QUESTIONS] = {
	[KYMO_FORM_NAME] = "name",
	[KYMO_FORM_NAME_AGAIN] = "name again",
	[KYMO_FORM_CLOCK] = "clock",
};

/* Operations that come in two forms. */
static bool has_sign(unsigned int code)
{
	return code == KYMO_FORM_DIVIDE || code == KYMO_FORM_REMAINDER || code == KYMO_FORM_SHIFT_RIGHT ||
	       code == KYMO_FORM_LESS || code == KYMO_FORM_LESS_OR_EQUAL || code == KYMO_FORM_TO_FLOAT ||
	       code == KYMO_FORM_FROM_FLOAT;
}

static void dump_op(const struct kymo_form_op *op, const char *(*register_name)(int number), FILE *out)
{
	fputs(code_names[op->code], out);
	if (has_sign(op->code))
		fputs(op->is_signed ? " signed" : " unsigned", out);
	switch (op->code) {
	case KYMO_FORM_REGISTER:
		if (register_name)
			fprintf(out, " %%%s", register_name((int)op->value));
		else
			fprintf(out, " %" PRId64, op->value);
		break;
	case KYMO_FORM_CONTEXT:
		fprintf(out, " %s", context_names[op->value]);
		break;
	case KYMO_FORM_ASK:
		fprintf(out, " %s", question_names[op->value]);
		break;
	case KYMO_FORM_EXTEND:
		fprintf(out, " %c%d", op->is_signed ? 's' : 'u', 8 * op->size);
		break;
	case KYMO_FORM_ADDRESS:
	case KYMO_FORM_FILE:
		fprintf(out, " %#" PRIx64, (uint64_t)op->value);
		break;
	case KYMO_FORM_FUNC:
	case KYMO_FORM_PROBE:
		if (op->size)
			fprintf(out, " %d from %" PRId64, 8 * op->size, op->value);
		break;
	case KYMO_FORM_LOAD:
	case KYMO_FORM_STORE:
		fprintf(out, " %d", 8 * op->size);
		break;
	case KYMO_FORM_RETVAL:
		fputs(op->value ? " vector" : "", out);
		break;
	case KYMO_FORM_VALUE:
	case KYMO_FORM_VECTOR:
	case KYMO_FORM_PICK:
	case KYMO_FORM_STACK:
	case KYMO_FORM_JUMP:
	case KYMO_FORM_JUMP_IF_ZERO:
		fprintf(out, " %" PRId64, op->value);
		break;
	default:
		if (kymo_form_is_of_floats(op->code))
			fprintf(out, " %d", 8 * op->size);
		break;
	}
	fputc('\n', out);
}

void kymo_form_dump(const struct kymo_form *form, const char *(*register_name)(int number), FILE *out)
{
	for (uint32_t i = 0; i < form->n; i++) {
		fprintf(out, "%4u  ", i);
		dump_op(&form->ops[i], register_name, out);
	}
}
