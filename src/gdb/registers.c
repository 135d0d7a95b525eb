#include "gdb/registers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/thread.h"
#include "gdb/trace_frames.h"
#include "hub/regset.h"

#define NO_CALL (-1ull) /* as orig_rax */

/* Both register sets of a thread, each when it is needed first. */
struct sets {
	struct gdb_thread *thread;
	struct user_regs_struct general;
	bool has_general, has_extended, wrote_general, wrote_extended;
	size_t extended_size;
	uint8_t extended[KYMO_XSTATE_MAX], extended_before[KYMO_XSTATE_MAX];
};

static bool load(struct sets *sets, enum kymo_register_set set)
{
	struct kymo_engine *engine = sets->thread->engine;

	if (set == KYMO_REGISTERS_GENERAL && !sets->has_general)
		sets->has_general = !kymo_engine_get_registers(engine, &sets->general);
	if (set == KYMO_REGISTERS_EXTENDED && !sets->has_extended) {
		sets->has_extended =
			!kymo_engine_get_xstate(engine, sets->extended, sizeof(sets->extended), &sets->extended_size);
		memcpy(sets->extended_before, sets->extended, sizeof(sets->extended));
	}
	return set == KYMO_REGISTERS_GENERAL ? sets->has_general : sets->has_extended;
}

static bool read_one(struct sets *sets, const struct kymo_register *reg, uint8_t *ret)
{
	if (!load(sets, reg->set))
		return false;
	if (reg->set == KYMO_REGISTERS_EXTENDED)
		return kymo_xstate_read(reg, sets->extended, sets->extended_size, ret);
	memcpy(ret, (const uint8_t *)&sets->general + reg->offset, reg->size);
	return true;
}

static bool write_one(struct sets *sets, const struct kymo_register *reg, const uint8_t *value)
{
	if (!load(sets, reg->set))
		return false;
	if (reg->set == KYMO_REGISTERS_EXTENDED) {
		sets->wrote_extended = true;
		return kymo_xstate_write(reg, sets->extended, sets->extended_size, value);
	}
	sets->wrote_general = true;
	memcpy((uint8_t *)&sets->general + reg->offset, value, reg->size);
	return true;
}

/* All or none. The extended ones are first, as the kernel refuses some values of theirs (mxcsr). */
static bool store_sets(struct sets *sets)
{
	struct kymo_engine *engine = sets->thread->engine;

	if (sets->wrote_extended && kymo_engine_set_xstate(engine, sets->extended, sets->extended_size))
		return false;
	if (!sets->wrote_general || !kymo_engine_set_registers(engine, &sets->general))
		return true;
	if (sets->wrote_extended)
		kymo_engine_set_xstate(engine, sets->extended_before, sets->extended_size);
	return false;
}

bool gdb_learn_registers(struct kymo_gdb *gdb)
{
	uint8_t image[KYMO_XSTATE_MAX];
	size_t size = 0, i = 0;

	if (gdb->registers)
		return true;
	while (i < gdb->threads.n && kymo_engine_get_xstate(gdb->threads.items[i]->engine, image, sizeof(image), &size))
		i++;
	if (i == gdb->threads.n)
		return false;
	gdb->registers = calloc(KYMO_REGISTERS_MAX, sizeof(*gdb->registers));
	if (!gdb->registers)
		return false;
	gdb->n_registers = kymo_registers_list(kymo_xstate_components(image, size), gdb->registers);
	return true;
}

static struct sets *begin_sets(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);
	const bool runs = gdb->tracing.has_selected || (thread && gdb->is_non_stop && !thread->is_stopped);
	struct sets *sets = thread && !runs && gdb_learn_registers(gdb) ? calloc(1, sizeof(*sets)) : NULL;

	if (sets)
		sets->thread = thread;
	else
		gdb_text_put(reply, runs ? "E01" : "E03");
	return sets;
}

static void put_one(struct sets *sets, const struct kymo_register *reg, struct gdb_text *reply)
{
	uint8_t value[64];

	if (read_one(sets, reg, value))
		gdb_text_hex(reply, value, reg->shown);
	else
		for (unsigned int i = 0; i < reg->shown; i++)
			gdb_text_put(reply, "xx");
}

/* ---- of frames of a trace run ---------------------------------------------------------------- */

size_t gdb_register_block_size(struct kymo_gdb *gdb)
{
	size_t size = 0;

	for (size_t i = 0; gdb_learn_registers(gdb) && i < gdb->n_registers; i++)
		size += gdb->registers[i].shown;
	return size;
}

