/*
 * Packets of Intel PT, as branches. libipt's encoder has made them, for walks through code; no processor has written
 * any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <intel-pt.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "arch/step.h"
#include "branch/raw_pt.h"
#include "image.h"

struct packets {
	uint8_t bytes[1 << 20];
	struct pt_encoder *encoder;
	uint64_t tnt;
	uint8_t n_tnt;
};

static struct packets *packets_create(void)
{
	struct packets *packets = calloc(1, sizeof(*packets));
	struct pt_config config;

	assert_non_null(packets);
	pt_config_init(&config);
	config.begin = packets->bytes;
	config.end = packets->bytes + sizeof(packets->bytes);
	packets->encoder = pt_alloc_encoder(&config);
	assert_non_null(packets->encoder);
	return packets;
}

static void put(struct packets *packets, struct pt_packet packet)
{
	assert_true(pt_enc_next(packets->encoder, &packet) > 0);
}

static void flush_tnt(struct packets *packets)
{
	if (packets->n_tnt)
		put(packets, (struct pt_packet){ .type = ppt_tnt_8, .payload.tnt = { packets->n_tnt, packets->tnt } });
	packets->n_tnt = 0;
	packets->tnt = 0;
}

static void put_tnt(struct packets *packets, bool is_taken)
{
	packets->tnt = packets->tnt << 1 | is_taken;
	if (++packets->n_tnt == 6)
		flush_tnt(packets);
}

static void put_ip(struct packets *packets, enum pt_packet_type type, uint64_t ip)
{
	flush_tnt(packets);
	put(packets, (struct pt_packet){ .type = type, .payload.ip = { ip ? pt_ipc_full : pt_ipc_suppressed, ip } });
}

/* `at`: where a thread is that is traced; 0: none is. */
static void put_sync(struct packets *packets, uint64_t at)
{
	flush_tnt(packets);
	put(packets, (struct pt_packet){ .type = ppt_psb });
	put(packets,
	    (struct pt_packet){ .type = ppt_mode, .payload.mode = { .leaf = pt_mol_exec, .bits.exec = { .csl = 1 } } });
	if (at)
		put_ip(packets, ppt_fup, at);
	put(packets, (struct pt_packet){ .type = ppt_psbend });
}

static size_t packets_end(struct packets *packets)
{
	uint64_t size;

	flush_tnt(packets);
	assert_int_equal(pt_enc_get_offset(packets->encoder, &size), 0);
	pt_free_encoder(packets->encoder);
	return size;
}

static struct image_list decode_packets(struct packets *packets, const struct image_code *code)
{
	const struct image_code image = { AT(image_start), AT(image_end) };
	const size_t size = packets_end(packets);
	const struct image_list list =
		image_decode_beside(branch_pt_decode, packets->bytes, size, code ? code : &image);

	free(packets);
	return list;
}

static void put_loop(struct packets *packets, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		put_tnt(packets, true); /* a return to its call */
		put_tnt(packets, i + 1 < n);
	}
}

static void packets_tell_branches(void **state)
{
	static const struct kymo_branch expected[] = {
		BRANCH(ENTER, 0, AT(image_start)),
		BRANCH(CALL, AT(image_loop), AT(image_leaf)),
		BRANCH(RETURN, AT(image_leaf), AT(image_back)),
		BRANCH(JUMP, AT(image_if), AT(image_loop)),
		BRANCH(CALL, AT(image_loop), AT(image_leaf)),
		BRANCH(RETURN, AT(image_leaf), AT(image_back)),
		BRANCH(CALL, AT(image_call), AT(image_other)),
		BRANCH(JUMP, AT(image_other), AT(image_last)),
		BRANCH(RETURN, AT(image_last), AT(image_syscall)),
		BRANCH(JUMP, AT(image_after), AT(image_return)),
	};
	struct packets *packets = packets_create();
	struct image_list list;

	put_sync(packets, 0);
	put_ip(packets, ppt_tip_pge, AT(image_start));
	put_loop(packets, 2);
	put_ip(packets, ppt_tip, AT(image_other));
	put_ip(packets, ppt_tip, AT(image_last));
	put_tnt(packets, true);
	put_ip(packets, ppt_tip_pgd, 0); /* the system call */
	put_ip(packets, ppt_tip_pge, AT(image_after));
	put_ip(packets, ppt_fup, AT(image_return)); /* a fault there, say */
	put_ip(packets, ppt_tip_pgd, 0);
	list = decode_packets(packets, NULL);
	CHECK(list, expected, 0);
}

