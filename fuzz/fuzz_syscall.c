/*
 * Any registers and memory as a system call. Two bytes are the number and how it is shown. The result, six arguments
 * and the memory follow; the memory lies at an address that arguments can have. The text is bounded by what there is to
 * read.
 */
#include "fuzz.h"
#include "syscall/call.h"
#include "syscall/line.h"
#include "syscall/touches.h"

enum { BASE = 0x1000, HEAD = 2 + 7 * 8 };

struct bytes {
	const uint8_t *data;
	size_t size;
};

static size_t read_bytes(void *context, uint64_t address, void *out, size_t size)
{
	const struct bytes *bytes = context;

	if (address < BASE || address - BASE >= bytes->size)
		return 0;
	if (size > bytes->size - (address - BASE))
		size = bytes->size - (address - BASE);
	memcpy(out, bytes->data + (address - BASE), size);
	return size;
}

static size_t fd_path(void *context, int fd, char *out, size_t size)
{
	memset(out, '<', size);
	return fd % 3 ? size : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes;
	struct kymo_syscall_target target = { .context = &bytes, .read = read_bytes, .string_size = 16 };
	struct kymo_syscall_call call = { 0 };
	struct kymo_line line = { 0 };
	uint64_t words[7];

	if (size < HEAD)
		return 0;
	bytes = (struct bytes){ data + HEAD, size - HEAD };
	memcpy(words, data + 2, sizeof(words));
	call.number = data[0] | (data[1] & 3u) << 8;
	if (data[1] & 4)
		target.fd_path = fd_path;
	target.style.constants = (enum kymo_constants)((data[1] >> 3 & 3u) % 3);
	target.style.strings = (enum kymo_strings)((data[1] >> 5 & 3u) % 3);
	target.is_whole = data[1] & 128;
	for (unsigned i = 0; i < 6; i++)
		call.args[i] = words[1 + i] >> 63 ? words[1 + i] : words[1 + i] & 0xffff;
	call.stack_pointer = call.args[0];
	kymo_syscall_enter(&call, &target, &line);
	call.result = (int64_t)words[0];
	kymo_syscall_leave(&call, &target, &line);
	kymo_syscall_result(&call, &target, &line);
	check(call.n_args <= 7 && line.n < (1 << 25));
	for (unsigned i = 0; i < call.n_args; i++)
		check(call.arg_at[i] <= call.arg_at[i + 1] && call.base + call.arg_at[i + 1] <= line.n);
	kymo_syscall_touches(&call, &target, "/dev/null");
	kymo_line_deinit(&line);
	return 0;
}
