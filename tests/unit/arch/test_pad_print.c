/* Pads that print: each hit makes one record, also where a thread is brought out of the pad at any instruction, and
 * many threads write at once. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "arch/leave_pad.h"
#include "arch/print.h"
#include "pad_checks.h"
#include "wire/prints.h"

#define RDI 7
#define RSI 6
#define TRAP_FLAG 0x100
#define WORD 3
#define N_SLOTS 8u
#define NUMBER 5
#define THREADS 4
#define CALLS 20000u

static const struct kymo_form arguments[] = {
	{ .n = 1, .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI } } },
	{ .n = 3,
	  .ops = { { .code = KYMO_FORM_VALUE, .value = 100 },
		   { .code = KYMO_FORM_REGISTER, .value = RDI },
		   { .code = KYMO_FORM_DIVIDE } } },
	{ .n = 1, .ops = { { .code = KYMO_FORM_REGISTER, .value = RSI } } },
};

/* %rdi != 7 */
static const struct kymo_form condition = { .n = 3,
					    .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
						     { .code = KYMO_FORM_VALUE, .value = 7 },
						     { .code = KYMO_FORM_DIFFERENT } } };

/* A world with a pad that prints two numbers and a string. */
struct fixture {
	struct world world;
	struct site site;
	struct kymo_pad_print print;
	struct kymo_wire_prints *memory;
	size_t size;
	uint8_t *stack;
};

static struct kymo_wire_print *slot_of(const struct fixture *fixture, uint64_t i)
{
	return (struct kymo_wire_print *)(void *)((uint8_t *)fixture->memory + KYMO_WIRE_PRINTS_SLOTS +
						  i * fixture->print.slot_size);
}

static void begin(struct fixture *fixture, uint32_t n_slots)
{
	struct kymo_pad_event event;

	memset(fixture, 0, sizeof(*fixture));
	fixture->stack = stack_create();
	fixture->print = (struct kymo_pad_print){ .number = NUMBER,
						  .args = arguments,
						  .n = 3,
						  .strings = 4,
						  .n_slots = n_slots,
						  .slot_size = kymo_wire_print_size(3, 1) };
	fixture->size = KYMO_WIRE_PRINTS_SLOTS + (size_t)n_slots * fixture->print.slot_size;
	fixture->memory = mmap(NULL, fixture->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fixture->memory, MAP_FAILED);
	fixture->print.memory = (uint64_t)fixture->memory;
	for (uint64_t i = 0; i < n_slots; i++)
		slot_of(fixture, i)->state = i;
	world_init(&fixture->world, LOCKS, roomy);
	event = (struct kymo_pad_event){ .filter = &condition,
					 .trap = fixture->world.env.live + KYMO_PAD_LIVE_TRAPS +
						 sizeof(uint32_t) * WORD,
					 .print = &fixture->print };
	world_landing(&fixture->world, &event, 1, &fixture->site);
	((volatile uint32_t *)(void *)(fixture->world.live + KYMO_PAD_LIVE_TRAPS))[WORD] = 1;
}

static void end(struct fixture *fixture)
{
	world_deinit(&fixture->world);
	munmap(fixture->memory, fixture->size);
	stack_destroy(fixture->stack);
}

/* ---- what a tracer does ---------------------------------------------------------------------- */

static const struct fixture *traced;
static unsigned int n_steps, leaves_at, n_traps, n_void, stages[3];

static bool read_stack(void *data, uint64_t address, uint64_t *ret)
{
	memcpy(ret, (const void *)address, sizeof(*ret));
	return true;
}

static const int numbers[] = { REG_RIP, REG_RSP, REG_RAX, REG_RDX, REG_R10, REG_R11, REG_EFL };

static unsigned long long *field_of(struct user_regs_struct *registers, size_t i)
{
	unsigned long long *fields[] = { &registers->rip, &registers->rsp, &registers->rax,   &registers->rdx,
					 &registers->r10, &registers->r11, &registers->eflags };

	return fields[i];
}

