/* Pads of breakpoints: threads in them are brought out, but where their code is gone they stand where they are. What
 * cannot be changed is told. */
#include <fcntl.h>
#include <string.h>

#include "breakpoints.h"
#include "hub/trap/pads.h"

/* A pad in which a thread stays: then the trap, the jump behind, and the displaced instruction. Two sites lead there.
 */
enum { STAYING = 0, TRAP_AT = 7, INSN_AT = 13, PAD_SIZE = 15 };

void padded(void);
void padded_too(void);
extern const uint8_t pad_code[];
__asm__(".pushsection .text\n"
	".globl padded, padded_too, pad_code\n.type padded, @function\n.type padded_too, @function\n"
	"padded: .byte 0xe9\n .long pad_code - . - 4\n ret\n.size padded, .-padded\n"
	"padded_too: .byte 0xe9\n .long pad_code - . - 4\n ret\n.size padded_too, .-padded_too\n"
	"pad_code: pause\n .byte 0xe9\n .long pad_code - . - 4\n"
	"int3\n .byte 0xe9\n .long 1f - . - 4\n1: ret\n nop\n"
	".popsection\n");

static int staying(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->go)
		sched_yield();
	padded();
	return 0;
}

static struct hub_pad pad_of(const void *site)
{
	struct hub_pad pad = {
		.site = at(site),
		.at = at(pad_code),
		.word = at(pad_code),
		.link = at(site),
		.plan = { .n_insns = 1, .window = 5, .insn_offset = { 0, 5 }, .patch_size = 5, .lock_size = 5 },
		.layout = { .size = PAD_SIZE,
			    .entry = STAYING,
			    .trap = TRAP_AT,
			    .save = TRAP_AT,
			    .condition = TRAP_AT,
			    .displaced = TRAP_AT,
			    .low = TRAP_AT,
			    .inner = TRAP_AT,
			    .fault = TRAP_AT,
			    .insn_at = { INSN_AT, INSN_AT + 1 } },
	};

	memcpy(pad.patch, site, sizeof(pad.patch) < 5 ? sizeof(pad.patch) : 5);
	return pad;
}

/* Where it is found by its hub. */
static uint64_t where(struct kymo_engine *engine)
{
	struct user_regs_struct registers;

	kymo_engine_control(engine, KYMO_ACTION_RESUME);
	nap();
	eventually(!kymo_engine_control(engine, KYMO_ACTION_STOP));
	assert_int_equal(kymo_engine_get_registers(engine, &registers), 0);
	return registers.rip;
}

static void write_code(pid_t pid, uint64_t address, const void *data, size_t size)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	fd = open(name, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, size, (off_t)address), size);
	close(fd);
}

static struct kymo_engine *begin_in_pad(struct fixture *f, const struct hub_pad *pad)
{
	struct kymo_engine *engine;

	begin(f, staying);
	engine = breaker(f->hub, f->pid, &f->book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(cold)), 0);
	assert_int_equal(hub_pads_give(engine, pad), 0);
	f->shared->go = 1;
	eventually(where(engine) == pad->site);
	return engine;
}

static void code_that_is_gone_is_no_pad(void **state)
{
	const uint8_t other[INSN_AT - TRAP_AT] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
	const struct hub_pad pad = pad_of(padded);
	struct kymo_engine *engine;
	struct fixture f;

	engine = begin_in_pad(&f, &pad);
	write_code(f.pid, pad.at + TRAP_AT, other, sizeof(other));
	for (int i = 0; i < 10; i++)
		assert_true(where(engine) - pad.at < TRAP_AT);
	hub_pads_forget_gone(engine);
	write_code(f.pid, pad.at + TRAP_AT, pad_code + TRAP_AT, sizeof(other));
	assert_true(where(engine) - pad.at < TRAP_AT);
	kymo_engine_put(engine);
	end(&f);
}

static void a_pad_where_another_one_was_takes_its_place(void **state)
{
	const struct hub_pad pad = pad_of(padded), next = pad_of(padded_too);
	struct kymo_engine *engine;
	struct fixture f;

	engine = begin_in_pad(&f, &pad);
	hub_pads_forget_gone(engine);
	assert_int_equal(where(engine), pad.site);
	assert_int_equal(hub_pads_give(engine, &next), 0);
	assert_int_equal(where(engine), next.site);
	kymo_engine_put(engine);
	end(&f);
}

#define SITE_AT 64
#define WORD_AT 128

/* It has a copy of the pad at `place`, and unmaps it when it is told to. */
static uint8_t *place;

static int unmapping(struct shared *shared)
{
	uint8_t *site = place + SITE_AT;
	const int32_t distance = -(SITE_AT + 5);

	memcpy(place, pad_code, PAD_SIZE);
	*site = 0xe9;
	memcpy(site + 1, &distance, sizeof(distance));
	shared->ready = 1;
	while (!shared->go)
		sched_yield();
	munmap(place, 4096);
	shared->count = 1;
	while (!shared->is_over)
		sched_yield();
	return 0;
}

/* As the owner of the breakpoint has to know it. */
static void one_that_cannot_become_an_int3_is_told(void **state)
{
	struct hub_pad pad = pad_of(padded);
	struct kymo_engine *engine;
	struct fixture f;

	place = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(place, MAP_FAILED);
	pad.at = at(place);
	pad.site = pad.link = at(place) + SITE_AT;
	pad.word = at(place) + WORD_AT;
	memcpy(pad.patch + 1, &(int32_t){ -(SITE_AT + 5) }, sizeof(int32_t));
	pad.is_used = true;
	begin(&f, unmapping);
	engine = breaker(f.hub, f.pid, &f.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, pad.site), 0);
	assert_int_equal(hub_pads_give(engine, &pad), 0);
	assert_int_equal(hub_pads_use(engine, pad.site, false), 0);
	assert_int_equal(hub_pads_use(engine, pad.site, true), 0);
	f.shared->go = 1;
	eventually(f.shared->count == 1);
	assert_true(hub_pads_use(engine, pad.site, false) < 0);
	assert_true(hub_pads_leave(engine, true) < 0);
	kymo_engine_put(engine);
	end(&f);
	munmap(place, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_that_is_gone_is_no_pad),
		cmocka_unit_test(a_pad_where_another_one_was_takes_its_place),
		cmocka_unit_test(one_that_cannot_become_an_int3_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
