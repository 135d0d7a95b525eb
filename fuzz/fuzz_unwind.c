/*
 * Any bytes as an ELF file whose functions are unwound, from any location. The last bytes of the input make up
 * registers and a stack. A frame that was left is another one, and an error has changed nothing.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "sym/functions.h"
#include "sym/open.h"
#include "sym/sym.h"
#include "fuzz.h"
#include "sym/unwind.h"

enum { PLACES = 64, STACK = 256 };

struct stack {
	const uint8_t *bytes;
	size_t size;
};

static bool read_word(void *context, uint64_t address, uint64_t *ret)
{
	const struct stack *stack = context;

	if (stack->size < sizeof(*ret) || address > stack->size - sizeof(*ret))
		return false;
	memcpy(ret, stack->bytes + address, sizeof(*ret));
	return true;
}

static void unwind(struct kymo_module *module, uint64_t vaddr, struct stack *stack)
{
	struct kymo_frame frame = { .is_exact = vaddr & 1 }, before;
	uint64_t place;
	int err;

	for (size_t i = 0; i < KYMO_FRAME_REGISTERS; i++)
		frame.registers[i] = i * 8 % STACK;
	for (int depth = 0; depth < 4; depth++) {
		before = frame;
		kymo_module_return_place(module, vaddr, &frame, read_word, stack, &place);
		err = kymo_module_unwind(module, vaddr, &frame, read_word, stack);
		check(err == 0 || err == -ENODATA || err == -ENOENT || err == -EBADMSG || err == -EFAULT);
		check(!err || !memcmp(&frame, &before, sizeof(frame)));
		if (err)
			return;
		check(frame.is_exact || frame.registers[KYMO_FRAME_RSP] > before.registers[KYMO_FRAME_RSP]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stack stack = { data + (size > STACK ? size - STACK : 0), size > STACK ? STACK : size };
	kymo_cleanup_close int fd = fuzz_file(data, size);
	const struct kymo_function *functions;
	struct kymo_module *module;
	struct kymo_error *error;
	size_t n;

	error = fd < 0 ? NULL : kymo_module_open_fd(fd, "fuzz", &module);
	kymo_error_destroy(error);
	if (fd < 0 || error)
		return 0;
	error = kymo_module_functions(module, &functions, &n);
	for (size_t i = 0; i < n && i < PLACES && !error; i++) {
		unwind(module, functions[i].start, &stack);
		unwind(module, functions[i].start + (functions[i].end - functions[i].start) / 2, &stack);
		unwind(module, functions[i].end - 1, &stack);
	}
	kymo_error_destroy(error);
	kymo_module_close(module);
	return 0;
}