/* To the site, which the pad's entry stands for, or behind the hit. */
static void bring_out(greg_t *gregs)
{
	const struct site *site = &traced->site;
	struct user_regs_struct registers = { .rip = 0 };
	enum kymo_pad_stage stage;
	uint64_t slot = 0;

	for (size_t i = 0; i < kymo_countof(numbers); i++)
		*field_of(&registers, i) = (unsigned long long)gregs[numbers[i]];
	stage = kymo_pad_stage(&site->layout, site->pad, traced->print.slot_size, &registers, &slot);
	if (stage == KYMO_PAD_OWNS) {
		((struct kymo_wire_print *)slot)->number = KYMO_WIRE_PRINT_VOID;
		((struct kymo_wire_print *)slot)->state++;
	}
	stages[stage]++;
	if (kymo_pad_leave(&site->plan, &site->layout, site->address, site->pad, read_stack, NULL, &registers) !=
		    KYMO_PAD_LEFT ||
	    registers.rip != site->address)
		abort();
	registers.rip = site->pad + (stage == KYMO_PAD_DONE ? site->layout.insn_at[0] : site->layout.entry);
	registers.eflags &= ~(uint64_t)TRAP_FLAG;
	for (size_t i = 0; i < kymo_countof(numbers); i++)
		gregs[numbers[i]] = (greg_t)*field_of(&registers, i);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const struct site *site = &traced->site;
	const uint64_t at = (uint64_t)registers[REG_RIP] - site->pad;

	if (info->si_code != TRAP_TRACE) {
		if (at != site->layout.trap + 1)
			abort();
		__atomic_fetch_add(&n_traps, 1, __ATOMIC_RELAXED);
		registers[REG_RIP] = (greg_t)(site->pad + site->layout.insn_at[0]);
	} else if (at < site->layout.size && at != site->layout.trap + 1) {
		const bool is_behind = at >= site->layout.insn_at[0] && at <= site->layout.insn_at[1];

		if (is_behind)
			registers[REG_EFL] &= ~TRAP_FLAG;
		else if (n_steps++ == leaves_at)
			bring_out(registers);
	}
}

static void take_traps(void)
{
	const struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static stack_t own;

	own = (stack_t){ .ss_sp = stack_create(), .ss_size = STACK_SIZE };
	assert_int_equal(sigaltstack(&own, NULL), 0);
	assert_int_equal(sigaction(SIGTRAP, &trap, NULL), 0);
}

static void hit(struct fixture *fixture, uint64_t seed, uint64_t rdi, const char *text, bool steps)
{
	struct registers in, out;

	randomise(&in, seed, fixture->stack);
	in.flags = flags_of(seed % 128) | (steps ? TRAP_FLAG : 0);
	in.r[RDI] = rdi;
	in.r[RSI] = (uint64_t)text;
	traced = fixture;
	enter(&fixture->site, &in, &out);
	in.flags &= ~(uint64_t)TRAP_FLAG;
	check_unchanged(&in, &out);
}