/* Interrupts that come back are none; a handler is; what the system call at its end leads to is the kernel's doing. */
static void packets_tell_signals(void **state)
{
	static const struct kymo_branch expected[] = {
		BRANCH(ENTER, 0, AT(image_back)),
		BRANCH(SIGNAL, AT(image_if), AT(image_handler)),
		BRANCH(RETURN, AT(image_end_of_handler), AT(image_syscall)),
		BRANCH(KERNEL, AT(image_syscall), AT(image_if)),
		BRANCH(JUMP, AT(image_if), AT(image_loop)),
		BRANCH(CALL, AT(image_loop), AT(image_leaf)),
	};
	struct packets *packets = packets_create();
	struct image_list list;

	put_sync(packets, 0);
	put_ip(packets, ppt_tip_pge, AT(image_back));
	put_ip(packets, ppt_fup, AT(image_if));
	put_ip(packets, ppt_tip_pgd, 0);
	put_ip(packets, ppt_tip_pge, AT(image_if));
	put_ip(packets, ppt_fup, AT(image_if));
	put_ip(packets, ppt_tip_pgd, 0);
	put_ip(packets, ppt_tip_pge, AT(image_handler));
	put_ip(packets, ppt_tip, AT(image_syscall));
	put_ip(packets, ppt_tip_pgd, 0);
	put_ip(packets, ppt_tip_pge, AT(image_if));
	put_tnt(packets, true);
	put_ip(packets, ppt_fup, AT(image_leaf));
	put_ip(packets, ppt_tip_pgd, 0);
	list = decode_packets(packets, NULL);
	CHECK(list, expected, 0);
}

/* Where the processor had no room for packets, and where code is not known. Decoding goes on after it. */
static void packets_that_are_missing_are_gaps(void **state)
{
	static const struct kymo_branch expected[] = {
		BRANCH(ENTER, 0, AT(image_back)),
		BRANCH(ENTER, 0, AT(image_if)), /* where the thread was at the overflow is not known */
		BRANCH(JUMP, AT(image_if), AT(image_loop)),
		BRANCH(CALL, AT(image_loop), AT(image_leaf)),
		BRANCH(RETURN, AT(image_leaf), ELSEWHERE),
		BRANCH(ENTER, 0, AT(image_back)),
		BRANCH(JUMP, AT(image_if), AT(image_loop)),
		BRANCH(CALL, AT(image_loop), AT(image_leaf)),
	};
	struct packets *packets = packets_create();
	struct image_list list;

	put_sync(packets, 0);
	put_ip(packets, ppt_tip_pge, AT(image_back));
	put_tnt(packets, true);
	flush_tnt(packets);
	put(packets, (struct pt_packet){ .type = ppt_ovf });
	put_ip(packets, ppt_fup, AT(image_if));
	put_tnt(packets, true);
	put_ip(packets, ppt_tip, ELSEWHERE);
	put_tnt(packets, true);
	put_sync(packets, AT(image_back));
	put_tnt(packets, true);
	put_ip(packets, ppt_fup, AT(image_leaf));
	put_ip(packets, ppt_tip_pgd, 0);
	list = decode_packets(packets, NULL);
	CHECK(list, expected, 2);
}

/* The ring had more: what comes before the first boundary is passed over. */
static void a_ring_begins_anywhere(void **state)
{
	static const struct kymo_branch expected[] = {
		BRANCH(ENTER, 0, AT(image_back)),
		BRANCH(JUMP, AT(image_if), AT(image_loop)),
		BRANCH(CALL, AT(image_loop), AT(image_leaf)),
	};
	struct packets *packets = packets_create();
	struct image_list list;

	put_tnt(packets, true);
	put_ip(packets, ppt_tip, AT(image_loop));
	put_sync(packets, AT(image_back));
	put_tnt(packets, true);
	put_ip(packets, ppt_fup, AT(image_leaf));
	put_ip(packets, ppt_tip_pgd, 0);
	list = decode_packets(packets, NULL);
	CHECK(list, expected, 0);
	list = image_decode(branch_pt_decode, "", 0);
	assert_int_equal(list.branches.n, 0);
	list = image_decode(branch_pt_decode, "\2\202\2\202", 4);
	assert_int_equal(list.branches.n, 0);
}

/* ---- a walk through code of libc ------------------------------------------------------------- */

struct walk {
	struct packets *packets;
	struct image_list expected;
	uint64_t stack[64];
	size_t depth;
	uint64_t at;
	bool compresses; /* returns to their calls */
};

static uint64_t walk_target(const uint8_t *code, const struct kymo_step *step)
{
	const bool is_short = *code >> 4 == 7 || *code == 0xeb;
	const bool is_near = *code == 0xe8 || *code == 0xe9 || (*code == 0x0f && code[1] >> 4 == 8);
	int32_t distance = 0;

	if (is_short)
		distance = (int8_t)code[step->length - 1];
	else if (is_near)
		memcpy(&distance, code + step->length - 4, sizeof(distance));
	return is_short || is_near ? AT(code) + step->length + (uint64_t)distance : 0;
}

