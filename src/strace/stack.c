/*
 * Stacks after lines. A stack is made text when it is taken, at the entry of the call: by its exit the program may
 * have other code mapped.
 */
#include "strace/stack.h"

#include <asm/unistd.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "stack/stack.h"
#include "strace/state.h"
#include "sym/demangle.h"

/* ---- text ------------------------------------------------------------------------------------ */

/* As strace writes them. */
static void print_frame(FILE *out, const struct kymo_stack_frame *frame)
{
	fputs(" > ", out);
	if (frame->is_lost)
		fputs("unexpected_backtracing_error ", out);
	if (frame->file || frame->function) {
		kymo_utf8_print(out, frame->file ? frame->file : "");
		fputs("(", out);
		if (frame->function)
			kymo_print_shown(out, frame->function);
		fprintf(out, "+0x%" PRIx64 ") ", frame->function ? frame->offset : frame->address);
	}
	fprintf(out, "[0x%" PRIx64 "]\n", frame->address);
}

static void print_object(FILE *out, const struct kymo_stack_frame *frame, bool is_first)
{
	kymo_cleanup_free char *shown = frame->function ? kymo_shown(frame->function) : NULL;

	fputs(is_first ? "{" : ", {", out);
	if (frame->file) {
		fputs("\"file\": ", out);
		kymo_json_string(out, frame->file);
		fputs(", ", out);
	}
	if (frame->function) {
		fputs("\"function\": ", out);
		kymo_json_string(out, shown ? shown : frame->function);
		fprintf(out, ", \"offset\": %" PRIu64 ", ", frame->offset);
	}
	fprintf(out, "\"address\": \"0x%" PRIx64 "\"%s}", frame->address, frame->is_lost ? ", \"lost\": true" : "");
}

static void print_frames(FILE *out, const struct kymo_stack_frame *frames, size_t n, bool json)
{
	for (size_t i = 0; i < n; i++)
		if (json)
			print_object(out, &frames[i], !i);
		else
			print_frame(out, &frames[i]);
}

static void keep_frame(struct strace_thread *thread, const struct kymo_stack_frame *frames, size_t n, const char *why)
{
	const bool json = thread->owner->request->look.json;
	size_t size;
	FILE *out = open_memstream(&thread->stack, &size);

	if (!out) {
		thread->stack = NULL;
		thread->owner->stream.is_incomplete = true;
		return;
	}
	fputs(json ? "\"stack\": [" : "", out);
	print_frames(out, frames, n, json);
	fputs(json ? "]" : "", out);
	if (why)
		fprintf(out, json ? ", \"no_stack\": \"%s\"" : " > (no stack: %s)\n", why);
	if (fclose(out))
		thread->owner->stream.is_incomplete = true;
}

/* ---- taking it ------------------------------------------------------------------------------- */

static bool read_memory(void *context, uint64_t address, void *data, size_t size)
{
	const struct strace_thread *thread = context;

	return !kymo_engine_read(thread->engine, address, data, size);
}

void strace_stack_take(struct strace_thread *thread, bool is_in_call)
{
	struct kymo_stack_frame frames[KYMO_STACK_MAX];
	struct kymo_stack_thread taken = { .tid = thread->tid,
					   .pid = thread->pid,
					   .is_behind_call = is_in_call,
					   .read = read_memory,
					   .context = thread };
	struct kymo_stacks *stacks = thread->owner->tracing.stacks;
	size_t n = 0;
	int err;

	if (!stacks)
		return;
	free(thread->stack);
	thread->stack = NULL;
	err = kymo_engine_get_registers(thread->engine, &taken.registers);
	if (!err)
		n = kymo_stacks_take(stacks, &taken, frames);
	keep_frame(thread, frames, n,
		   err == -ESRCH ? "the thread has ended"
		   : err         ? strerror(-err)
		   : n           ? NULL
				 : "memory is out");
}

/* ---- what changes them ----------------------------------------------------------------------- */

void strace_stack_saw(struct strace_thread *thread)
{
	const struct kymo_syscall_call *call = &thread->call;
	bool is_change = false;

	if (!thread->owner->tracing.stacks)
		return;
	switch (call->number) {
	case __NR_mmap:
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		is_change = call->args[2] & PROT_EXEC;
		break;
	case __NR_shmat:
	case __NR_mremap:
	case __NR_remap_file_pages:
		is_change = true;
	}
	if (is_change)
		kymo_stacks_changed(thread->owner->tracing.stacks, thread->pid);
}

void strace_stack_forget(const struct strace_thread *thread)
{
	if (thread->owner->tracing.stacks)
		kymo_stacks_forget(thread->owner->tracing.stacks, thread->pid);
}