/* What is in the slots is read, and they are free again. How many records there are. */
static unsigned int read_all(struct fixture *fixture, uint64_t *tail, uint64_t rdi, const char *text)
{
	unsigned int n = 0;

	for (; *tail < fixture->memory->head; ++*tail) {
		struct kymo_wire_print *slot = slot_of(fixture, *tail % fixture->print.n_slots);

		assert_int_equal(slot->state, *tail + 1);
		slot->state = *tail + fixture->print.n_slots;
		if (slot->number == KYMO_WIRE_PRINT_VOID) {
			n_void++;
			continue;
		}
		n++;
		assert_int_equal(slot->number, NUMBER);
		assert_int_equal(slot->args[0], rdi);
		assert_int_equal(slot->args[1], 100 / rdi);
		assert_int_equal(slot->args[2], (uint64_t)text);
		if (text)
			assert_string_equal((const char *)&slot->args[3], text);
	}
	return n;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void each_hit_is_one_record(void **state)
{
	static const char *const texts[] = { "", "a", "some text", NULL };
	struct fixture fixture;
	uint64_t tail = 0;

	take_traps();
	begin(&fixture, N_SLOTS);
	n_traps = 0;
	leaves_at = UINT32_MAX;
	for (uint64_t i = 1; i < 200; i++) {
		const char *text = texts[i % 4];

		hit(&fixture, i, i, text, false);
		assert_int_equal(read_all(&fixture, &tail, i, text), i != 7);
	}
	assert_int_equal(n_traps, 0);
	end(&fixture);
}

static void what_cannot_be_recorded_traps(void **state)
{
	char longest[KYMO_WIRE_PRINT_TEXT], longer[KYMO_WIRE_PRINT_TEXT + 1];
	struct fixture fixture;
	uint64_t tail = 0;

	take_traps();
	memset(longest, 'x', sizeof(longest));
	memset(longer, 'y', sizeof(longer));
	longest[sizeof(longest) - 1] = longer[sizeof(longer) - 1] = 0;
	begin(&fixture, N_SLOTS);
	n_traps = n_void = 0;
	hit(&fixture, 1, 3, longest, false);
	assert_int_equal(read_all(&fixture, &tail, 3, longest), 1);
	hit(&fixture, 2, 3, longer, false);
	assert_int_equal(n_traps, 1);
	hit(&fixture, 3, 0, "divided by 0", false);
	assert_int_equal(n_traps, 2);
	assert_int_equal(read_all(&fixture, &tail, 3, NULL), 0);
	assert_int_equal(n_void, 2);
	end(&fixture);
}

static void what_has_no_slot_is_counted(void **state)
{
	struct fixture fixture;
	uint64_t tail = 0;

	take_traps();
	begin(&fixture, N_SLOTS);
	n_traps = 0;
	for (unsigned int i = 0; i < N_SLOTS + 5; i++)
		hit(&fixture, i, 3, "text", false);
	assert_int_equal(fixture.memory->n_lost, 5);
	assert_int_equal(read_all(&fixture, &tail, 3, "text"), N_SLOTS);
	/* A late owner of each other slot: they are skipped, and marked. */
	for (uint64_t i = 0; i < N_SLOTS; i += 2) {
		slot_of(&fixture, i)->state = i;
		slot_of(&fixture, i + 1)->state = i + 1 + N_SLOTS;
	}
	for (uint64_t i = 0; i < N_SLOTS / 2; i++)
		hit(&fixture, i, 3, "text", false);
	for (uint64_t i = 0; i < N_SLOTS; i++)
		assert_true(slot_of(&fixture, i)->state == (i % 2 ? i + N_SLOTS + 1 : (i | KYMO_WIRE_PRINT_SKIPPED)));
	assert_int_equal(fixture.memory->n_lost, 5);
	assert_int_equal(n_traps, 0);
	/* Words that make no sense: the thread leaves by the trap, and stores nothing elsewhere. */
	for (uint64_t i = 0; i < N_SLOTS; i++)
		slot_of(&fixture, i)->state = mix(i);
	fixture.memory->head = mix(99);
	hit(&fixture, 1, 3, "text", false);
	assert_int_equal(n_traps, 1);
	end(&fixture);
}

static void a_thread_is_brought_out_at_each_instruction(void **state)
{
	struct fixture fixture;
	uint64_t tail = 0;
	unsigned int n_at_end = 0;

	take_traps();
	begin(&fixture, N_SLOTS);
	n_traps = n_void = 0;
	memset(stages, 0, sizeof(stages));
	for (leaves_at = 0; !n_at_end; leaves_at++) {
		n_steps = 0;
		hit(&fixture, leaves_at, 3, "text", true);
		assert_int_equal(read_all(&fixture, &tail, 3, "text"), 1);
		n_at_end = n_steps <= leaves_at;
	}
	assert_true(stages[KYMO_PAD_BEFORE] > 20 && stages[KYMO_PAD_OWNS] > 20 && stages[KYMO_PAD_DONE] > 5);
	assert_int_equal(n_void, stages[KYMO_PAD_OWNS]);
	/* The same of a condition that is false, a text that is too long, and an array that is full. */
	n_at_end = 0;
	for (leaves_at = 0; !n_at_end; leaves_at++) {
		n_steps = 0;
		hit(&fixture, leaves_at, 7, "text", true);
		assert_int_equal(read_all(&fixture, &tail, 7, "text"), 0);
		n_at_end = n_steps <= leaves_at;
	}
	for (unsigned int i = 0; i < N_SLOTS; i++)
		hit(&fixture, i, 3, "text", false);
	n_at_end = 0;
	for (leaves_at = 0; !n_at_end; leaves_at++) {
		const uint64_t lost = fixture.memory->n_lost;

		n_steps = 0;
		hit(&fixture, leaves_at, 3, "text", true);
		assert_int_equal(fixture.memory->n_lost - lost, 1);
		n_at_end = n_steps <= leaves_at;
	}
	assert_int_equal(n_traps, 0);
	end(&fixture);
}

/* ---- many threads ---------------------------------------------------------------------------- */

struct writer {
	struct fixture *fixture;
	uint64_t who;
};

static void *write_many(void *data)
{
	const struct writer *writer = data;

	for (uint64_t i = 0; i < CALLS; i++)
		call(&writer->fixture->site, 8 + i * THREADS + writer->who);
	return NULL;
}

/* Each number once, and those of a thread in their order. A thread that others are too often ahead of traps,
 * which is rare. */
static void many_threads_write(void **state)
{
	struct writer writers[THREADS];
	uint64_t last[THREADS] = { 0 }, n = 0, tail = 0;
	struct kymo_pad_event event = { .filter = &condition };
	pthread_t threads[THREADS];
	struct fixture fixture;

	take_traps();
	begin(&fixture, 1u << 17);
	traced = &fixture;
	n_traps = 0;
	fixture.print.n = 1;
	fixture.print.strings = 0;
	event.trap = fixture.world.env.live + KYMO_PAD_LIVE_TRAPS + sizeof(uint32_t) * WORD;
	event.print = &fixture.print;
	world_function(&fixture.world, &event, 1, &fixture.site);
	for (uint64_t i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){ &fixture, i };
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (; tail < fixture.memory->head; tail++, n++) {
		const struct kymo_wire_print *slot = slot_of(&fixture, tail);
		const uint64_t value_ = slot->args[0], who = value_ % THREADS;

		assert_int_equal(slot->state, tail + 1);
		assert_true(value_ > last[who]);
		last[who] = value_;
	}
	assert_int_equal(n + n_traps, THREADS * CALLS);
	assert_true(n_traps <= THREADS * CALLS / 1000);
	assert_int_equal(fixture.memory->n_lost, 0);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_hit_is_one_record),
		cmocka_unit_test(what_cannot_be_recorded_traps),
		cmocka_unit_test(what_has_no_slot_is_counted),
		cmocka_unit_test(a_thread_is_brought_out_at_each_instruction),
		cmocka_unit_test(many_threads_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
