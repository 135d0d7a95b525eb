/* Calls as JSON. */
#include "syscall/json.h"

#include <inttypes.h>

#include "base/json.h"
#include "syscall/call.h"
#include "syscall/errors.h"
#include "syscall/line.h"
#include "syscall/names.h"

/* One argument out of the text; a comma belongs to none. */
static void write_argument(FILE *out, const struct kymo_syscall_call *call, unsigned i, const struct kymo_line *text)
{
	const char *at = text->data + call->base + call->arg_at[i],
		   *stop = text->data + call->base + call->arg_at[i + 1];

	while (at < stop && (*at == ',' || *at == ' '))
		at++;
	while (stop > at && (stop[-1] == ' ' || stop[-1] == ','))
		stop--;
	kymo_json_bytes(out, at, (size_t)(stop - at));
}

void kymo_syscall_write_json(FILE *out, const struct kymo_syscall_call *call, uint64_t number,
			     const struct kymo_line *text)
{
	char name[32];

	fprintf(out, "\"number\": %" PRIu64 ", \"name\": \"%s\", %s\"args\": [", number,
		kymo_syscall_name_or_number(call->number, name), call->is_i386 ? "\"arch\": \"i386\", " : "");
	for (unsigned i = 0; i < call->n_args && !text->is_cut; i++) {
		fputs(i ? ", " : "", out);
		write_argument(out, call, i, text);
	}
	fputs("]", out);
}

void kymo_syscall_write_json_result(FILE *out, const struct kymo_syscall_call *call,
				    const struct kymo_syscall_target *target, uint64_t duration_ns,
				    struct kymo_line *text)
{
	const char *error = kymo_syscall_failed(call) ? kymo_syscall_errno((int)-call->result) : NULL;
	const bool was_cut = text->is_cut;

	fprintf(out, ", \"result\": %" PRId64, call->result);
	if (error)
		fprintf(out, ", \"error\": \"%s\"", error);
	kymo_line_clear(text);
	kymo_syscall_result(call, target, text);
	text->is_cut |= was_cut;
	fputs(", \"shown\": ", out);
	kymo_json_bytes(out, text->data, text->n);
	fprintf(out, ", \"duration_ns\": %" PRIu64, duration_ns);
}

void kymo_syscall_stop(struct kymo_syscall_call *call, const struct kymo_line *text)
{
	call->arg_at[call->n_args] = (unsigned)text->n - call->base;
}
