/* Slots of what pads print, as the stub reads them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/agent_form.h"
#include "gdb/prints.h"
#include "wire/prints.h"

enum { N = 8, SIZE = 128 };

struct fixture {
	struct kymo_gdb *gdb;
	struct kymo_wire_prints *memory;
	struct gdb_prints *prints;
};

static struct kymo_wire_print *slot_of(const struct fixture *fixture, uint64_t position)
{
	return (struct kymo_wire_print *)(void *)((uint8_t *)fixture->memory + KYMO_WIRE_PRINTS_SLOTS +
						  position % N * SIZE);
}

static void begin(struct fixture *fixture)
{
	static const char format[] = "%ld %s\\n";
	const struct gdb_print print = { .n = 2, .strings = 2, .format = format, .format_size = sizeof(format) - 1 };

	fixture->gdb = calloc(1, sizeof(*fixture->gdb));
	fixture->memory = calloc(1, KYMO_WIRE_PRINTS_SLOTS + N * SIZE);
	assert_non_null(fixture->gdb);
	assert_non_null(fixture->memory);
	fixture->prints = gdb_prints_make(fixture->memory, N, SIZE);
	assert_non_null(fixture->prints);
	assert_true(gdb_prints_add(fixture->prints, 0x1000, &print));
	assert_true(gdb_prints_begin(fixture->gdb, fixture->prints));
}

static void end(struct fixture *fixture)
{
	gdb_prints_end(fixture->gdb, fixture->prints);
	assert_int_equal(fixture->gdb->prints.n, 0);
	gdb_prints_destroy(fixture->prints);
	kymo_vec_deinit(&fixture->gdb->prints);
	gdb_text_deinit(&fixture->gdb->printed.text);
	free(fixture->gdb);
	free(fixture->memory);
}

/* What a pad does, up to the record's end. */
static uint64_t take(const struct fixture *fixture)
{
	return fixture->memory->head++;
}

static void complete(const struct fixture *fixture, uint64_t position, const char *text)
{
	struct kymo_wire_print *slot = slot_of(fixture, position);

	slot->number = 0;
	slot->args[0] = position;
	slot->args[1] = text ? 0x5000 : 0;
	if (text)
		strcpy((char *)&slot->args[2], text);
	slot->state++;
}

static void expect(const struct fixture *fixture, const char *text)
{
	assert_false(gdb_prints_collect(fixture->gdb, GDB_PRINTS_MOST));
	gdb_text_put(&fixture->gdb->printed.text, "");
	assert_int_equal(fixture->gdb->printed.text.n, strlen(text));
	if (*text)
		assert_memory_equal(fixture->gdb->printed.text.items, text, strlen(text));
	gdb_text_clear(&fixture->gdb->printed.text);
}

static void records_become_texts(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	expect(&fixture, "");
	complete(&fixture, take(&fixture), "one");
	complete(&fixture, take(&fixture), NULL);
	complete(&fixture, take(&fixture), "");
	expect(&fixture, "0 one\n1 (null)\n2 \n");
	assert_int_equal(slot_of(&fixture, 1)->state, 1 + N);
	for (uint64_t lap = 0; lap < 5; lap++) {
		char text[200] = "", line[32];

		for (unsigned int i = 0; i < N; i++) {
			snprintf(line, sizeof(line), "%lu x\n", (unsigned long)fixture.memory->head);
			strcat(text, line);
			complete(&fixture, take(&fixture), "x");
		}
		expect(&fixture, text);
	}
	end(&fixture);
}

static void a_late_record_comes_late(void **state)
{
	struct fixture fixture;
	uint64_t late, other;

	begin(&fixture);
	late = take(&fixture);
	complete(&fixture, take(&fixture), "b");
	expect(&fixture, "1 b\n");
	other = take(&fixture);
	expect(&fixture, "");
	complete(&fixture, other, "c");
	complete(&fixture, late, "a");
	expect(&fixture, "0 a\n2 c\n");
	assert_int_equal(slot_of(&fixture, late)->state, N);
	end(&fixture);
}

static void one_that_was_skipped_is_put_off(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	take(&fixture);
	for (unsigned int i = 1; i < N; i++)
		complete(&fixture, take(&fixture), NULL);
	gdb_prints_collect(fixture.gdb, GDB_PRINTS_MOST);
	gdb_text_clear(&fixture.gdb->printed.text);
	slot_of(&fixture, 0)->state |= KYMO_WIRE_PRINT_SKIPPED;
	take(&fixture); /* a thread goes past it */
	complete(&fixture, take(&fixture), "next");
	complete(&fixture, 0, "late");
	expect(&fixture, "0 late\n9 next\n");
	assert_int_equal(slot_of(&fixture, 0)->state, 3 * N);
	end(&fixture);
}

static void what_is_void_or_lost(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	complete(&fixture, take(&fixture), "one");
	slot_of(&fixture, 0)->number = KYMO_WIRE_PRINT_VOID;
	fixture.memory->n_lost = 3;
	expect(&fixture, "");
	assert_int_equal(fixture.gdb->printed.n_lost, 3);
	fixture.memory->n_lost = 5;
	expect(&fixture, "");
	assert_int_equal(fixture.gdb->printed.n_lost, 5);
	end(&fixture);
}

static void text_is_taken_in_parts(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	complete(&fixture, take(&fixture), "one");
	complete(&fixture, take(&fixture), "two");
	assert_true(gdb_prints_collect(fixture.gdb, 1));
	assert_false(gdb_prints_collect(fixture.gdb, 100));
	expect(&fixture, "0 one\n1 two\n");
	end(&fixture);
}

/* It harms its own texts, and nothing else. */
static void a_process_that_lies(void **state)
{
	struct fixture fixture;

	begin(&fixture);
	for (uint64_t seed = 1; seed < 2000; seed++) {
		uint64_t value = seed * 0x9e3779b97f4a7c15;

		for (size_t i = 0; i < (KYMO_WIRE_PRINTS_SLOTS + N * SIZE) / 8; i++)
			if (value % 7 == i % 7)
				((uint64_t *)fixture.memory)[i] = value % 3 ? value : seed % 20;
		if (seed % 2)
			fixture.memory->head = seed;
		gdb_prints_collect(fixture.gdb, GDB_PRINTS_MOST);
		gdb_text_clear(&fixture.gdb->printed.text);
	}
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_become_texts),
		cmocka_unit_test(a_late_record_comes_late),
		cmocka_unit_test(one_that_was_skipped_is_put_off),
		cmocka_unit_test(what_is_void_or_lost),
		cmocka_unit_test(text_is_taken_in_parts),
		cmocka_unit_test(a_process_that_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