static void walk_take(struct walk *walk, enum kymo_branch_kind kind, uint64_t to)
{
	const struct kymo_branch branch = { .kind = (uint8_t)kind, .from = walk->at, .to = to };

	image_add(&branch, false, &walk->expected);
	walk->at = to;
}

static const char *const functions[] = { "qsort", "printf", "strtod", "malloc", "random", "fgets" };
#define N_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* libc's own: sanitizers have functions of the same names. */
static uint64_t function_at(size_t i)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), *function;

	assert_non_null(libc);
	function = dlsym(libc, functions[i % N_FUNCTIONS]);
	assert_non_null(function);
	dlclose(libc);
	return (uint64_t)(uintptr_t)function;
}

/* An indirect branch may lead to any function. */
static uint64_t walk_indirect(struct walk *walk)
{
	const uint64_t to = function_at((size_t)random());

	put_ip(walk->packets, ppt_tip, to);
	return to;
}

/* False: there is no telling where it leads. */
static bool walk_on(struct walk *walk)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)walk->at;
	struct kymo_step step;
	uint64_t to;

	if (kymo_step_of(code, KYMO_STEP_BYTES, &step))
		return false;
	to = walk_target(code, &step);
	switch (step.kind) {
	case KYMO_STEP_NEXT:
		walk->at += step.length;
		return true;
	case KYMO_STEP_CONDITIONAL:
		if (!to)
			return false;
		if (to == walk->at + step.length || random() % 2) {
			put_tnt(walk->packets, to == walk->at + step.length);
			walk->at += step.length;
			return true;
		}
		put_tnt(walk->packets, true);
		walk_take(walk, KYMO_BRANCH_JUMP, to);
		return true;
	case KYMO_STEP_JUMP:
		if (to && to <= walk->at && walk->at - to < 16)
			return false; /* a loop without an end has no packets that tell how often */
		walk_take(walk, KYMO_BRANCH_JUMP, to ? to : walk_indirect(walk));
		return true;
	case KYMO_STEP_CALL:
		if (walk->depth == 64)
			return false;
		walk->stack[walk->depth++] = walk->at + step.length;
		walk_take(walk, KYMO_BRANCH_CALL, to ? to : walk_indirect(walk));
		return true;
	case KYMO_STEP_RETURN:
		if (!walk->depth)
			return false;
		to = walk->stack[--walk->depth];
		if (walk->compresses)
			put_tnt(walk->packets, true);
		else
			put_ip(walk->packets, ppt_tip, to);
		walk_take(walk, KYMO_BRANCH_RETURN, to);
		return true;
	default:
		return false;
	}
}

static size_t check_walk(uint64_t start, const struct image_code *code)
{
	struct walk walk = { .packets = packets_create(), .at = start, .compresses = random() % 2 };
	const struct kymo_branch enter = { .kind = KYMO_BRANCH_ENTER, .to = start };
	struct image_list found;
	size_t n;

	put_sync(walk.packets, 0);
	put_ip(walk.packets, ppt_tip_pge, start);
	image_add(&enter, false, &walk.expected);
	for (size_t i = 0; i < 2000 && walk_on(&walk); i++)
		if (walk.at < code->start || walk.at >= code->end)
			break;
	if (walk.at >= code->start && walk.at < code->end) {
		put_ip(walk.packets, ppt_fup, walk.at);
		put_ip(walk.packets, ppt_tip_pgd, 0);
	}
	found = decode_packets(walk.packets, code);
	n = walk.expected.branches.n;
	image_check(&found, walk.expected.branches.items, n, 0);
	kymo_vec_deinit(&walk.expected.branches);
	return n;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *data)
{
	struct image_code *code = data;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uint64_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && function_at(0) >= start && function_at(0) < start + segment->p_memsz)
			*code = (struct image_code){ start, start + segment->p_memsz };
	}
	return code->start != 0;
}

/* Whichever way conditions are decided: the packets tell. */
static void packets_of_walks_through_libc(void **state)
{
	struct image_code code = { 0, 0 };
	size_t n = 0;

	assert_true(dl_iterate_phdr(find_libc, &code));
	srandom(7);
	for (size_t i = 0; i < 400; i++)
		n += check_walk(function_at(i), &code);
	if (getenv("KYMO_TEST_VERBOSE"))
		printf("%zu branches\n", n);
	assert_true(n > 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_tell_branches),
		cmocka_unit_test(packets_tell_signals),
		cmocka_unit_test(packets_that_are_missing_are_gaps),
		cmocka_unit_test(a_ring_begins_anywhere),
		cmocka_unit_test(packets_of_walks_through_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