void gdb_put_register_block(struct gdb_thread *thread, struct gdb_text *ret)
{
	struct sets *sets = gdb_learn_registers(thread->gdb) ? calloc(1, sizeof(*sets)) : NULL;
	uint8_t value[64];

	if (!sets) {
		ret->has_failed = true;
		return;
	}
	sets->thread = thread;
	for (size_t i = 0; i < thread->gdb->n_registers; i++) {
		const struct kymo_register *reg = &thread->gdb->registers[i];

		if (!read_one(sets, reg, value))
			memset(value, 0, sizeof(value));
		gdb_text_bytes(ret, value, reg->shown);
	}
	free(sets);
}

/* The selected frame's registers from `first` to before `end`. Without them, only the program counter is known. */
static void put_of_frame(struct kymo_gdb *gdb, size_t first, size_t end, struct gdb_text *reply)
{
	const size_t size = gdb_register_block_size(gdb);
	uint8_t *block = malloc(size + 1);
	const bool has_block =
		block && size == gdb->tracing.buffer.registers_size && gdb_frame_registers(&gdb->tracing, block);
	const uint64_t pc = gdb_frame_pc(&gdb->tracing);
	size_t at = 0;

	for (size_t i = 0; i < end && i < gdb->n_registers; i++) {
		const struct kymo_register *reg = &gdb->registers[i];

		if (i >= first && has_block)
			gdb_text_hex(reply, block + at, reg->shown);
		else if (i >= first && i == KYMO_REGISTER_PC)
			gdb_text_hex(reply, &pc, sizeof(pc));
		else
			for (unsigned int j = 0; i >= first && j < reg->shown; j++)
				gdb_text_put(reply, "xx");
		at += reg->shown;
	}
	free(block);
}

/* ---- of threads ------------------------------------------------------------------------------ */

void gdb_read_registers(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct sets *sets;

	if (gdb->tracing.has_selected) {
		put_of_frame(gdb, 0, SIZE_MAX, reply);
		return;
	}
	sets = begin_sets(gdb, reply);

	for (size_t i = 0; sets && i < gdb->n_registers; i++)
		put_one(sets, &gdb->registers[i], reply);
	free(sets);
}

void gdb_write_registers(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct sets *sets = begin_sets(gdb, reply);
	bool is_good = true;
	uint8_t value[64];

	if (!sets)
		return;
	for (size_t i = 0; i < gdb->n_registers && is_good && !gdb_words_are_over(words); i++) {
		const struct kymo_register *reg = &gdb->registers[i];

		if (gdb_words_left(words) >= 2 && *words->at == 'x') { /* unknown: left alone */
			is_good = gdb_words_left(words) >= 2u * reg->shown;
			words->at += is_good ? 2u * reg->shown : 0;
		} else {
			is_good = gdb_take_hex(words, value, reg->shown) && write_one(sets, reg, value);
		}
	}
	gdb_text_put(reply, is_good && gdb_words_are_over(words) && store_sets(sets) ? "OK" : "E01");
	free(sets);
}

/* The thread is about to be moved, or may be. */
static void note_pc(struct gdb_thread *thread, const struct user_regs_struct *general)
{
	if (!thread->moved_from)
		thread->moved_from = general->rip;
}

/* The kernel would start the call again, and for that set the thread back by the length of the instruction. gdb writes
 * this number itself, lldb does not. */
void gdb_leave_call(struct gdb_thread *thread)
{
	struct user_regs_struct general;
	const uint64_t from = thread->moved_from;
	const bool is_set = thread->has_set_call; /* as the client wants it: the call is to be started again, say */

	thread->moved_from = 0;
	thread->has_set_call = false;
	if (!from || is_set || kymo_engine_get_registers(thread->engine, &general) || general.rip == from)
		return;
	general.orig_rax = NO_CALL;
	kymo_engine_set_registers(thread->engine, &general);
}

static const struct kymo_register *take_register(struct kymo_gdb *gdb, struct gdb_words *words)
{
	uint64_t number;

	return gdb_take_number(words, &number) && number < gdb->n_registers ? &gdb->registers[number] : NULL;
}

void gdb_read_register(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct sets *sets;
	const struct kymo_register *reg;

	if (gdb->tracing.has_selected) {
		reg = take_register(gdb, words);
		if (reg && gdb_words_are_over(words))
			put_of_frame(gdb, (size_t)(reg - gdb->registers), (size_t)(reg - gdb->registers) + 1, reply);
		else
			gdb_text_put(reply, "E01");
		return;
	}
	sets = begin_sets(gdb, reply);
	reg = sets ? take_register(gdb, words) : NULL;
	if (reg && gdb_words_are_over(words))
		put_one(sets, reg, reply);
	else if (sets)
		gdb_text_put(reply, "E01");
	free(sets);
}

