/*
 * Frame after frame: the code that it is in, its function, its caller. Memory is read a page at a time, and kept for
 * one stack.
 */
#include "stack/stack.h"

#include <errno.h>
#include <string.h>

#include "arch/selectors.h"
#include "base/page.h"
#include "base/search.h"
#include "stack/files.h"
#include "stack/jit.h"
#include "stack/pads.h"
#include "stack/space.h"
#include "stack/state.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/sym.h"
#include "sym/symbols.h"
#include "sym/unwind.h"

enum { PAGES = 16 };

/* One stack that is being taken. */
struct walk {
	struct kymo_stacks *stacks;
	struct stack_space *space;
	const struct kymo_stack_thread *thread;
	struct kymo_frame frame;
	bool is_lost;          /* a frame was in no code that is known */
	bool may_read_names;   /* the perf map: once, before the first name */
	size_t n_followed;     /* of the chain, if there is one */
	uint64_t pages[PAGES]; /* their addresses, where they are not 0 */
	uint8_t bytes[PAGES][KYMO_PAGE_SIZE];
};

static const uint8_t *page_at(struct walk *walk, uint64_t address)
{
	const size_t i = address / KYMO_PAGE_SIZE % PAGES;

	if (walk->pages[i] == address)
		return walk->bytes[i];
	walk->pages[i] = 0;
	if (!address || !walk->thread->read(walk->thread->context, address, walk->bytes[i], KYMO_PAGE_SIZE))
		return NULL;
	walk->pages[i] = address;
	return walk->bytes[i];
}

static bool read_word(void *context, uint64_t address, uint64_t *ret)
{
	struct walk *walk = context;
	const size_t offset = address % KYMO_PAGE_SIZE;
	const uint8_t *page;

	if (walk->thread->is_copy || offset > KYMO_PAGE_SIZE - sizeof(*ret))
		return walk->thread->read(walk->thread->context, address, ret, sizeof(*ret));
	page = page_at(walk, address - offset);
	if (!page)
		return false;
	memcpy(ret, page + offset, sizeof(*ret));
	return true;
}

static struct stack_region *find_region(struct walk *walk)
{
	struct stack_region *region = stack_region_at(walk->space, kymo_frame_location(&walk->frame));

	walk->is_lost |= !region;
	return region;
}

static void begin_walk(struct walk *walk)
{
	const struct user_regs_struct *r = &walk->thread->registers;
	const uint64_t registers[KYMO_FRAME_REGISTERS] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi,
							   r->rbp, r->rsp, r->r8,  r->r9,  r->r10, r->r11,
							   r->r12, r->r13, r->r14, r->r15, r->rip };
	const struct stack_region *region;

	memcpy(walk->frame.registers, registers, sizeof(registers));
	walk->frame.is_exact = !walk->thread->is_behind_call;
	walk->n_followed = 0;
	region = find_region(walk);
	if (region && stack_is_pad(region)) {
		const uint64_t home = stack_home(walk->space, walk->thread);

		if (home)
			walk->frame.registers[KYMO_FRAME_PC] = home;
	}
}

/* The location of the frame as linked, where its file can be read. */
static struct kymo_module *find_module(struct walk *walk, struct stack_region *region, uint64_t *vaddr_ret)
{
	struct kymo_module *module = stack_module(walk->stacks, region, walk->thread);
	const uint64_t offset = kymo_frame_location(&walk->frame) - region->map.start + region->map.offset;

	return module && !kymo_module_offset_to_vaddr(module, offset, vaddr_ret) ? module : NULL;
}

/* By symbols alone, where the file's frames are damaged, or its functions are not known for another reason. */
static const struct kymo_symbol *symbol_at(const struct kymo_module *module, uint64_t vaddr)
{
	size_t n;
	const struct kymo_symbol *symbols = kymo_module_symbols(module, &n);
	const size_t at = kymo_partition_point(i, n, symbols[i].vaddr <= vaddr);

	return at && vaddr - symbols[at - 1].vaddr < symbols[at - 1].size ? &symbols[at - 1] : NULL;
}

static void name_frame(struct kymo_stack_frame *frame, struct kymo_module *module, uint64_t vaddr)
{
	const struct kymo_function *function = kymo_module_function_at(module, vaddr);
	const struct kymo_symbol *symbol = function ? NULL : symbol_at(module, vaddr);

	frame->function = function ? function->name : symbol ? symbol->name : NULL;
	frame->start = function && !function->name ? function->start : 0;
	if (function || symbol)
		frame->offset = frame->address - (function ? function->start : symbol->vaddr);
}

/* Code that the program has made is told by its address in the process. */
static void name_jit(struct walk *walk, struct kymo_stack_frame *frame)
{
	const uint64_t pc = walk->frame.registers[KYMO_FRAME_PC];
	uint64_t start;

	frame->function =
		stack_jit_name(&walk->space->jit, kymo_frame_location(&walk->frame), &walk->may_read_names, &start);
	if (!frame->function)
		return;
	frame->address = pc;
	frame->offset = pc - start;
}

static struct kymo_stack_frame describe_region(struct walk *walk, const struct stack_region *region,
					       struct kymo_module *module, uint64_t vaddr)
{
	const uint64_t pc = walk->frame.registers[KYMO_FRAME_PC], behind = pc - kymo_frame_location(&walk->frame);
	struct kymo_stack_frame frame = { .file = *region->name ? region->name : NULL, .address = pc };

