/* What the tests of pads that read memory share: the memory, a form that reads it, and what the last record has.
 * Include after cmocka.h. */
#ifndef KYMO_TESTS_ARCH_PAD_READS_H
#define KYMO_TESTS_ARCH_PAD_READS_H

#include <sys/mman.h>

#include "last.h"
#include "pad_checks.h"

#define RDI 7
#define LIMIT 20

/* What is read: a page, a hole, two pages, a hole. */
static inline uint8_t *pages_create(void)
{
	uint8_t *pages = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	fill(pages, 5 * PAGE, 77);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(mprotect(pages + 4 * PAGE, PAGE, PROT_NONE), 0);
	return pages;
}

/* The same, with texts of several lengths. */
static inline uint8_t *pages_of_texts(void)
{
	uint8_t *pages = pages_create();

	memset(pages, 'a', PAGE);
	memset(pages + 2 * PAGE, 'b', 2 * PAGE);
	for (unsigned int i = 0; i < PAGE; i += 23)
		pages[i] = 0;
	pages[3 * PAGE + 2] = 0;
	pages[4 * PAGE - 5] = 0;
	return pages;
}

static inline void allow(struct world *world)
{
	const uint64_t self = (uint64_t)getpid();

	memcpy(world->live + KYMO_PAD_LIVE_READER, &self, sizeof(self));
}

static inline bool is_there(const uint8_t *pages, uint64_t address, uint64_t size)
{
	const uint64_t at = address - (uint64_t)pages;

	return (at < PAGE && at + size <= PAGE) || (at >= 2 * PAGE && at < 4 * PAGE && at + size <= 4 * PAGE);
}

/* ---- what the last record has ---------------------------------------------------------------- */

static inline void world_begin(struct world *world, struct last *last, enum kind kind, struct shape shape)
{
	memset(last, 0, sizeof(*last));
	world_init(world, kind, shape);
	world->on_record = keep;
	world->data = last;
	allow(world);
}

/* Enter with `address` in rdi, and read what that makes. */
static inline void hit(struct world *world, struct last *last, const struct site *site, uint8_t *stack,
		       uint64_t address)
{
	struct registers in;

	last->n = 0;
	randomise(&in, address, stack);
	in.flags = flags_of(address % 128);
	in.r[RDI] = address;
	enter_unseen(site, &in);
	world_read_all(world);
	world_forget(world);
}

#define REGISTER_FORM \
	{ \
		.n = 1, .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI } } \
	}

static inline struct kymo_form load_of(unsigned int size)
{
	return (struct kymo_form){ .n = 2,
				   .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
					    { .code = KYMO_FORM_LOAD, .size = (uint8_t)size } } };
}

/* ---- strings and blocks ---------------------------------------------------------------------- */

static const struct kymo_form at_rdi = REGISTER_FORM;

static const struct kymo_fetch mixed[] = {
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &at_rdi, .limit = LIMIT },
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, RDI),
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_BYTES, .form = &at_rdi, .limit = 16 },
	{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &at_rdi, .limit = 3 },
	FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U16, RDI),
	{ .kind = KYMO_FETCH_FORM,
	  .type = KYMO_TYPE_BYTES,
	  .form = &at_rdi,
	  .limit = 24,
	  .array_of = KYMO_ARRAY_OF(KYMO_TYPE_S64) },
	{ .kind = KYMO_FETCH_FORM,
	  .type = KYMO_TYPE_BYTES,
	  .form = &at_rdi,
	  .limit = 6,
	  .array_of = KYMO_ARRAY_OF(KYMO_TYPE_U16) },
};
static const struct kymo_pad_event mixed_event = { .id = 1, .args = mixed, .n_args = 7 };

#endif
