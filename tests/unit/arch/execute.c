#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "execute.h"

#define PAGE 4096u
#define FROM UINT64_C(0x200000000000) /* the text's pages; the site is in the second, at its own offset */
#define TEXT_SIZE (3 * PAGE)
#define TO (FROM + 0x10000000)        /* displaced copies, a page each */
#define DATA UINT64_C(0x210000000000) /* what registers point to */
#define STACK UINT64_C(0x220000000000)
#define STACK_SIZE (16 * PAGE)
#define PAGES_MAX 40
#define N_REGS 17 /* REG_R8 … REG_RIP of sys/ucontext.h */

enum ending { UNFINISHED, STOPPED, SLOW };

struct outcome {
	int signal;
	enum ending ending;
	bool in_call; /* stopped between the parts of a call */
	uint64_t regs[N_REGS], flags;
	uint8_t vectors[384];   /* st and xmm */
	uint64_t memory, stack; /* hashes */
	uint64_t touched[PAGES_MAX];
	unsigned int n_touched;
};

struct job {
	struct kymo_plan plans[KYMO_PLANS_MAX];
	size_t n_plans;
	struct {
		uint8_t bytes[KYMO_RELOCATED_MAX];
		uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1];
		int size;
	} displaced[KYMO_PLANS_MAX];
	uint64_t bias;      /* runtime address - vaddr */
	uint64_t low, high; /* vaddr of the bytes that the plans change or rely on */
	uint8_t text[512];  /* these */
	uint64_t start;     /* vaddr where it begins to run */
	uint64_t seed;
	bool moved; /* with the plans in place */
};

static struct job job;
static struct outcome *shared; /* of the child that runs */

/* Half of all values point to data; the others are small numbers, and few are anything. */
static uint64_t value_of(uint64_t seed)
{
	uint64_t random = mix(seed);

	switch (random & 7) {
	case 0:
	case 1:
	case 2:
		return random >> 60;
	case 3:
		return mix(random);
	default:
		return DATA + (random >> 20 & 0xffff0);
	}
}

static uint64_t hash(uint64_t state, const void *data, size_t size)
{
	const uint64_t *words = data;

	for (size_t i = 0; i < size / 8; i++)
		state = mix(state ^ words[i]);
	return state;
}

static void fill(void *page, uint64_t address, size_t size)
{
	uint64_t *words = page;

	for (size_t i = 0; i < size / 8; i++)
		words[i] = value_of(job.seed ^ (address + i * 8));
}

/* Where the stop is, in addresses of the original. */
static uint64_t original_pc(uint64_t pc, int signal)
{
	unsigned int i = 0, offset;
	size_t p = (size_t)((pc - TO) / PAGE);

	if (signal == SIGTRAP)
		pc--;
	if (!job.moved || pc < TO || p >= job.n_plans || pc - TO - p * PAGE >= (uint64_t)job.displaced[p].size)
		return pc;
	offset = (unsigned int)(pc - TO - p * PAGE);
	while (i < job.plans[p].n_insns && job.displaced[p].insn_at[i + 1] <= offset)
		i++;
	shared->in_call = job.displaced[p].insn_at[i] != offset;
	return job.bias + job.plans[p].vaddr + job.plans[p].insn_offset[i];
}

static void __attribute__((noreturn)) stop(int signal, const ucontext_t *context)
{
	for (int i = 0; i < N_REGS; i++)
		shared->regs[i] = (uint64_t)context->uc_mcontext.gregs[i];
	shared->regs[REG_RIP] = original_pc(shared->regs[REG_RIP], signal);
	shared->flags = (uint64_t)context->uc_mcontext.gregs[REG_EFL] & 0xcd5;
	memcpy(shared->vectors, (const char *)context->uc_mcontext.fpregs + 32, sizeof(shared->vectors));
	for (unsigned int i = 0; i < shared->n_touched; i++)
		shared->memory = hash(shared->memory ^ shared->touched[i], (void *)shared->touched[i], PAGE);
	shared->stack = hash(1, (void *)STACK, STACK_SIZE);
	shared->signal = signal;
	shared->ending = STOPPED;
	_exit(0);
}

