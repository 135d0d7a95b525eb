/*
 * glibc has constants that say where the members of its private structures are; libthread_db reads them. So does the
 * stub, by itself: libthread_db follows lists of the process without a limit, and refuses the glibc of a container that
 * is not its own.
 *
 * A thread has a vector (DTV) of blocks, one for each library with such variables (a module). The blocks of libraries
 * that were there at the start are at a fixed distance from the thread pointer. Others are made by a thread's first
 * use. Their entry in the vector counts only if the vector is not older than the library: a number of a module is used
 * again after dlclose.
 */
#include "gdb/tls.h"

#include <string.h>

#include "base/cleanup.h"
#include "gdb/thread.h"

enum { LISTS_MAX = 1024, MODULES_MAX = 1 << 20, MEMBER_BITS = 64 };
enum { STATIC_MODULE = 1, NOT_MADE = 1 };

/* A static program with threads has the first three, and needs no more. */
enum symbol {
	PTHREAD_DTV,
	DTV_ENTRY,
	ENTRY_POINTER,
	ENTRY_COUNTER,
	MAP_MODULE,
	MAP_OFFSET,
	LINKER_LIST,
	LIST_LENGTH,
	LIST_NEXT,
	LIST_ITEM,
	ITEM_GENERATION,
	ITEM_MAP,
	ITEM_SIZE,
	LINKER, /* the object that LINKER_LIST is a member of; all others are constants */
};

static const char *const names[] = {
	[PTHREAD_DTV] = "_thread_db_pthread_dtvp",
	[DTV_ENTRY] = "_thread_db_dtv_dtv",
	[ENTRY_POINTER] = "_thread_db_dtv_t_pointer_val",
	[ENTRY_COUNTER] = "_thread_db_dtv_t_counter",
	[MAP_MODULE] = "_thread_db_link_map_l_tls_modid",
	[MAP_OFFSET] = "_thread_db_link_map_l_tls_offset",
	[LINKER_LIST] = "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list",
	[LIST_LENGTH] = "_thread_db_dtv_slotinfo_list_len",
	[LIST_NEXT] = "_thread_db_dtv_slotinfo_list_next",
	[LIST_ITEM] = "_thread_db_dtv_slotinfo_list_slotinfo",
	[ITEM_GENERATION] = "_thread_db_dtv_slotinfo_gen",
	[ITEM_MAP] = "_thread_db_dtv_slotinfo_map",
	[ITEM_SIZE] = "_thread_db_sizeof_dtv_slotinfo",
	[LINKER] = "_rtld_global",
};

_Static_assert(kymo_countof(names) == GDB_SYMBOLS, "");

/* ---- symbols --------------------------------------------------------------------------------- */

static struct gdb_process *general_process(const struct kymo_gdb *gdb)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);

	return thread ? thread->process : NULL;
}

/* "ADDRESS:NAME" of the symbol that was asked for. False: it has none, or the request names another. */
static bool take_answer(struct gdb_process *process, struct gdb_words *words)
{
	char name[64];
	uint64_t address;

	if (process->n_symbols == GDB_SYMBOLS || !gdb_take_number(words, &address) || !gdb_take_char(words, ':') ||
	    !gdb_take_hex_string(words, name, sizeof(name)) || !gdb_words_are_over(words) ||
	    strcmp(name, names[process->n_symbols]) != 0)
		return false;
	process->symbols[process->n_symbols++] = address;
	return true;
}

/* Where a symbol is missing, its library is not loaded yet, and the client offers again when it is. All that it has
 * said until then is asked for anew: the program may have been relocated. */
void gdb_take_symbol(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_process *process = general_process(gdb);
	const bool is_offer = gdb_words_left(words) == 1 && *words->at == ':';

	if (is_offer && process && process->n_symbols < GDB_SYMBOLS)
		process->n_symbols = 0;
	if (!process || (!is_offer && !take_answer(process, words)) || process->n_symbols == GDB_SYMBOLS) {
		gdb_text_put(reply, "OK");
		return;
	}
	gdb_text_put(reply, "qSymbol:");
	gdb_text_hex(reply, names[process->n_symbols], strlen(names[process->n_symbols]));
}

/* ---- members --------------------------------------------------------------------------------- */