void gdb_write_register(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct sets *sets = begin_sets(gdb, reply);
	const struct kymo_register *reg = sets ? take_register(gdb, words) : NULL;
	uint8_t value[64];

	if (!sets)
		return;
	if (load(sets, KYMO_REGISTERS_GENERAL))
		note_pc(sets->thread, &sets->general);
	if (reg && gdb_take_char(words, '=') && gdb_take_hex(words, value, reg->shown) && gdb_words_are_over(words) &&
	    write_one(sets, reg, value) && store_sets(sets)) {
		sets->thread->has_set_call |= reg->set == KYMO_REGISTERS_GENERAL &&
					      reg->offset == offsetof(struct user_regs_struct, orig_rax);
		gdb_text_put(reply, "OK");
	} else {
		gdb_text_put(reply, "E01");
	}
	free(sets);
}

void gdb_put_expedited(struct gdb_thread *thread, struct gdb_text *reply)
{
	struct kymo_gdb *gdb = thread->gdb;
	struct user_regs_struct general;

	if (!gdb_learn_registers(gdb) || kymo_engine_get_registers(thread->engine, &general))
		return;
	for (size_t i = 0; i < 3; i++) {
		const unsigned int number = kymo_registers_expedited[i];

		gdb_text_format(reply, "%02x:", number);
		gdb_text_hex(reply, (const uint8_t *)&general + gdb->registers[number].offset,
			     gdb->registers[number].size);
		gdb_text_put(reply, ";");
	}
}

bool gdb_register_of(struct gdb_thread *thread, const struct user_regs_struct *general, unsigned int number,
		     uint64_t *ret)
{
	struct kymo_gdb *gdb = thread->gdb;
	const struct kymo_register *reg =
		gdb_learn_registers(gdb) && number < gdb->n_registers ? &gdb->registers[number] : NULL;
	uint64_t value = 0;

	if (!reg || reg->set != KYMO_REGISTERS_GENERAL || reg->size > sizeof(value))
		return false;
	memcpy(&value, (const uint8_t *)general + reg->offset, reg->size);
	*ret = value;
	return true;
}

int gdb_get_pc(struct gdb_thread *thread, uint64_t *ret)
{
	struct user_regs_struct general;
	int err = kymo_engine_get_registers(thread->engine, &general);

	if (!err)
		*ret = general.rip;
	return err;
}

int gdb_set_pc(struct gdb_thread *thread, uint64_t pc)
{
	struct user_regs_struct general;
	int err = kymo_engine_get_registers(thread->engine, &general);

	if (err)
		return err;
	note_pc(thread, &general);
	general.rip = pc;
	return kymo_engine_set_registers(thread->engine, &general);
}

/* An element a line: gdb reads no line of 1,000 bytes back from its trace files. */
static void put_types(struct gdb_text *text, const char *types)
{
	while (*types) {
		const size_t n = strcspn(types, ">") + 1;

		gdb_text_bytes(text, types, strnlen(types, n));
		gdb_text_put(text, "\n");
		types += strnlen(types, n);
	}
}

void gdb_describe_target(struct kymo_gdb *gdb, struct gdb_text *text)
{
	const char *feature = "";

	if (!gdb_learn_registers(gdb))
		return;
	gdb_text_format(text,
			"<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target><architecture>%s"
			"</architecture><osabi>GNU/Linux</osabi>\n",
			kymo_registers_architecture());
	for (size_t i = 0; i < gdb->n_registers; i++) {
		const struct kymo_register *reg = &gdb->registers[i];

		if (strcmp(feature, reg->feature)) {
			gdb_text_format(text, "%s<feature name=\"%s\">\n", *feature ? "</feature>" : "", reg->feature);
			put_types(text, kymo_registers_types(reg->feature));
			feature = reg->feature;
		}
		gdb_text_format(text, "<reg name=\"%s\" bitsize=\"%u\" type=\"%s\" regnum=\"%zu\"", reg->name,
				8u * reg->shown, reg->type, i);
		if (reg->group)
			gdb_text_format(text, " group=\"%s\"", reg->group);
		gdb_text_put(text, "/>\n");
	}
	gdb_text_put(text, "</feature></target>\n");
}