static void on_fault(int signal, siginfo_t *info, void *data)
{
	const ucontext_t *context = data;
	uint64_t address = (uint64_t)info->si_addr, page = address & ~(uint64_t)(PAGE - 1);
	bool fetch = context->uc_mcontext.gregs[REG_ERR] & 0x10;
	void *mapped;

	if (signal != SIGSEGV || info->si_code != SEGV_MAPERR || fetch || address < 0x10000 ||
	    shared->n_touched == PAGES_MAX)
		stop(signal, context);
	mapped = mmap((void *)page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		      0);
	if (mapped != (void *)page)
		stop(signal, context);
	fill(mapped, page, PAGE);
	shared->touched[shared->n_touched++] = page;
}

static void on_alarm(int signal)
{
	shared->ending = SLOW;
	_exit(0);
}

/* Enter the code: a signal handler returns to it with the registers of the job. */
static void on_enter(int signal, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	greg_t *regs = context->uc_mcontext.gregs;

	for (int i = 0; i < N_REGS; i++)
		regs[i] = (greg_t)value_of(job.seed * 31 + (uint64_t)i);
	regs[REG_RSP] = (greg_t)(STACK + STACK_SIZE / 2 + (mix(job.seed) & 0xff8));
	regs[REG_RIP] = (greg_t)(job.bias + job.start);
	regs[REG_EFL] = (greg_t)((mix(job.seed + 1) & 0x8d5) | 0x202);
	for (int i = 0; i < 16 * 4; i++)
		context->uc_mcontext.fpregs->_xmm[i / 4].element[i % 4] = (uint32_t)mix(job.seed + 100 + (uint64_t)i);
}