/* Of glibc's constant for a member. */
struct member {
	uint32_t bits, n, offset;
};

static bool read_constant(const struct gdb_thread *thread, enum symbol symbol, void *ret, size_t size)
{
	const struct gdb_process *process = thread->process;

	return (size_t)symbol < process->n_symbols &&
	       !kymo_engine_read(thread->engine, process->symbols[symbol], ret, size);
}

/* The address of an element of a member that is an array. */
static bool find_element(const struct gdb_thread *thread, uint64_t object, enum symbol symbol, uint64_t index,
			 uint64_t *ret)
{
	struct member member;

	if (!read_constant(thread, symbol, &member, sizeof(member)))
		return false;
	*ret = object + member.offset + index * (member.bits / 8);
	return true;
}

static bool read_member(const struct gdb_thread *thread, uint64_t object, enum symbol symbol, uint64_t *ret)
{
	struct member member;

	return read_constant(thread, symbol, &member, sizeof(member)) && member.bits == MEMBER_BITS &&
	       !kymo_engine_read(thread->engine, object + member.offset, ret, sizeof(*ret));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* When the module has its number. The linker has them in a list of arrays. */
static bool read_generation(const struct gdb_thread *thread, uint64_t module, uint64_t map, uint64_t *ret)
{
	uint64_t list, length, items, first = 0, item_map;
	uint32_t size;

	if (!read_constant(thread, ITEM_SIZE, &size, sizeof(size)) || thread->process->n_symbols <= LINKER ||
	    !read_member(thread, thread->process->symbols[LINKER], LINKER_LIST, &list))
		return false;
	for (int i = 0; i < LISTS_MAX && list; i++) {
		if (!read_member(thread, list, LIST_LENGTH, &length) || length > MODULES_MAX)
			return false;
		if (module - first < length)
			return find_element(thread, list, LIST_ITEM, 0, &items) &&
			       read_member(thread, items + (module - first) * size, ITEM_MAP, &item_map) &&
			       item_map == map &&
			       read_member(thread, items + (module - first) * size, ITEM_GENERATION, ret);
		first += length;
		if (!read_member(thread, list, LIST_NEXT, &list))
			return false;
	}
	return false;
}

/* The vector's entry of a module. `map` 0: that of a static program, which is always there. */
static bool find_made_block(const struct gdb_thread *thread, uint64_t pointer, uint64_t module, uint64_t map,
			    uint64_t *ret)
{
	uint64_t vector, head, entry, counter, generation;

	if (!read_member(thread, pointer, PTHREAD_DTV, &vector) || !find_element(thread, vector, DTV_ENTRY, 0, &head) ||
	    !find_element(thread, vector, DTV_ENTRY, module, &entry))
		return false;
	if (map && (!read_generation(thread, module, map, &generation) ||
		    !read_member(thread, head, ENTRY_COUNTER, &counter) || counter < generation))
		return false;
	return read_member(thread, entry, ENTRY_POINTER, ret) && !(*ret & NOT_MADE);
}

static bool find_block(const struct gdb_thread *thread, uint64_t map, uint64_t *ret)
{
	struct user_regs_struct registers;
	uint64_t module = STATIC_MODULE, offset;

	if (kymo_engine_get_registers(thread->engine, &registers) || !registers.fs_base)
		return false;
	if (map) {
		if (!read_member(thread, map, MAP_MODULE, &module) || !module || module > MODULES_MAX ||
		    !read_member(thread, map, MAP_OFFSET, &offset))
			return false;
		if (offset && offset != UINT64_MAX) { /* 0, -1: it has no fixed distance */
			*ret = registers.fs_base - offset;
			return true;
		}
	}
	return find_made_block(thread, registers.fs_base, module, map, ret);
}

void gdb_find_tls(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_thread *thread = NULL;
	uint64_t offset, map, block;
	struct gdb_id id;

	if (gdb_take_id(words, &id) && gdb_take_char(words, ',') && gdb_take_number(words, &offset) &&
	    gdb_take_char(words, ',') && gdb_take_number(words, &map) && gdb_words_are_over(words) && id.tid > 0)
		thread = gdb_thread_of(gdb, &id);
	if (thread && find_block(thread, map, &block))
		gdb_text_format(reply, "%lx", block + offset);
	else
		gdb_text_put(reply, "E01");
}