	if (frame.file)
		frame.address = pc - region->map.start + region->map.offset;
	if (!module && stack_is_jit(region))
		name_jit(walk, &frame);
	if (!module)
		return frame;
	frame.address = vaddr + behind;
	frame.is_return = behind;
	frame.file_number = region->file->number;
	if (walk->thread->is_copy)
		stack_file_name(walk->stacks, region->file);
	name_frame(&frame, module, vaddr);
	return frame;
}

/* Where a function is entered the return address is on top, and the frame pointer is the caller's still. */
static bool go_on_from_entry(struct walk *walk, const struct kymo_stack_frame *frame)
{
	uint64_t *registers = walk->frame.registers, pc;

	if (!walk->frame.is_exact || !frame->function || frame->offset ||
	    !read_word(walk, registers[KYMO_FRAME_RSP], &pc) || !stack_region_at(walk->space, pc - 1))
		return false;
	registers[KYMO_FRAME_PC] = pc;
	registers[KYMO_FRAME_RSP] += sizeof(pc);
	walk->frame.is_exact = false;
	return true;
}

/* To the caller's frame; false where this was the last one. By the frame pointer, where nothing describes the location,
 * if that leads to code. */
static bool step_to_caller(struct walk *walk, const struct stack_region *region, struct kymo_module *module,
			   uint64_t vaddr, const struct kymo_stack_frame *frame)
{
	int err = module ? kymo_module_unwind(module, vaddr, &walk->frame, read_word, walk) : -ENOENT;

	if (err != -ENOENT)
		return !err;
	if (go_on_from_entry(walk, frame))
		return true;
	if (stack_is_pad(region) || kymo_frame_unwind_by_pointer(&walk->frame, read_word, walk))
		return false;
	return stack_region_at(walk->space, kymo_frame_location(&walk->frame));
}

/*
 * Where the frame pointer is not that of the location's function its caller is in none of the frames that the chain has
 * been through: at the entry, and until the function has set its own. Then it is at the stack pointer, or behind what
 * the function has pushed there; 0: it is in the chain, or not known. False: there is none.
 */
static bool find_first_return(struct walk *walk, struct kymo_module *module, uint64_t vaddr,
			      const struct kymo_stack_frame *frame, uint64_t *pc)
{
	const uint64_t *registers = walk->frame.registers, *words = walk->thread->chain->words;
	uint64_t place;
	int err = module ? kymo_module_return_place(module, vaddr, &walk->frame, read_word, walk, &place) : -ENOENT;

	*pc = 0;
	if (err == -ENODATA)
		return false;
	if (err)
		*pc = frame->function && !frame->offset && stack_region_at(walk->space, words[0] - 1) ? words[0] : 0;
	else if (place != registers[KYMO_FRAME_RBP] + 8 && place == registers[KYMO_FRAME_RSP])
		*pc = words[0];
	else if (place != registers[KYMO_FRAME_RBP] + 8 && place == registers[KYMO_FRAME_RSP] + 8)
		*pc = words[1];
	return true;
}

/* The same by the return addresses of a record. */
static bool step_along_chain(struct walk *walk, struct kymo_module *module, uint64_t vaddr,
			     const struct kymo_stack_frame *frame)
{
	const struct kymo_stack_chain *chain = walk->thread->chain;
	uint64_t pc = 0;

	if (walk->frame.is_exact && !find_first_return(walk, module, vaddr, frame, &pc))
		return false;
	if (!pc && walk->n_followed < chain->n)
		pc = chain->returns[walk->n_followed++];
	if (!pc)
		return false;
	walk->frame.registers[KYMO_FRAME_PC] = pc;
	walk->frame.is_exact = false;
	return find_region(walk);
}

/* All frames. A file or function that one names is there until the space is read again. */
static size_t walk_all(struct walk *walk, struct kymo_stack_frame *frames)
{
	size_t n = 0;
	bool is_more = true;

	begin_walk(walk);
	while (is_more && n < KYMO_STACK_MAX) {
		struct stack_region *region = find_region(walk);
		struct kymo_module *module;
		uint64_t vaddr = 0;

		if (!region) {
			frames[n++] = (struct kymo_stack_frame){ .address = walk->frame.registers[KYMO_FRAME_PC],
								 .is_lost = true };
			break;
		}
		module = find_module(walk, region, &vaddr);
		frames[n] = describe_region(walk, region, module, vaddr);
		is_more = walk->thread->chain ? step_along_chain(walk, module, vaddr, &frames[n])
					      : step_to_caller(walk, region, module, vaddr, &frames[n]);
		n++;
	}
	return n;
}

size_t kymo_stacks_take(struct kymo_stacks *stacks, const struct kymo_stack_thread *thread,
			struct kymo_stack_frame *frames)
{
	struct walk walk;
	size_t n;

	walk.stacks = stacks;
	walk.thread = thread;
	walk.space = stack_space_of(stacks, thread);
	if (!walk.space)
		return 0;
	/* Of 32-bit code nothing else is known. */
	if (thread->registers.cs != KYMO_CODE_SELECTOR) {
		frames[0] = (struct kymo_stack_frame){ .address = thread->registers.rip, .is_lost = true };
		return 1;
	}
	memset(walk.pages, 0, sizeof(walk.pages));
	walk.is_lost = false;
	walk.may_read_names = true;
	n = walk_all(&walk, frames);
	if (walk.is_lost && stack_space_renew(stacks, walk.space, thread))
		n = walk_all(&walk, frames);
	return n;
}