static void map_at(uint64_t address, size_t size, int protection)
{
	void *mapped = mmap((void *)address, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (mapped != (void *)address)
		_exit(1);
	if (protection & PROT_EXEC)
		memset(mapped, 0xcc, size);
	else
		fill(mapped, address, size);
}

/* A page, or the rest of it where another plan's trampoline is in it already. */
static void map_trampoline(uint64_t address, uint64_t to)
{
	for (uint64_t page = address & -(uint64_t)PAGE; page < address + KYMO_JUMP_SIZE; page += PAGE) {
		void *mapped = mmap((void *)page, PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (mapped != (void *)page)
			mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
	}
	if (kymo_encode_jump(address, to, (uint8_t *)address))
		_exit(1);
	for (uint64_t page = address & -(uint64_t)PAGE; page < address + KYMO_JUMP_SIZE; page += PAGE)
		mprotect((void *)page, PAGE, PROT_READ | PROT_EXEC);
}

static void put_in(const struct kymo_plan *plan, uint64_t to, size_t i)
{
	uint64_t from = job.bias + plan->vaddr;

	map_at(to, PAGE, PROT_EXEC);
	memcpy((void *)to, job.displaced[i].bytes, (size_t)job.displaced[i].size);
	mprotect((void *)to, PAGE, PROT_READ | PROT_EXEC);
	if (plan->trampoline) {
		map_trampoline(job.bias + plan->trampoline, to);
		memcpy((void *)from, plan->patch, plan->patch_size);
	} else {
		if (kymo_encode_jump(from, to, (uint8_t *)from))
			_exit(1);
		if (plan->window > KYMO_JUMP_SIZE)
			memset((char *)from + KYMO_JUMP_SIZE, 0xcc, plan->window - KYMO_JUMP_SIZE);
	}
}

static void map_code(void)
{
	map_at(FROM, TEXT_SIZE, PROT_EXEC);
	memcpy((void *)(job.bias + job.low), job.text, (size_t)(job.high - job.low));
	for (size_t i = 0; job.moved && i < job.n_plans; i++)
		put_in(&job.plans[i], TO + i * PAGE, i);
	mprotect((void *)FROM, TEXT_SIZE, PROT_READ | PROT_EXEC);
}

static void __attribute__((noreturn)) child(void)
{
	static const int faults[] = { SIGSEGV, SIGTRAP, SIGBUS, SIGFPE, SIGILL };
	static char stack[65536];
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct itimerval limit = { .it_value = { .tv_sec = 1 } };

	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
	sigfillset(&action.sa_mask);
	action.sa_sigaction = on_fault;
	for (size_t i = 0; i < kymo_countof(faults); i++)
		sigaction(faults[i], &action, NULL);
	action.sa_sigaction = on_enter;
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_ONSTACK;
	action.sa_handler = on_alarm;
	sigaction(SIGVTALRM, &action, NULL);
	map_code();
	map_at(STACK, STACK_SIZE, PROT_READ);
	setitimer(ITIMER_VIRTUAL, &limit, NULL);
	raise(SIGUSR1);
	_exit(1);
}

static void run(bool moved, struct outcome *ret)
{
	pid_t pid;
	int status;

	memset(shared, 0, sizeof(*shared));
	job.moved = moved;
	pid = fork();
	if (!pid)
		child();
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	*ret = *shared;
}

static void describe(const struct kymo_plan *plan)
{
	char text[128];

	for (int i = 0; i < plan->n_insns; i++) {
		unsigned int at = plan->insn_offset[i];

		kymo_disassemble(plan->original + at, plan->window - at, plan->vaddr + at, text, sizeof(text));
		print_message("  0x%" PRIx64 ": %s\n", plan->vaddr + at, text);
	}
}

/* What the plans change or rely on, and what runs before, as `text` has it. */
static void take_text(const struct kymo_span *text)
{
	job.low = job.start;
	for (size_t i = 0; i < job.n_plans; i++) {
		uint64_t low = job.plans[i].vaddr, high = low + job.plans[i].lock_size;

		job.low = low < job.low ? low : job.low;
		job.high = high > job.high ? high : job.high;
	}
	assert_true(job.high - job.low <= sizeof(job.text) && job.low >= text->vaddr &&
		    job.high <= text->vaddr + text->size);
	memcpy(job.text, text->bytes + (job.low - text->vaddr), (size_t)(job.high - job.low));
}

bool both_do_the_same(const struct kymo_plan *plans, size_t n_plans, const struct kymo_span *text, uint64_t start,
		      uint64_t seed)
{
	const struct kymo_plan *plan = &plans[n_plans - 1];
	struct outcome original, displaced;

	job = (struct job){ .n_plans = n_plans, .seed = seed, .start = start };
	job.bias = FROM + PAGE - (plan->vaddr & -(uint64_t)PAGE);
	memcpy(job.plans, plans, n_plans * sizeof(*plans));
	take_text(text);
	for (size_t i = 0; i < n_plans; i++) {
		job.displaced[i].size =
			kymo_relocate(&plans[i], job.bias + plans[i].vaddr, TO + i * PAGE, job.displaced[i].bytes,
				      sizeof(job.displaced[i].bytes), job.displaced[i].insn_at);
		assert_true(job.displaced[i].size > 0);
	}
	run(false, &original);
	run(true, &displaced);
	if (original.ending != STOPPED || displaced.ending != STOPPED || displaced.in_call)
		return false;
	if (memcmp(&original, &displaced, sizeof(original))) {
		for (size_t i = 0; i < n_plans; i++)
			describe(&plans[i]);
		print_message("  seed %" PRIu64 ": signals %d %d, pc 0x%" PRIx64 " 0x%" PRIx64 ", rsp 0x%" PRIx64
			      " 0x%" PRIx64 "\n",
			      seed, original.signal, displaced.signal, original.regs[REG_RIP], displaced.regs[REG_RIP],
			      original.regs[REG_RSP], displaced.regs[REG_RSP]);
		fail_msg("the displaced copy does something else");
	}
	return true;
}

bool execute_init(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared != MAP_FAILED;
}
